"""A tree cut into blocks: one walk in document order, without recursion."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Protocol

from nephila.native.fallback.markdown.blocks import Block, BlockContainer, BlockKind, BlockLine, Cell, ContainerKind
from nephila.native.fallback.markdown.inline import CODE, CONTROLS, DROPPED, EMPHASIS, Inline, collapsed
from nephila.native.fallback.srcset import best_of_srcset

MAX_NODES: Final = 400_000
"""A 79 KB page has some 3,000."""
MAX_DEPTH: Final = 16
"""Lists, items and quotes around a block; what is deeper is written at this depth."""
MAX_SPAN: Final = 64
"""Columns of a cell."""

_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_HIDDEN: Final = {
    "script", "style", "template", "textarea", "select", "svg", "object", "audio", "video", "canvas", "datalist",
    "head", "title", "iframe",
}  # fmt: skip
_BLOCKS: Final = {
    "address", "article", "aside", "blockquote", "br", "caption", "center", "dd", "details", "dialog", "dir", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
    "hgroup", "hr", "legend", "li", "listing", "main", "menu", "nav", "noscript", "ol", "optgroup", "option", "p",
    "pre", "search", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "xmp",
}  # fmt: skip
"""What begins and ends a line of the page pass."""
_PRE: Final = {"pre", "listing", "xmp"}
_LISTS: Final = {"ul", "ol", "menu", "dir", "dl"}
_NO_CELL: Final = {*_HEADINGS, *_PRE}
"""In a table of which one cell has such, cells are parts of the page."""
_LAZY: Final = ("data-src", "data-original", "data-lazy-src", "src")
_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight|brush:)[-\s]?\s*([a-z][\w+#.-]*)", re.I
)
_KNOWN: Final = frozenset(
    (
        "bash", "c", "console", "cpp", "csharp", "css", "diff", "go", "haskell", "html", "ini", "java", "javascript",
        "js", "json", "kotlin", "lua", "make", "perl", "php", "pycon", "python", "python3", "r", "ruby", "rust",
        "scala", "sh", "shell", "sql", "swift", "toml", "ts", "typescript", "xml", "yaml",
    )
)  # fmt: skip
"""Names of languages that stand alone in a class."""
_NO_LANGUAGE: Final = frozenset(
    ("default", "none", "text", "plain", "plaintext", "nohighlight", "no", "off", "notranslate")
)
_NUMBERS: Final = re.compile(r"(?:^|\s)(?:linenos?|linenodiv|lineno|line-numbers-rows|gutter|src-line-numbers)(?:\s|$)")


class _Visitor(Protocol):
    """What a walk calls."""

    def text(self, text: str) -> None:
        """A run of text."""

    def start(self, node: Any, tag: str) -> bool:
        """An element begins; False: what is in it is left out, and it does not end."""

    def end(self, tag: str) -> None:
        """The innermost element that has begun ends."""


def read(body: Any, resolve: Callable[[str], str]) -> list[Block]:
    """The blocks of a page. O(nodes)."""
    layout = _Layout()
    seen: Any = None
    for table in body.css("table"):  # in document order, so a table inside another follows it
        if seen is None or not _is_within(table, seen):
            seen = table
            _walk(table, layout)
    reader = _Reader(resolve, layout.tables)
    _walk(body, reader)
    reader.flush()
    return reader.blocks


def _is_within(node: Any, other: Any) -> bool:
    """Whether a node is below another one. O(depth)."""
    sought = other.mem_id
    above = node.parent
    while above is not None:
        if above.mem_id == sought:
            return True
        above = above.parent
    return False


def _walk(root: Any, visitor: _Visitor) -> None:
    # Each attribute of a node makes an object, so each is read once.
    on_text, on_start, on_end = visitor.text, visitor.start, visitor.end
    node = root
    opened: list[Any] = []
    """Elements around the node, and their tags."""
    for _ in range(MAX_NODES):
        tag = node.tag
        if tag == "-text":
            on_text(DROPPED.sub("", node.text_content))
        elif tag not in _HIDDEN and not tag.startswith(("-", "!", "_")) and on_start(node, tag):
            below = node.child
            if below is not None:
                opened.append((node, tag))
                node = below
                continue
            on_end(tag)
        while True:
            if not opened:
                return
            following = node.next
            if following is not None:
                node = following
                break
            node, tag = opened.pop()
            on_end(tag)


class _Layout:
    """Which tables are no tables of data: those that hold another, a heading or code, or have no second cell."""

    def __init__(self) -> None:
        self.tables: set[int] = set()
        self._open: list[tuple[int, int]] = []
        """Number of each open table, and of its cells."""

    def text(self, text: str) -> None:
        """See `_Visitor`."""

    def start(self, node: Any, tag: str) -> bool:
        """See `_Visitor`."""
        if self._open:
            number, cells = self._open[-1]
            if tag == "table" or tag in _NO_CELL:
                self.tables.add(number)
            elif tag in ("td", "th"):
                self._open[-1] = (number, cells + 1)
        if tag == "table":
            self._open.append((node.mem_id, 0))
        return True

    def end(self, tag: str) -> None:
        """See `_Visitor`."""
        if tag == "table" and self._open:
            number, cells = self._open.pop()
            if cells < 2:
                self.tables.add(number)


class _Reader:
    """Makes the blocks."""

    def __init__(self, resolve: Callable[[str], str], layout: set[int]) -> None:
        self.blocks: list[Block] = []
        self._resolve = resolve
        self._layout = layout
        self._inline = Inline()
        self._containers: list[BlockContainer] = []
        self._undo: list[Callable[[], None]] = []
        """What the end of each open element does."""
        self._level = 0
        self._caption = False
        self._code: list[str] | None = None
        self._language = ""
        self._table: Block | None = None
        self._cell: Inline | None = None

    # ---- the walk

    def text(self, text: str) -> None:
        """See `_Visitor`."""
        if self._code is not None:
            self._code.append(text)
        else:
            (self._cell or self._inline).text(text)

    def start(self, node: Any, tag: str) -> bool:
        """See `_Visitor`."""
        if self._code is not None:
            return self._in_code(node, tag)
        if tag in _BLOCKS:
            return self._block(node, tag)
        undo: Callable[[], None] = _nothing
        inline = self._cell or self._inline
        if tag == "a":
            attributes = node.attributes
            raw = attributes.get("href") or ""
            if "href" in attributes and inline.link(self._resolve(raw), raw.startswith("#")):
                undo = inline.end_link
        elif tag == "img":
            self._image(node, inline)
        elif tag in CODE:
            if inline.code():
                undo = inline.end_code
        elif (marker := EMPHASIS.get(tag)) is not None and not self._level and inline.emphasis(marker):
            undo = lambda: inline.end_emphasis(marker)  # noqa: E731
        self._undo.append(undo)
        return True

    def end(self, tag: str) -> None:
        """See `_Visitor`."""
        self._undo.pop()()

    # ---- blocks

    def _block(self, node: Any, tag: str) -> bool:
        if self._cell is not None:
            return self._in_cell(node, tag)
        if tag == "br":
            self._inline.cut()
            self._undo.append(_nothing)
            return True
        if self._table is not None:
            return self._in_table(node, tag)
        self.flush()
        undo = self.flush
        if tag in _PRE:
            self._code, self._language = [], _language_around(node)
            undo = self._end_code
        elif tag in _HEADINGS:
            self._level = _HEADINGS[tag]
            undo = self._end_heading
        elif tag in ("figcaption", "caption"):
            self._caption = True
            undo = self._end_caption
        elif tag == "blockquote":
            undo = self._open_container(BlockContainer(ContainerKind.QUOTE))
        elif tag in _LISTS:
            undo = self._open_container(
                BlockContainer(ContainerKind.LIST, tag == "ol", _number(node.attributes.get("start"), 1) - 1)
            )
        elif tag in ("li", "dt"):
            undo = self._item(node)
        elif tag == "dd":
            undo = self._description(node)
        elif tag == "table" and node.mem_id not in self._layout:
            self._table = Block(BlockKind.TABLE, tuple(self._containers))
            undo = self._end_table
        elif tag == "td" and _NUMBERS.search(node.attributes.get("class") or ""):
            return False
        self._undo.append(undo)
        return True

    def flush(self) -> None:
        """The block ends; it counts only if it has content."""
        lines = self._inline.take()
        if not lines:
            return
        containers = tuple(self._containers)
        if self._level:
            self.blocks.append(Block(BlockKind.HEADING, containers, lines, level=self._level))
        else:
            self.blocks.append(Block(BlockKind.TEXT, containers, lines, caption=self._caption))

    def _end_heading(self) -> None:
        self.flush()
        self._level = 0

    def _end_caption(self) -> None:
        self.flush()
        self._caption = False

    def _open_container(self, container: BlockContainer) -> Callable[[], None]:
        if len(self._containers) >= MAX_DEPTH:
            return self.flush
        self._containers.append(container)
        depth = len(self._containers)

        def end() -> None:
            self.flush()
            del self._containers[depth - 1 :]

        return end

    def _item(self, node: Any) -> Callable[[], None]:
        above = self._containers[-1] if self._containers else None
        if above is None or above.kind is not ContainerKind.LIST:
            return (
                self.flush
                if len(self._containers) >= MAX_DEPTH
                else self._open_container(BlockContainer(ContainerKind.ITEM, marker="- "))
            )
        above.number = _number(node.attributes.get("value"), above.number + 1) if above.ordered else above.number + 1
        marker = f"{above.number}. " if above.ordered else "- "
        container = BlockContainer(ContainerKind.ITEM, above.ordered, above.number, marker=marker)
        above.last = container
        return self._open_container(container)

    def _description(self, node: Any) -> Callable[[], None]:
        """A <dd> goes on with the item of its <dt>."""
        above = self._containers[-1] if self._containers else None
        last = above.last if above is not None else None
        return self._item(node) if last is None else self._open_container(last)

    # ---- code

    def _in_code(self, node: Any, tag: str) -> bool:
        assert self._code is not None
        if _NUMBERS.search(node.attributes.get("class") or "" if tag in ("span", "td", "div") else ""):
            return False
        if tag == "code" and not self._language:
            self._language = _language_of(node)
        if (tag == "br" or tag in _BLOCKS) and self._code and not self._code[-1].endswith("\n"):
            self._code.append("\n")
        self._undo.append(_nothing)
        return True

    def _end_code(self) -> None:
        code, self._code = "".join(self._code or ()), None
        lines = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        while lines and not lines[0].strip():
            del lines[0]
        while lines and not lines[-1].strip():
            del lines[-1]
        if lines:
            found = [BlockLine(collapsed(line), CONTROLS.sub("", line.rstrip())) for line in lines]
            self.blocks.append(Block(BlockKind.CODE, tuple(self._containers), found, language=self._language))

    # ---- tables

    def _in_table(self, node: Any, tag: str) -> bool:
        assert self._table is not None
        undo: Callable[[], None] = _nothing
        if tag == "tr":
            self._table.rows.append([])
        elif tag in ("td", "th"):
            if not self._table.rows:
                self._table.rows.append([])
            self._cell = Inline()
            span = min(_number(node.attributes.get("colspan"), 1), MAX_SPAN)
            self._table.rows[-1].append(Cell([], tag == "th", span))
            undo = self._end_cell
        elif tag == "caption":
            undo = self.flush
        self._undo.append(undo)
        return True

    def _in_cell(self, node: Any, tag: str) -> bool:
        assert self._cell is not None
        self._cell.cut()
        self._undo.append(self._cell.cut)
        return True

    def _end_cell(self) -> None:
        if self._cell is not None and self._table is not None:
            self._table.rows[-1][-1].lines = self._cell.take()
        self._cell = None

    def _end_table(self) -> None:
        table, self._table = self._table, None
        self.flush()
        if table is not None and any(cell.lines for row in table.rows for cell in row):
            self.blocks.append(table)

    # ---- pictures

    def _image(self, node: Any, inline: Inline) -> None:
        attributes = node.attributes
        for name in _LAZY:
            raw = (attributes.get(name) or "").strip()
            if raw and raw[:5].lower() != "data:" and (url := self._resolve(raw)):
                break
        else:
            best = best_of_srcset(attributes.get("srcset") or attributes.get("data-srcset") or "")
            url = self._resolve(best) if best else ""
        if url and _number(attributes.get("width"), 99) > 2 and _number(attributes.get("height"), 99) > 2:
            inline.image(attributes.get("alt") or "", url)


def _nothing() -> None:
    """At the end of an element that means nothing."""


def _number(text: str | None, otherwise: int) -> int:
    digits = (text or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else otherwise


def _language_around(node: Any) -> str:
    """What a <pre> or what is around it calls its language."""
    found = _language_of(node)
    above = node.parent
    for _ in range(3):
        if found or above is None or above.tag not in ("div", "figure", "td", "pre", "section"):
            break
        named = _LANGUAGE.search(above.attributes.get("class") or "")
        found = _clean(named[1]) if named else ""
        above = above.parent
    return found


def _language_of(node: Any) -> str:
    attributes = node.attributes
    for name in ("data-lang", "data-language"):
        if said := attributes.get(name):
            return _clean(said)
    classes = attributes.get("class") or ""
    if (named := _LANGUAGE.search(classes)) and (found := _clean(named[1])):
        return found
    return next((word.lower() for word in classes.split() if word.lower() in _KNOWN), "")


def _clean(name: str) -> str:
    name = name.lower()[:30]
    return name if re.fullmatch(r"[a-z][\w+#.-]*", name) and name not in _NO_LANGUAGE else ""
