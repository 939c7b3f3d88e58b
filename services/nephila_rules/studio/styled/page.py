"""A page of a stranger as it looks, with its own elements and styles, and with nothing that acts.

The tree is rewritten from lists: an element has a tag of `_TAGS`, of SVG, or of a custom element, or it is a span,
or it is left out with its content. An attribute is on a list of names, and its value is text, CSS without addresses, or
a `NamedFile`. No element whose content a parser reads as raw text is written but `style`, whose text begins no tag; so
a browser that builds another tree finds the same elements and attributes only. Each element has its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Final

from nephila_rules.runtime.document import Document
from nephila_rules.runtime.extract import base_of
from nephila_rules.studio.frame import MARKS
from nephila_rules.studio.numbering import is_element
from nephila_rules.studio.styled import svg
from nephila_rules.studio.styled.css import rewritten
from nephila_rules.studio.styled.pieces import FileKind, PieceWriter, file_of, srcset_of
from nephila_rules.studio.tree_writer import MAX_DEPTH, TreeWriter

MAX_CHARS: Final = 3_000_000
NUMBER: Final = "data-nephila"
"""Attribute with the number of an element; `data-nephila-field` and `data-nephila-link` colour it."""
_TAGS_WORDS: Final = """
a abbr acronym address article aside b bdi bdo big blockquote body br button caption center cite code col colgroup data
dd del details dfn dialog dir div dl dt em fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header
hgroup hr html i img input ins kbd label legend li main mark menu meter nav nobr ol optgroup option output p picture pre
progress q rp rt ruby s samp search section select small source span strike strong sub summary sup svg table tbody td
textarea tfoot th thead time tr tt u ul var video wbr
"""
_TAGS: Final = frozenset(_TAGS_WORDS.split())
_LEFT_OUT_WORDS: Final = """
applet area audio base basefont bgsound canvas embed fencedframe frame frameset iframe map math meta noembed noframes
noscript object param plaintext portal script template title track xmp
"""
_LEFT_OUT: Final = frozenset(_LEFT_OUT_WORDS.split())
_VOID: Final = frozenset(("br", "col", "hr", "img", "input", "source", "wbr"))
_OWN_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,40}(?:-[a-z0-9]{1,40}){1,6}\Z")
"""A custom element: without its script it is a box that styles name."""
_TAKEN_NAMES: Final = frozenset(("annotation-xml", "color-profile", "missing-glyph", "nephila-box"))
_TEXT_WORDS: Final = """
align bgcolor border cellpadding cellspacing char checked class color cols colspan datetime dir disabled face for height
hidden high id label lang low max media min multiple noshade nowrap open optimum placeholder readonly reversed role
rowspan rows scope selected size sizes span start title valign value width alt wrap
"""
_TEXTS: Final = frozenset(_TEXT_WORDS.split())
_TEXT_PREFIXES: Final = ("aria-", "data-")
_PLAIN_NAME: Final = re.compile(r"[a-z][a-z0-9_.-]{0,80}\Z")
_INPUTS: Final = frozenset(
    ("button", "checkbox", "color", "date", "email", "hidden", "number", "password", "radio", "range", "reset",
     "search", "submit", "tel", "text", "time", "url")
)  # fmt: skip
_LATER: Final = ("data-src", "data-lazy-src", "data-original", "data-lazy", "data-srcset", "data-lazy-srcset")
"""Attributes from which scripts of pages load a picture when it is seen."""
_HEAD_CHARS: Final = 2000
"""Characters in which a doctype is looked for: a page without one is laid out by other rules."""


def write_page(
    document: Document,
    numbers: Mapping[int, int],
    marks: Mapping[int, int],
    notes: Mapping[int, tuple[str, bool]],
) -> PageWriter:
    """Arguments as of `frame.markup`."""
    writer = PageWriter(document, numbers, marks, notes)
    if "<!doctype" in document.source[:_HEAD_CHARS].lower():
        writer.pieces.text("<!doctype html>")
    writer.write(document.tree.root)
    return writer


class PageWriter(TreeWriter):
    def __init__(
        self,
        document: Document,
        numbers: Mapping[int, int],
        marks: Mapping[int, int],
        notes: Mapping[int, tuple[str, bool]],
    ) -> None:
        super().__init__(MAX_CHARS)
        self.pieces = PieceWriter()
        self._base = base_of(document) or document.url
        self._numbers = numbers
        self._marks = marks
        self._notes = notes
        self._svg_depth: int | None = None
        """Depth of the svg element that is open."""

    def _append(self, text: str) -> None:
        self.pieces.text(text)

    def _open(self, node: Any, depth: int) -> str | None:
        tag = node.tag
        if tag == "-text":
            self._put(escape((node.text_content or "").replace("\0", "\ufffd"), quote=False))
            return None
        if not is_element(node) or tag in _LEFT_OUT:
            return None
        if self._svg_depth is not None and depth <= self._svg_depth:
            self._svg_depth = None
        if (special := _SPECIAL.get(tag)) is not None:
            special(self, node)
            return None
        if depth >= MAX_DEPTH:
            return ""
        if tag == "svg" or self._svg_depth is not None:
            return self._vector(node, tag, depth)
        return self._element(node, tag)

    def _element(self, node: Any, tag: str) -> str:
        if tag == "head":
            self._put("<head>")
            return "</head>"
        own = _OWN_NAME.match(tag) and tag not in _TAKEN_NAMES
        name = tag if tag in _TAGS or own else "span"
        self._put(f"<{name}")
        self._attributes(node, name)
        self._put(">")
        return "" if name in _VOID else f"</{name}>"

    def _attributes(self, node: Any, name: str) -> None:
        attributes = node.attributes
        self._numbered(node)
        for key, value in attributes.items():
            text = value or ""
            if key == "style":
                self._put(' style="')
                self._css(text, escaped=True)
                self._put('"')
            elif _is_text(key):
                self._text(key, text)
            elif key == "background":
                self._file("background", "media", text)
            elif key == "type" and name == "input":
                self._text("type", text.lower() if text.lower() in _INPUTS else "text")
        if name == "a" and "href" in attributes:
            self._text("href", "#")
        elif name == "button":
            self._text("type", "button")
        elif name in ("img", "source"):
            self._picture(node, name)
        elif name == "video":
            self._file("poster", "media", attributes.get("poster") or "")

    def _numbered(self, node: Any) -> None:
        number = self._numbers.get(node.mem_id)
        if number is not None:
            self._text(NUMBER, str(number))
        field = self._marks.get(node.mem_id)
        if field is not None:
            self._text(f"{NUMBER}-field", str(field % MARKS))
        note = self._notes.get(node.mem_id)
        if note is not None:
            self._text(f"{NUMBER}-link", "yes" if note[1] else "no")
            self._text("title", note[0])

    def _picture(self, node: Any, name: str) -> None:
        attributes = node.attributes
        later = next((text for key in _LATER if (text := attributes.get(key))), "")
        source, candidates = attributes.get("src") or "", attributes.get("srcset") or ""
        if later and (not source or source.startswith("data:")) and not candidates:
            source, candidates = ("", later) if " " in later.strip() else (later, "")
        if name == "img":
            self._file("src", "media", source)
            self._text("loading", "lazy")
        if candidates:
            self._put(' srcset="')
            for at, (reference, descriptor) in enumerate(srcset_of(candidates)):
                file = None if self.pieces.full else file_of("media", reference, self._base)
                if file is not None:
                    self._put(", " if at else "")
                    self.pieces.file(file)
                    self._put(f" {escape(descriptor)}")
            self._put('"')

    def _file(self, key: str, kind: FileKind, reference: str) -> None:
        file = None if self.pieces.full else file_of(kind, reference, self._base)
        if file is not None:
            self._put(f' {key}="')
            self.pieces.file(file)
            self._put('"')

    def _text(self, key: str, value: str) -> None:
        clean = value.replace("\0", "\ufffd")
        self._put(f' {key}="{escape(clean)}"')

    def _css(self, text: str, *, escaped: bool = False) -> None:
        for part in rewritten(text, self._base):
            if isinstance(part, str):
                self._put(escape(part) if escaped else part)
            elif self.pieces.full:
                self._put("#")
            else:
                self.pieces.file(part)

    def _vector(self, node: Any, tag: str, depth: int) -> str | None:
        """An element of SVG; a link is a group."""
        name = "g" if tag == "a" else tag
        if name not in svg.TAGS:
            return None
        if self._svg_depth is None:
            self._svg_depth = depth
        self._put(f"<{name}")
        self._numbered(node)
        for key, value in node.attributes.items():
            clean = svg.attribute(key, value or "")
            if clean is not None:
                self._text("href" if key == "xlink:href" else key, clean)
        self._put(">")
        return f"</{name}>"

    # ---- elements that are written in another form

    def _link(self, node: Any) -> None:
        """A style sheet. Many pages name one as a preload, or for print, and a script of theirs puts it into effect."""
        attributes = node.attributes
        kinds = (attributes.get("rel") or "").lower().split()
        early = "preload" in kinds and (attributes.get("as") or "").lower() == "style"
        if not ("stylesheet" in kinds or early) or "alternate" in kinds:
            return
        media = attributes.get("media") or ""
        self._put('<link rel="stylesheet"')
        self._file("href", "style", attributes.get("href") or "")
        if media and not (early or "onload" in attributes):
            self._text("media", media)
        self._put(">")

    def _style(self, node: Any) -> None:
        self._put("<style")
        if media := node.attributes.get("media"):
            self._text("media", media)
        self._put(">")
        # Within SVG the text of a style is no raw text.
        self._css(node.text(deep=True) or "", escaped=self._svg_depth is not None)
        self._put("</style>")


_SPECIAL: Final[Mapping[str, Callable[[PageWriter, Any], None]]] = {
    "link": PageWriter._link,
    "style": PageWriter._style,
}


def _is_text(key: str) -> bool:
    return key in _TEXTS or (
        key.startswith(_TEXT_PREFIXES) and not key.startswith(NUMBER) and _PLAIN_NAME.match(key) is not None
    )
