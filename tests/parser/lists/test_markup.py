"""The tokenizer of XML as found on the web: what a parser would read, wherever pieces are cut; and what is broken."""

from __future__ import annotations

from xml.parsers import expat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nephila.parser.lists.markup import MAX_TOKEN_BYTES, PAUSE, attributes, decoded_text, tokens

NAMES = st.sampled_from(["url", "loc", "a:b", "x-y", "_z"])
VALUES = st.text(alphabet='ab =/>é"&<', max_size=8)
TEXT = st.text(alphabet="ab \n'\"]>é&<-", max_size=12)


def quoted(text: str) -> str:
    """As text or attribute value."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;").replace("]]>", "]]&gt;")


@st.composite
def element(draw: st.DrawFn, depth: int = 0) -> str:
    """A well-formed element."""
    name = draw(NAMES)
    pairs = draw(st.dictionaries(NAMES, VALUES, max_size=2))
    head = name + "".join(f' {key}="{quoted(value)}"' for key, value in pairs.items())
    inner = []
    for _ in range(draw(st.integers(0, 4 - depth))):
        kind = draw(st.sampled_from(["text", "cdata", "comment", "instruction", "element"]))
        text = draw(TEXT)
        if kind == "text":
            inner.append(quoted(text))
        elif kind == "cdata":
            inner.append(f"<![CDATA[{text.replace(']]>', '')}]]>")
        elif kind == "comment":
            inner.append(f"<!-- {text.replace('-', '')} -->")
        elif kind == "instruction":
            inner.append("<?go on?>")
        else:
            inner.append(draw(element(depth + 1)))
    return f"<{head}/>" if not inner and draw(st.booleans()) else f"<{head}>{''.join(inner)}</{name}>"


def by_expat(document: str) -> list[tuple[str, ...]]:
    """Tags, attributes and text as expat reads them."""
    found: list[tuple[str, ...]] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, of: found.append(("start", name, *map(str, of.items())))
    parser.EndElementHandler = lambda name: found.append(("end", name))
    parser.CharacterDataHandler = lambda text: found.append(("text", text))
    parser.Parse(document.encode(), True)
    return found


def by_tokens(document: bytes, *cuts: int) -> list[tuple[str, ...]]:
    """The same as the tokens say."""
    found: list[tuple[str, ...]] = []
    ends = [*sorted(cuts), len(document)]
    pieces = [document[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    said = b""  # a reference may be torn: readers put text together before they resolve it
    for slash, name, raw, text in tokens(pieces):
        if name == PAUSE:
            continue
        if name:
            found.append(("text", decoded(said)))
            said = b""
            found.append(("end" if slash else "start", name.decode()))
            if not slash:
                pairs = {key.decode(): decoded(value) for key, value in attributes(raw).items()}
                found[-1] += tuple(map(str, pairs.items()))
                if raw.endswith(b"/"):
                    found.append(("end", name.decode()))
        said += text
    found.append(("text", decoded(said)))
    return found


def decoded(raw: bytes) -> str:
    """Text with its white space."""
    return decoded_text(b"|" + raw + b"|", "utf-8")[1:-1]


def merged(found: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Adjacent texts as one, none that is empty."""
    out: list[tuple[str, ...]] = []
    for one in found:
        if one[0] == "text" and out and out[-1][0] == "text":
            out[-1] = ("text", out[-1][1] + one[1])
        else:
            out.append(one)
    return [one for one in out if one != ("text", "")]


@given(element(), st.lists(st.integers(0, 200), max_size=4))
def test_what_is_well_formed_is_read_as_expat_reads_it(document: str, cuts: list[int]) -> None:
    """Same tags, attributes and text, and no matter where the pieces are cut."""
    body = document.encode()
    assert merged(by_tokens(body)) == merged(by_expat(document))
    assert merged(by_tokens(body, *[min(cut, len(body)) for cut in cuts])) == merged(by_expat(document))


@pytest.mark.parametrize("cut", range(60))
def test_a_document_type_is_skipped_whole(cut: int) -> None:
    """What it declares is neither read nor expanded, wherever the pieces end."""
    body = b'<!DOCTYPE x [<!ENTITY a "<loc>http://evil/</loc>">]><x>&a;</x>'
    assert merged(by_tokens(body, cut)) == [("start", "x"), ("text", "&a;"), ("end", "x")]


@pytest.mark.parametrize(
    ("broken", "names"),
    [
        (b"<a><b", [b"a"]),
        (b"<a><!-- <b>", [b"a"]),
        (b"<a><![CDATA[ <b>", [b"a"]),
        (b"<!DOCTYPE a [ <b>", []),
        (b"<a x='<b>", [b"b"]),
        (b"a < b <c> > d", [b"c"]),
        (b"<a b='>'>", [b"a"]),
        (b"\xff\xfe<a>\x00</a>", [b"a", b"a"]),
        (b"<>< a></ a><a>", [b"a"]),
        (b"", []),
    ],
)
def test_what_is_broken(broken: bytes, names: list[bytes]) -> None:
    """Nothing raises; what is no tag is none, what has no end goes to the end."""
    assert [name for _, name, _, _ in tokens((broken,)) if name] == names


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b" a&amp;b ", "a&b"),
        (b"?a=1&copy=2", "?a=1&copy=2"),
        (b"&amp;amp;", "&amp;"),
        (b"&#65;&#x42;&eacute;", "ABé"),
        (b"&#0;&#xD800;&#x110000;", "\ufffd\ufffd\ufffd"),
        (b"&lol9;&#99999999999;", "&lol9;&#99999999999;"),
        (b"\xc3\xa9\xff", "é\ufffd"),
    ],
)
def test_references(raw: bytes, text: str) -> None:
    """Only whole ones, once, and never to what is no character."""
    assert decoded_text(raw, "utf-8") == text


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "unit",
    [b"<", b"<a '", b'<a "<', b"<!--", b"<![CDATA[", b"<!DOCTYPE a [", b"<a>", b"]]>", b"]", b"-", b"<a b=", b"a"],
)
def test_time_grows_with_the_bytes(unit: bytes) -> None:
    """Two megabytes of any beginning are read within the test's time limit: quadratic would be hours."""
    body = unit * (2_000_000 // len(unit))
    pieces = [body[at : at + 65_536] for at in range(0, len(body), 65_536)]
    largest = max((len(text) + len(raw) for _, _, raw, text in tokens(pieces)), default=0)
    assert largest <= MAX_TOKEN_BYTES + 65_536
