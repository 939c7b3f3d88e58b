"""Main text as Markdown: headings, lists, tables, code, quotes and links of the lines that the page pass chose.

The tree is walked in document order and cut into lines as the page pass cuts them; a line is written if the main text
has it (each as often as it has it). Reads a tree, which the hot path never builds. Invariants: no recursion, at most
MAX_NODES nodes; what a page says cannot become markup of ours but by its own elements: `\\`, `*`, `_`, backticks and
brackets in text are escaped, and what would begin a heading, a list, a quote or HTML.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

MAX_NODES: Final = 400_000
"""A 79 KB page has some 3,000."""
MAX_INDENT: Final = 8
"""Deeper lists are written at this depth."""

_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}
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
_EMPHASIS: Final = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`", "kbd": "`", "samp": "`"}
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<])")
_OPENING: Final = re.compile(r"^(?:[#>+=|~-]|(\d{1,9})([.)])(?=\s))")
_BREAK: Final = re.compile(r"[\r\n]+")


class _Line:
    """What is written of one line, and where it stands."""

    def __init__(self, written: str, at: list[str], row: int) -> None:
        self.written = written
        self.at = at
        self.row = row


class _Writer:
    """Collects inline text and cuts it into lines."""

    def __init__(self, wanted: Counter[str], resolve: Callable[[str], str]) -> None:
        self.lines: list[_Line] = []
        self.rows = 0
        self._wanted = wanted
        self._resolve = resolve
        self._path: list[str] = []
        self._plain: list[str] = []
        self._marked: list[str] = []
        self._links: list[tuple[int, str]] = []

    def start(self, node: Any) -> None:
        """An element begins."""
        tag = node.tag
        if tag in _BLOCKS:
            self.cut()
            self.rows += tag == "tr"
        elif tag == "a":
            self._links.append((len(self._marked), self._resolve(node.attributes.get("href") or "")))
            self._marked.append("")
        elif tag in _EMPHASIS and "pre" not in self._path:
            self._marked.append(_EMPHASIS[tag])
        self._path.append(tag)

    def end(self, tag: str) -> None:
        """The innermost element ends."""
        if tag in _BLOCKS:
            self.cut()
        self._path.pop()
        if tag == "a" and self._links:
            at, url = self._links.pop()
            if url and at < len(self._marked) and "".join(self._marked[at:]).strip():
                self._marked[at] = "["
                self._marked.append(f"]({url.replace('(', '%28').replace(')', '%29').replace(' ', '%20')})")
        elif tag in _EMPHASIS and "pre" not in self._path:
            self._marked.append(_EMPHASIS[tag])

    def text(self, text: str) -> None:
        """A run of text; a line end within preformatted text is the end of a line."""
        code = "pre" in self._path
        for number, part in enumerate(_BREAK.split(text) if code else [text]):
            if number:
                self.cut()
            self._plain.append(part)
            self._marked.append(part if code or "code" in self._path else _SPECIAL.sub(r"\\\1", part))

    def cut(self) -> None:
        """The line ends; it is kept if the main text has it."""
        plain = " ".join("".join(self._plain).split())
        if plain and self._wanted[plain] > 0:
            self._wanted[plain] -= 1
            code = "pre" in self._path
            written = "".join(self._marked)
            written = written.rstrip() if code else " ".join(written.replace("****", "").replace("``", "").split())
            self.lines.append(_Line(written, list(self._path), self.rows))
        self._plain, self._marked, self._links = [], [], []


def markdown(tree: Any, main_text: str, resolve: Callable[[str], str]) -> str:
    """Markdown of the lines of `main_text`, found again in `tree` (selectolax); `resolve` makes a link absolute or "".

    A line that the tree has not (its markup was repaired otherwise) is missing. O(nodes).
    """
    writer = _Writer(Counter(" ".join(line.split()) for line in main_text.split("\n")), resolve)
    _walk(tree.body, writer)
    return _written(writer.lines)


def _walk(root: Any, writer: _Writer) -> None:
    node, opened = root, 0
    for _ in range(MAX_NODES):
        if node is None:
            return
        below = None
        if node.tag == "-text":
            writer.text(node.text(deep=False))
        elif node.tag not in _HIDDEN and not node.tag.startswith(("-", "!", "_")):
            writer.start(node)
            opened += 1
            below = node.child
            if below is None:
                writer.end(node.tag)
                opened -= 1
        if below is not None:
            node = below
            continue
        while node is not None and node.next is None:
            node = node.parent
            if opened == 0 or node is None:
                return
            writer.end(node.tag)
            opened -= 1
            if opened == 0:
                return
        node = node.next


def _written(lines: list[_Line]) -> str:
    """The lines under each other: items, rows and code close together, all else a blank line apart."""
    blocks: list[tuple[str, str]] = []
    row = -1
    for line in lines:
        kind, text = _block(line)
        if kind == "table":
            if line.row == row and blocks and blocks[-1][0] == "table":
                blocks[-1] = ("table", blocks[-1][1] + f" {text} |")
                continue
            row, text = line.row, f"| {text} |"
        blocks.append((kind, text))
    out: list[str] = []
    before = ""
    for kind, text in blocks:
        if out and (kind != before or kind == "text"):
            if before == "code":
                out.append("```")
            out.append("")
        if kind == "code" and before != "code":
            out.append("```")
        out.append(text)
        if kind == "table" and before != "table":
            out.append("|" + " --- |" * max(1, text.count(" |")))
        before = kind
    if before == "code":
        out.append("```")
    return "\n".join(out)


def _block(line: _Line) -> tuple[str, str]:
    """Kind of a line and how it is written."""
    path, text = line.at, line.written
    if "pre" in path:
        return "code", text.replace("```", "` ` `")
    for tag in reversed(path):
        if tag in _HEADINGS:
            return "text", _HEADINGS[tag] + text
    if "td" in path or "th" in path:
        return "table", text.replace("|", "\\|")
    text = _OPENING.sub(lambda found: f"{found[1]}\\{found[2]}" if found[1] else f"\\{found[0]}", text)
    if "li" in path:
        lists = [tag for tag in path if tag in ("ul", "ol")]
        depth = min(max(len(lists) - 1, 0), MAX_INDENT)
        return "item", "  " * depth + ("1. " if lists and lists[-1] == "ol" else "- ") + text
    return "text", ("> " if "blockquote" in path else "") + text
