"""Relevance of links for the keywords of a job: `Outlinks.priorities` for best-first crawls.

A link scores by its anchor text, by its URL, and by its page. The link's own texts weigh most; a relevant page makes
its links more relevant, those in its text more than those in its menus. The score is a search for a few byte strings in
the packed buffers, so that a link without a keyword costs nothing. Stateless between pages; inheritance over several
pages is the scheduler's (`strategies.inherited`).

In scripts with spaces a keyword must start at the start of a word and end at most two letters before its end (solar and
solars match, insolar and solarium do not). In scripts without spaces it matches anywhere. ASCII case is folded in the
page; for other scripts the keyword is searched in lower case, capitalised and in capitals.

Sources: Cho, Garcia-Molina and Page, Efficient Crawling Through URL Ordering, 1998; Hersovici et al., The Shark-Search
Algorithm, 1998.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import quote

from nephila.kernel.messages import Outlinks
from nephila.kernel.pages.link_position import NAV, POSITIONS

MAX_KEYWORDS: Final = 64
MAX_TEXT_BYTES: Final = 4096
"""The start of a text shows its subject."""
MAX_HITS: Final = 2000
"""Hits of one keyword in one buffer, against pages that repeat it a million times."""
ANCHOR: Final = (0.0, 0.75, 0.92)
"""Relevance of a link by the number of keywords in its anchor: none, one, several."""
URL: Final = (0.0, 0.5, 0.7)
PARENT: Final = 0.5
"""Share of the page's relevance that its links inherit,"""
PARENT_IN_NAV: Final = 0.25
"""and links in its navigation, which every page of a site has."""
_TAIL: Final = 2
_UNSPACED: Final = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_SHARES: Final = [PARENT_IN_NAV if position == NAV else PARENT for position in POSITIONS]
_TITLE_WEIGHT: Final = 3
_SATURATION: Final = 4

Ends = memoryview | None
"""uint32 ends of concatenated texts, or None for one text."""


class Relevance:
    """The prepared keywords of one job. A page costs 10-20 µs, a link without a keyword under 0.1 µs."""

    def __init__(self, keywords: Iterable[str]) -> None:
        """`keywords` are words and phrases in lower case; blank ones and those beyond 64 are ignored."""
        words = [" ".join(word.split()) for word in keywords]
        self._words = [_Keyword(word) for word in dict.fromkeys(filter(None, words))][:MAX_KEYWORDS]

    def of_page(self, title: str, text: bytes) -> float:
        """Relevance of a page, 0-1, by its title and the start of its text (UTF-8)."""
        start = bytes(text[:MAX_TEXT_BYTES]).lower()
        head = title.encode("utf-8", "replace").lower()
        points = matched_words = 0
        for word in self._words:
            hits = min(sum(1 for _ in word.in_text(start)), 3) + _TITLE_WEIGHT * any(word.in_text(head))
            points += hits
            matched_words += hits > 0
        # Several keywords weigh more than one keyword several times.
        points += matched_words if matched_words > 1 else 0
        return points / (points + _SATURATION)

    def priorities(self, title: str, text: bytes, links: Outlinks) -> bytes:
        """One byte per link, 0-255. O(bytes of the buffers + hits x log links)."""
        page = self.of_page(title, text)
        # Links of documents have no flags: their position is unknown.
        flags = links.flags or bytes(len(links.fingerprints) // 16)
        priorities = bytearray(flags.translate(bytes(_byte(share * page) for share in _SHARES)))
        anchors = self._hits(links.anchors, links.anchor_ends, _Keyword.in_text)
        urls = self._hits(links.urls, links.url_ends, _Keyword.in_url)
        for i in anchors.keys() | urls.keys():
            rest = (1 - ANCHOR[min(anchors.get(i, 0), 2)]) * (1 - URL[min(urls.get(i, 0), 2)])
            rest *= 1 - _SHARES[flags[i]] * page
            priorities[i] = _byte(1 - rest)
        return bytes(priorities)

    def _hits(self, packed: bytes, packed_ends: bytes, search: _Search) -> dict[int, int]:
        """Link → number of its keywords, for links with at least one."""
        if not packed:
            return {}
        folded, ends = bytes(packed).lower(), memoryview(packed_ends).cast("I")
        hits: dict[int, int] = {}
        for word in self._words:
            for link in {bisect_right(ends, start) for start, _ in search(word, folded, ends)}:
                hits[link] = hits.get(link, 0) + 1
        return hits


class _Keyword:
    """One word or phrase, as byte strings for texts and for URLs."""

    __slots__ = ("_in_texts", "_in_urls", "_spaced")

    def __init__(self, word: str) -> None:
        word = word.lower()
        self._spaced = not (_unspaced(word[0]) or _unspaced(word[-1]))
        cases = (word, word.capitalize(), word.title(), word.upper())
        self._in_texts = _forms(case.encode("utf-8", "replace") for case in cases)
        joined = (word.replace(" ", sign) for sign in ("-", "_", "+", "%20", ""))
        self._in_urls = _forms(quote(form, safe="%+", errors="replace").encode() for form in joined)

    def in_text(self, folded: bytes, ends: Ends = None) -> Iterator[tuple[int, int]]:
        """(start, end) of each occurrence; `ends`: the ends of the texts if several are concatenated."""
        return _occurrences(folded, self._in_texts, self._spaced, ends)

    def in_url(self, folded: bytes, ends: Ends = None) -> Iterator[tuple[int, int]]:
        """(start, end) of each occurrence in URLs, with their escapes and separators."""
        # Escaped text has no visible word boundaries.
        return _occurrences(folded, self._in_urls, self._spaced and b"%" not in self._in_urls[0], ends)


_Search = Callable[[_Keyword, bytes, Ends], Iterator[tuple[int, int]]]


def _forms(written: Iterable[bytes]) -> list[bytes]:
    """Unique forms, folded like the buffers."""
    return list(dict.fromkeys(form.lower() for form in written))


def _occurrences(folded: bytes, forms: list[bytes], spaced: bool, ends: Ends) -> Iterator[tuple[int, int]]:
    for form in forms:
        at, left = folded.find(form), MAX_HITS
        while at >= 0 and left:
            end = at + len(form)
            first, last = _text_around(at, len(folded), ends)
            if end <= last and (not spaced or (_starts_word(folded, at, first) and _ends_word(folded, end, last))):
                yield at, end
            at, left = folded.find(form, end), left - 1


def _text_around(at: int, length: int, ends: Ends) -> tuple[int, int]:
    """Start and end of the text at a position."""
    if ends is None:
        return 0, length
    link = bisect_right(ends, at)
    return (ends[link - 1] if link else 0), (ends[link] if link < len(ends) else 0)


def _starts_word(folded: bytes, at: int, first: int) -> bool:
    """Whether a word may start here: no letter precedes it."""
    before = folded[max(first, at - 4) : at].decode("utf-8", "ignore")
    return not before or not _letter(before[-1])


def _ends_word(folded: bytes, end: int, last: int) -> bool:
    """Whether the word ends after at most two more letters."""
    after = folded[end : min(last, end + 4 * (_TAIL + 1))].decode("utf-8", "ignore")
    return not all(map(_letter, after[: _TAIL + 1])) or len(after) <= _TAIL


def _letter(char: str) -> bool:
    return char.isalnum() and not _unspaced(char)


def _unspaced(char: str) -> bool:
    """Whether a script is written without spaces: Chinese, Japanese, Thai, Lao, Burmese, Khmer."""
    code = ord(char)
    return code >= 0x0E00 and any(first <= code <= last for first, last in _UNSPACED)


def _byte(relevance: float) -> int:
    return min(255, int(relevance * 255 + 0.5))
