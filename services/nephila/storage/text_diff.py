"""The difference of two texts for people: lines that only one of them has, a long line cut to the places that changed.

Lines are compared as sets, and the words of two long lines by the words that both have once, so the cost is that of
sorting them for any two texts. A line that only moved or is repeated is not shown.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

DIFF_CHARACTERS: Final = 4000
"""Size of a stored difference; the rest is replaced by a line."""
DIFF_LINE: Final = 300
"""Characters of a line that is shown whole, and about those of a long line that are shown."""
CONTEXT: Final = 50
"""Characters before and behind a place that changed."""
PLACE: Final = 120
"""Characters of a place that changed; its rest is left out."""
MAX_COMPARED: Final = 40_000
"""Characters between the first and the last change of a line whose words are compared."""
PAIRS: Final = 100
"""Long lines that are compared with their new forms."""
NEAR_LINES: Final = 5
_EAST_ASIAN: Final = "\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_EAST_ASIAN}]|[^\W{_EAST_ASIAN}]{{1,40}}|\s+|.", re.DOTALL)


_WITHIN_WORD: Final = re.compile(rf"[^\W{_EAST_ASIAN}]{{2}}")
_Text = TypeVar("_Text", str, bytes)


class _Hunk(NamedTuple):
    """A place that changed: ranges of the words of both lines."""

    old: tuple[int, int]
    new: tuple[int, int]


def text_diff(old: bytes, new: bytes) -> str:
    """Removed lines after "-", added lines after "+", a changed line beside its new form."""
    before, after = old.split(b"\n"), new.split(b"\n")
    in_old, in_new = set(before), set(after)
    removed = [line for line in before if line not in in_new and line.strip()]
    added = [line for line in after if line not in in_old and line.strip()]
    parts: list[str] = []
    size = 0
    for line in _lines(removed, added):
        size += len(line) + 1
        if size > DIFF_CHARACTERS:
            parts.append(f"… {len(removed) + len(added) - len(parts):,} more lines differ")
            break
        parts.append(line)
    return "\n".join(parts)


def _lines(removed: Sequence[bytes], added: Sequence[bytes]) -> Iterator[str]:
    pairs = _pairs(removed, added)
    for number, line in enumerate(removed):
        old = line.decode("utf-8", "replace")
        if number not in pairs:
            yield f"-{_cut(old, DIFF_LINE)}"
            continue
        new = added[pairs[number]].decode("utf-8", "replace")
        if max(len(old), len(new)) > DIFF_LINE:
            old, new = changed_places(old, new)
        yield f"-{_cut(old, 2 * DIFF_LINE)}"
        yield f"+{_cut(new, 2 * DIFF_LINE)}"
    paired = set(pairs.values())
    for number, line in enumerate(added):
        if number not in paired:
            yield f"+{_cut(line[: 4 * DIFF_LINE].decode('utf-8', 'replace'), DIFF_LINE)}"


def _pairs(removed: Sequence[bytes], added: Sequence[bytes]) -> dict[int, int]:
    """Number of a long removed line → that of the added line that begins and ends most like it, among the next few."""
    long_removed = [number for number, line in enumerate(removed) if len(line) > DIFF_LINE // 2][:PAIRS]
    free = [number for number, line in enumerate(added) if len(line) > DIFF_LINE // 2][: 2 * PAIRS]
    pairs: dict[int, int] = {}
    for number in long_removed:
        line = removed[number]
        alike = {
            other: _common(line, added[other]) + _common(line[::-1], added[other][::-1]) for other in free[:NEAR_LINES]
        }
        best = max(alike, key=alike.__getitem__, default=-1)
        if best >= 0 and (alike[best] or len(long_removed) == len(free)):
            pairs[number] = best
            free.remove(best)
    return pairs


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def changed_places(old: str, new: str) -> tuple[str, str]:
    """Both lines, each cut to the places that differ with some words around them."""
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    # Whole words: the border of a change is not within one.
    first = _word_border(old, start, -1)
    old_end, new_end = len(old) - end, len(new) - end
    last = _word_border(old, old_end, 1) - old_end
    old_words, new_words = (
        _WORD.findall(text[first : to + last][:MAX_COMPARED]) for text, to in ((old, old_end), (new, new_end))
    )
    hunks = _merged(list(_hunks(old_words, new_words)), old_words)
    head, tail = old[max(first - CONTEXT, 0) : first], old[old_end + last : old_end + last + CONTEXT]
    head = f"…{head}" if first > CONTEXT else head
    tail = f"{tail}…" if old_end + last + CONTEXT < len(old) else tail
    return (
        _excerpt(old_words, [hunk.old for hunk in hunks], head, tail),
        _excerpt(new_words, [hunk.new for hunk in hunks], head, tail),
    )


def _common(left: _Text, other: _Text) -> int:
    """Length of the common start, by halves: a comparison of slices is fast."""
    low, high = 0, min(len(left), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _word_border(text: str, at: int, step: int) -> int:
    """The border of a word at or near a place; a long run of letters has none."""
    for _ in range(40):
        if not (0 < at < len(text) and _WITHIN_WORD.fullmatch(text, at - 1, at + 1)):
            break
        at += step
    return at


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[_Hunk]:
    """The places between words that both have once and in the same order. O(n log n)."""
    in_old, in_new = Counter(old), Counter(new)
    at_new = {word: at for at, word in enumerate(new) if in_new[word] == 1 == in_old[word]}
    pairs = _rising([(at, at_new[word]) for at, word in enumerate(old) if word in at_new])
    old_at = new_at = 0
    for old_next, new_next in [*pairs, (len(old), len(new))]:
        # Words around an anchor that are equal, though not the only ones, are no change.
        while old_at < old_next and new_at < new_next and old[old_at] == new[new_at]:
            old_at, new_at = old_at + 1, new_at + 1
        old_end, new_end = old_next, new_next
        while old_at < old_end and new_at < new_end and old[old_end - 1] == new[new_end - 1]:
            old_end, new_end = old_end - 1, new_end - 1
        if old_at < old_end or new_at < new_end:
            yield _Hunk((old_at, old_end), (new_at, new_end))
        old_at, new_at = old_next + 1, new_next + 1


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part whose second numbers rise."""
    ends: list[int] = []
    at_end: list[int] = []
    before = [-1] * len(pairs)
    for number, (_, value) in enumerate(pairs):
        length = bisect_left(ends, value)
        before[number] = at_end[length - 1] if length else -1
        if length == len(ends):
            ends.append(value)
            at_end.append(number)
        else:
            ends[length], at_end[length] = value, number
    part = []
    number = at_end[-1] if at_end else -1
    while number >= 0:
        part.append(pairs[number])
        number = before[number]
    return part[::-1]


def _merged(hunks: Sequence[_Hunk], words: Sequence[str]) -> list[_Hunk]:
    """Places with less between them than is shown around them are one."""
    made: list[_Hunk] = []
    for hunk in hunks:
        if made and sum(map(len, words[made[-1].old[1] : hunk.old[0]])) < CONTEXT:
            made[-1] = _Hunk((made[-1].old[0], hunk.old[1]), (made[-1].new[0], hunk.new[1]))
        else:
            made.append(hunk)
    return made


def _excerpt(words: Sequence[str], places: Sequence[tuple[int, int]], head: str, tail: str) -> str:
    """The words of the places with those around them."""
    parts: list[str] = []
    size = 0
    for number, (start, end) in enumerate(places):
        if size > DIFF_LINE:
            parts.append("…")
            break
        is_first, is_last = not number, number + 1 == len(places)
        before = "".join(words[0 if is_first else places[number - 1][1] : start])
        behind = "".join(words[end : len(words) if is_last else places[number + 1][0]])
        if not is_first:
            lead = before[-CONTEXT:]
        else:
            lead = f"…{before[-CONTEXT:]}" if len(before) > CONTEXT else head + before
        rest = behind + tail if is_last and len(behind) <= CONTEXT else f"{behind[:CONTEXT]}…"
        part = lead + _cut("".join(words[start:end]), PLACE) + rest
        parts.append(part)
        size += len(part)
    return "".join(parts)
