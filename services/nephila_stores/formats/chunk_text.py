"""Splits the Markdown of a page into chunks of bounded size for language models. Pure.

A chunk belongs to one section: it never crosses a heading. It takes whole blocks (paragraphs, lists, tables, fenced
code) as long as they fit. A longer block is divided at line ends, then sentences, then words; each part of a table
repeats its head, each part of code its fences. `overlap` characters of a chunk are repeated at the start of the next
one of the section. Invariants: a chunk has at most `size` characters; the id depends on the page and the chunk's own
text only, so a change elsewhere in the page leaves it as it is. O(characters).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from nephila.kernel.runtime.late_pattern import late_pattern

_HEADING: Final = late_pattern(r"(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_FENCE: Final = late_pattern(r"(`{3,}|~{3,})")
_TABLE_RULE: Final = late_pattern(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?$")
_INLINE: Final = late_pattern(
    r"(?<!`)(`+)(?!`)(?P<code>.+?)(?<!`)\1(?!`)|\\(?P<escaped>[!-/:-@\[-`{-~])|!?\[|\]\([^)\s]*\)|\*+"
)
"""Marks within a line, as the core writes them: code, escapes, links, pictures, emphasis."""
_BREAKS: Final = (
    late_pattern(r"\n"),
    late_pattern(r"[.!?…][\"')\]]*\s+|[。！？；]"),
    late_pattern(r"\s+"),
)
"""Where a long text is divided: line ends, sentences, words."""
_HEAD_SHARE: Final = 4
"""A head that takes more than this part of a chunk is not repeated."""


class Chunk(NamedTuple):
    id: str
    headings: tuple[str, ...]
    """The path of headings to its section, outermost first, as plain text."""
    text: str


class _Block(NamedTuple):
    text: str
    head: str = ""
    """Lines that each part of a divided block begins with."""
    foot: str = ""
    """Lines that each part of a divided block ends with."""


def chunks_of(page_key: str, text: str, size: int, overlap: int = 0, *, markdown: bool = True) -> list[Chunk]:
    """The chunks of a page in order. Without `markdown` the text has no headings, fences or tables."""
    seen: Counter[str] = Counter()
    chunks = []
    for headings, blocks in _sections(text, markdown=markdown):
        for own, repeated in _pack(blocks, size, overlap):
            seen[own] += 1
            digest = hashlib.sha256(f"{page_key}\0{own}\0{seen[own]}".encode("utf-8", "replace")).hexdigest()[:32]
            chunks.append(Chunk(digest, headings, f"{repeated}\n\n{own}" if repeated else own))
    return chunks


def _sections(text: str, *, markdown: bool) -> Iterator[tuple[tuple[str, ...], list[_Block]]]:
    """(path of headings, blocks) of each section. A heading without text of its own belongs to the section below it."""
    path: list[tuple[int, str]] = []
    blocks: list[_Block] = []
    only_headings = True
    for block, level, title in _blocks(text, markdown=markdown):
        if level:
            deeper = bool(path) and level > path[-1][0]
            if blocks and not (only_headings and deeper):
                yield tuple(name for _, name in path), blocks
                blocks = []
                only_headings = True
            path = [*(heading for heading in path if heading[0] < level), (level, title)]
        else:
            only_headings = False
        blocks.append(block)
    if blocks:
        yield tuple(name for _, name in path), blocks


def _blocks(text: str, *, markdown: bool) -> Iterator[tuple[_Block, int, str]]:
    """(block, level of the heading or 0, its title), in order."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        if fence:
            lines.append(line)
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                yield _Block("\n".join(lines), lines[0], fence), 0, ""
                lines, fence = [], ""
            continue
        opening = _FENCE.match(line.lstrip()) if markdown else None
        heading = _HEADING.match(line) if markdown else None
        if opening is not None or heading is not None or not line.strip():
            if lines:
                yield _block(lines, markdown=markdown), 0, ""
                lines = []
            if opening is not None:
                fence, lines = opening[1], [line]
            elif heading is not None:
                yield _Block(line.strip()), len(heading[1]), _plain(heading[2])
        else:
            lines.append(line.rstrip())
    if lines:
        yield _block(lines, markdown=markdown), 0, ""


def _plain(line: str) -> str:
    """A line without its marks: what a reader sees."""
    links = 0

    def text_of(mark: re.Match[str]) -> str:
        nonlocal links
        if mark["code"] or mark["escaped"]:
            return (mark["code"] or "").strip() or mark["escaped"]
        if mark[0][0] == "]" and not links:
            return mark[0]
        links += {"[": 1, "!": 1, "]": -1}.get(mark[0][0], 0)
        return ""

    return _INLINE.sub(text_of, line).strip()


def _block(lines: list[str], *, markdown: bool) -> _Block:
    if markdown and len(lines) > 2 and "|" in lines[0] and _TABLE_RULE.fullmatch(lines[1].strip()):
        return _Block("\n".join(lines), "\n".join(lines[:2]))
    return _Block("\n".join(lines))


def _pack(blocks: list[_Block], size: int, overlap: int) -> Iterator[tuple[str, str]]:
    """(own text, repeated end of the chunk before) of each chunk of a section."""
    own, repeated = "", ""
    for block in blocks:
        free = size - len(repeated) - (2 if repeated else 0)
        if own and len(own) + 2 + len(block.text) <= free:
            own = f"{own}\n\n{block.text}"
            continue
        for part in _divide(block, size - overlap - (2 if overlap else 0)):
            if own:
                if len(own) + 2 + len(part) <= size - len(repeated) - (2 if repeated else 0):
                    own = f"{own}\n\n{part}"
                    continue
                yield own, repeated
                repeated = _end_of(own, overlap)
            own = part
    if own:
        yield own, repeated


def _divide(block: _Block, size: int) -> Iterator[str]:
    """Parts of at most `size` characters."""
    if len(block.text) <= size:
        yield block.text
        return
    head, foot, text = block.head, block.foot, block.text
    if head:
        text = text[len(head) + 1 :]
        text = text[: -len(foot) - 1] if foot and text.endswith("\n" + foot) else text
        if len(head) + len(foot) > size // _HEAD_SHARE:
            head = foot = ""
    room = size - (len(head) + 1 if head else 0) - (len(foot) + 1 if foot else 0)
    for part in _cut(text, room):
        yield "\n".join(piece for piece in (head, part, foot) if piece)


def _cut(text: str, size: int) -> Iterator[str]:
    while len(text) > size:
        at = _break_before(text, size)
        if part := text[:at].rstrip():
            yield part
        text = text[at:].lstrip("\n")
    if text.strip():
        yield text


def _break_before(text: str, size: int) -> int:
    """Where the first part ends: at the last good break of the second half, else at the size."""
    for pattern in _BREAKS:
        last = 0
        for match in pattern.finditer(text, size // 2, size):
            last = match.end()
        if last:
            return last
    return size


def _end_of(text: str, overlap: int) -> str:
    """At most `overlap` characters of the end, from the start of a line, sentence or word."""
    if not overlap:
        return ""
    if len(text) <= overlap:
        return text
    end = text[-overlap:]
    for pattern in _BREAKS:
        match = pattern.search(end, 0, len(end) * 3 // 4)
        if match is not None:
            return end[match.end() :].strip()
    return end.strip()
