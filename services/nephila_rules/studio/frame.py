"""A page of a stranger as HTML in which every text is a link of ours, and nothing else of the page has an effect.

The tree is written from a list of allowed elements: an element has a tag of `_TAGS`, or it is a `span` or a `div`,
or it is left out with its content. No attribute of the page is copied but the sizes of table cells. Texts are escaped.
So there is no script, style, form, link or address of the page in the result, regardless of how a browser
parses it. A text inside element N is a link to `pick/N` in the whole window: a click needs no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from nephila_rules.runtime.document import Document
from nephila_rules.studio.numbering import is_element
from nephila_rules.studio.tree_writer import MAX_DEPTH, TreeWriter

MAX_CHARS: Final = 1_500_000
"""Characters of the result; the rest of the page is not shown."""
_TAGS_WORDS: Final = """
address article aside b bdi bdo blockquote br caption cite code dd del dfn dl dt em figcaption figure footer h1
h2 h3 h4 h5 h6 header hr i ins kbd li main mark nav ol p pre q s samp section small strong sub sup table tbody td
tfoot th thead time tr u ul var wbr
"""
_TAGS: Final = frozenset(_TAGS_WORDS.split())
_BLOCKS_WORDS: Final = """
body center details dialog dir div fieldset form hgroup html menu optgroup option search select summary
"""
_BLOCKS: Final = frozenset(_BLOCKS_WORDS.split())
"""Shown as a box."""
_LEFT_OUT_WORDS: Final = """
applet area audio base basefont bgsound canvas col colgroup embed frame frameset head iframe link map math meta
noembed noframes noscript object param plaintext script source style svg template title track video xmp
"""
_LEFT_OUT: Final = frozenset(_LEFT_OUT_WORDS.split())
_VOID: Final = frozenset(("br", "hr", "wbr"))
_SIZES: Final = ("colspan", "rowspan")
MARKS: Final = 6
"""Colours of fields."""


class Markup(NamedTuple):
    html: str
    whole: bool
    """Whether all of the page is in it."""


def markup(
    document: Document,
    numbers: Mapping[int, int],
    marks: Mapping[int, int],
    notes: Mapping[int, tuple[str, bool]] | None = None,
) -> Markup:
    """`numbers`: identity of an element → its number. `marks`: identity → the field that takes it, which colours it.
    `notes`: identity of a link → (why it is followed or not, whether it is)."""
    writer = _Writer(numbers, marks, notes or {})
    writer.write(document.tree.root)
    return Markup("".join(writer.parts), writer.whole)


class _Writer(TreeWriter):
    def __init__(
        self, numbers: Mapping[int, int], marks: Mapping[int, int], notes: Mapping[int, tuple[str, bool]]
    ) -> None:
        super().__init__(MAX_CHARS)
        self.parts: list[str] = []
        self._numbers = numbers
        self._marks = marks
        self._notes = notes

    def _append(self, text: str) -> None:
        self.parts.append(text)

    def _open(self, node: Any, depth: int) -> str | None:
        tag = node.tag
        if tag == "-text":
            self._text(node)
            return None
        if not is_element(node) or tag in _LEFT_OUT:
            return None
        if tag == "img":
            self._image(node)
            return None
        if tag in ("input", "textarea", "button") and self._value(node, tag):
            return None
        if depth >= MAX_DEPTH:
            return ""
        name = tag if tag in _TAGS else "div" if tag in _BLOCKS else "span"
        self._put(f"<{name}{self._attributes(node, tag)}>")
        return "" if name in _VOID else f"</{name}>"

    def _attributes(self, node: Any, tag: str) -> str:
        classes, attributes_text = [], ""
        field = self._marks.get(node.mem_id)
        if field is not None:
            number = self._numbers.get(node.mem_id, 0)
            classes.append(f"m m{field % MARKS}")
            attributes_text += f' id="n{number}"'
        if tag == "a":
            classes.append("l")
        note = self._notes.get(node.mem_id)
        if note is not None:
            classes.append("yes" if note[1] else "no")
            attributes_text += f' title="{escape(note[0])}"'
        if tag in ("td", "th"):
            for name in _SIZES:
                size = node.attributes.get(name) or ""
                if size.isascii() and size.isdecimal() and 1 < int(size[:4]) < 100:
                    attributes_text += f' {name}="{int(size[:4])}"'
        return attributes_text + (f' class="{" ".join(classes)}"' if classes else "")

    def _link(self, node: Any, text: str, kind: str = "") -> None:
        number = self._numbers.get(node.mem_id)
        escaped = escape(text)
        if number is None:
            self._put(escaped)
            return
        self._put(f'<a href="pick/{number}" target="_top"{kind}>{escaped}</a>')

    def _text(self, node: Any) -> None:
        text = (node.text_content or "").replace("\0", "\ufffd")
        if not text.strip():
            self._put(" ")
        elif node.parent is not None:
            self._link(node.parent, text)

    def _image(self, node: Any) -> None:
        words = (node.attributes.get("alt") or "").strip() or _file_name(node.attributes.get("src") or "")
        field = self._marks.get(node.mem_id)
        mark = f"i m m{field % MARKS}" if field is not None else "i"
        name = f' id="n{self._numbers.get(node.mem_id, 0)}"' if field is not None else ""
        self._link(node, words[:200] or "image", f'{name} class="{mark}"')

    def _value(self, node: Any, tag: str) -> bool:
        """A control of a form as its text; False for one whose content is shown."""
        if tag == "button":
            return False
        words = node.attributes.get("value") or node.attributes.get("placeholder") or ""
        if tag == "input" and words and (node.attributes.get("type") or "text").lower() != "hidden":
            self._link(node, words[:200])
        return True


def _file_name(address: str) -> str:
    if address.startswith("data:"):
        return "image"
    try:
        return unquote(urlsplit(address).path.rpartition("/")[2])
    except ValueError:
        return "image"


def fields_of(pairs: Iterable[tuple[int, Any]]) -> dict[int, int]:
    """Marks of (field, element) pairs; the first field of an element counts."""
    marks: dict[int, int] = {}
    for field, node in pairs:
        marks.setdefault(node.mem_id, field)
    return marks
