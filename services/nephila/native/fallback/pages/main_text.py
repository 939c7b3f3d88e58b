"""Main text by text density: the classifier by number of words of Kohlschütter, Fankhauser and Nejdl, "Boilerplate
Detection using Shallow Text Features" (WSDM 2010). Simpler than the model of the native core."""

from __future__ import annotations

from nephila.native.fallback.pages.lines import CHROME, COMMENT, HEADING, MAIN, PRE, TextLine

_LONGEST = 400
"""Bytes of a heading of the page; a longer one is text."""


def _density(line: TextLine | None) -> tuple[int, float]:
    """Words, and the share of the bytes that is inside links."""
    return (0, 0.0) if line is None else (len(line.text.split()), line.link_bytes / max(len(line.text.encode()), 1))


def main_lines(lines: list[TextLine], title: str, h1: int) -> list[int]:
    """Indices of the lines that belong to the main text; `h1`: tag number of <h1>. O(n)."""
    body = [number for number, line in enumerate(lines) if not line.context.flags & (CHROME | COMMENT)]
    numbers = []
    for at, number in enumerate(body):
        line = lines[number]
        before = lines[body[at - 1]] if at else None
        after = lines[body[at + 1]] if at + 1 < len(body) else None
        if line.context.flags & PRE or _is_dense(_density(before), _density(line), _density(after)):
            numbers.append(number)
    return _with_h1(lines, _with_headings(lines, numbers), title, h1)


def _is_dense(before: tuple[int, float], here: tuple[int, float], after: tuple[int, float]) -> bool:
    words, links = here
    if links > 0.333333:
        return False
    if before[1] > 0.555556:
        return words > 40 or after[0] > 17
    return words > 16 or after[0] > 15 or before[0] > 4


def _with_headings(lines: list[TextLine], numbers: list[int]) -> list[int]:
    """A heading belongs to the main text exactly if the line after it does."""
    chosen = set(numbers)
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].context.flags & HEADING and not lines[number].context.flags & (CHROME | COMMENT):
            chosen.discard(number)
            if number + 1 in chosen:
                chosen.add(number)
    return sorted(chosen)


def _with_h1(lines: list[TextLine], numbers: list[int], title: str, h1: int) -> list[int]:
    """The <h1> of the page is in its main text, see core/src/maintext/heading.rs."""
    has_h1 = any(_is_heading(lines[number], h1) and _is_content(lines[number]) for number in numbers)
    number = page_heading(lines, title, h1) if numbers and not has_h1 else None
    return numbers if number is None else sorted({*numbers, number})


def page_heading(lines: list[TextLine], title: str, h1: int) -> int | None:
    """The line of the <h1> of the page; `h1`: tag number of <h1>. O(n)."""
    title = title.lower()
    headings = [(number, line.text.lower(), line) for number, line in enumerate(lines) if _is_heading(line, h1)]
    contents = [row for row in headings if _is_content(row[2])]
    choice = [row for row in headings if title.startswith(row[1])]
    choice = choice or [row for row in headings if row[1] in title and not title.endswith(row[1])]
    choice = (
        choice
        or [row for row in contents if row[1] in title]
        or [row for row in contents if row[2].context.flags & MAIN]
        or (contents if len(contents) == 1 else [])
    )
    return choice[0][0] if choice else None


def _is_heading(line: TextLine, h1: int) -> bool:
    return line.context.tag == h1 and len(line.text.encode()) <= _LONGEST


def _is_content(line: TextLine) -> bool:
    return line.context.flags & (CHROME | MAIN) != CHROME
