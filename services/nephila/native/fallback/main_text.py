"""Main text by text density: the classifier by number of words of Kohlschütter, Fankhauser and Nejdl, "Boilerplate
Detection using Shallow Text Features" (WSDM 2010). Simpler than the model of the native core."""

from __future__ import annotations

from nephila.native.fallback.lines import CHROME, COMMENT, HEADING, PRE, TextLine


def _density(line: TextLine | None) -> tuple[int, float]:
    """Words, and the share of the bytes that is inside links."""
    return (0, 0.0) if line is None else (len(line.text.split()), line.link_bytes / max(len(line.text.encode()), 1))


def main_lines(lines: list[TextLine]) -> list[int]:
    """Indices of the lines that belong to the main text. O(n)."""
    body = [number for number, line in enumerate(lines) if not line.context.flags & (CHROME | COMMENT)]
    kept = []
    for at, number in enumerate(body):
        line = lines[number]
        before = lines[body[at - 1]] if at else None
        after = lines[body[at + 1]] if at + 1 < len(body) else None
        if line.context.flags & PRE or _is_content(_density(before), _density(line), _density(after)):
            kept.append(number)
    return _with_headings(lines, kept)


def _is_content(before: tuple[int, float], here: tuple[int, float], after: tuple[int, float]) -> bool:
    words, links = here
    if links > 0.333333:
        return False
    if before[1] > 0.555556:
        return words > 40 or after[0] > 17
    return words > 16 or after[0] > 15 or before[0] > 4


def _with_headings(lines: list[TextLine], kept: list[int]) -> list[int]:
    """A heading belongs to the main text exactly if the line after it does."""
    chosen = set(kept)
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].context.flags & HEADING and not lines[number].context.flags & (CHROME | COMMENT):
            chosen.discard(number)
            if number + 1 in chosen:
                chosen.add(number)
    return sorted(chosen)
