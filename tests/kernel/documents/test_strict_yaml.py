"""YAML scalars stay texts with locations; ambiguous syntax is refused."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from nephila.kernel.documents.yaml import MAX_BYTES, MAX_DEPTH, MAX_VALUES, Node, from_builtins, parse
from nephila.kernel.runtime.errors import UsageError

LOADERS = [yaml.SafeLoader, pytest.param(getattr(yaml, "CSafeLoader", None), id="libyaml")]


def plain(node: Node):
    """The tree without locations."""
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    if isinstance(node.value, dict):
        return {key: plain(entry.value) for key, entry in node.value.items()}
    return node.value


@pytest.mark.parametrize("loader", LOADERS)
def test_scalars_stay_the_text_that_was_written(loader):
    """No accidental booleans, numbers, dates or nulls."""
    (found,) = parse(b"a: no\nb: 1.10\nc: 0x10\nd: 2024-01-01\ne: ~\nf: 1_000\ng: '  x'\n", "j", loader)
    assert list(plain(found).values()) == ["no", "1.10", "0x10", "2024-01-01", "~", "1_000", "  x"]
    assert [entry.value.plain for entry in found.value.values()] == [True] * 6 + [False]


@pytest.mark.parametrize("loader", LOADERS)
def test_every_value_has_a_location(loader):
    """File, line and column, from 1."""
    (found,) = parse(b"a:\n  - x\n  - {b: c}\n", "j.yaml", loader)
    inner = found.value["a"].value.value[1].value["b"]
    assert (inner.key.location, inner.value.location) == ("j.yaml:3:6", "j.yaml:3:9")


@pytest.mark.parametrize("loader", LOADERS)
def test_several_documents(loader):
    """Empty documents are left out."""
    assert [plain(node) for node in parse(b"---\na: 1\n---\n---\n# nothing\n---\n[b]\n...\n", "j", loader)] == [
        {"a": "1"},
        ["b"],
    ]
    assert parse(b"\xef\xbb\xbf# only a comment\n", "j", loader) == []


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a: 1\nb: 2\na: 3", "j:3:1: the key 'a' comes twice, first at j:1:1"),
        (b"a: &x 1", "j:1:4: anchors (&x) are not supported; write the value out"),
        (b"a: *x", "j:1:4: aliases (*x) are not supported; write the value out"),
        (
            b"a: !!python/object:os.system 1",
            "j:1:4: tags (tag:yaml.org,2002:python/object:os.system) are not supported",
        ),
        (b"a: ! 1", "j:1:4: tags (!) are not supported"),
        (b"? [a]\n: b", "j:1:3: a key must be a word"),
        (b"a: }", "j:1:4: "),
        (b"a: b: c", "j:1:5: mapping values are not allowed"),
        (b"\ta: 1", "j:1:1: this line is indented by a tab"),
        (b"a: \x01", "j:1:4: a control character"),
        (b"a: 1\nb: \xff", "j:2:4: not UTF-8 text"),
        (b"[" * 500, f"nested more than {MAX_DEPTH} deep"),
        (b"[" * 100_000, f"nested more than {MAX_DEPTH} deep"),
        (b"{a: " * 100_000, f"nested more than {MAX_DEPTH} deep"),
        (b"- " * 50_000, f"nested more than {MAX_DEPTH} deep"),
        (b'a: "\\U00ffffff"', "j"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_refused_syntax_is_reported_with_its_location(loader, text, expected):
    """One line, before anything large is built."""
    with pytest.raises(UsageError) as refused:
        parse(text, "j", loader)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_bomb_of_aliases_is_refused():
    """The nine lines of a billion laughs."""
    text = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(UsageError, match="anchors"):
        parse(text.encode(), "j")


def test_size_and_number_of_values_are_bounded():
    """The line suggests a file of seeds for larger lists."""
    with pytest.raises(UsageError, match="file of seeds"):
        parse(b"#" * (MAX_BYTES + 1), "j")
    with pytest.raises(UsageError, match="file of seeds"):
        parse(b"[" + b"a," * MAX_VALUES + b"a]", "j")


def test_parsed_json_makes_the_same_tree():
    """With paths as locations; numbers and booleans count as scalars without quotes."""
    found = from_builtins({"a": [1, True, None, "x", 0.5]}, "job")
    assert plain(found) == {"a": ["1", "true", "", "x", "0.5"]}
    items = found.value["a"].value.value
    assert [item.plain for item in items] == [True, True, True, False, True]
    assert items[3].location == "job.a[3]"
    deep: list = []
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(UsageError):
        from_builtins(deep, "job")


@pytest.mark.parametrize("loader", LOADERS)
@settings(max_examples=300, deadline=None)
@given(
    data=st.one_of(st.binary(max_size=200), st.text("abc:-[]{}#&*!|>'\"%@`,? \n\t~\\ué", max_size=120).map(str.encode))
)
def test_any_bytes_are_read_or_refused_in_one_line(loader, data):
    """No other exception."""
    try:
        parse(data, "j", loader)
    except UsageError as refused:
        assert "\n" not in str(refused)  # noqa: PT017
