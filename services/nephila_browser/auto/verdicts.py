"""`render: auto`: which pages need a browser, learnt per job, host and URL pattern. Pure.

A pattern has a verdict once two of its last three comparisons agree (`evidence.py`: when a page is compared again). A
pattern without one uses the verdict of its folder, which exists while the last five comparisons in it agree: pages
whose names are words are each a pattern of their own, and need no sample each. A plain page of such a folder with
little text is compared nevertheless. `verdict_file.py` stores the comparisons. A lookup is O(length of the URL).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from enum import Enum
from typing import Final

from nephila.kernel.fragment_routes import is_route
from nephila.kernel.pages.shells import has_few_words
from nephila.native import page_pass

from nephila_browser.auto.evidence import Evidence
from nephila_browser.auto.verdict_file import StoredVerdict

WINDOW: Final = 3
"""Comparisons of a pattern that count."""
QUORUM: Final = 2
"""Of them, those that have to agree."""
FOLDER_WINDOW: Final = 5
"""The same of a folder; all have to agree, since its pages may have several templates."""
MAX_PATTERNS: Final = 50_000
"""Patterns that are remembered; the one used least recently is dropped first."""
GAIN: Final = 0.1
"""Share of the words or links of the rendered page that the plain page lacks, above which it needs a browser."""
FOLDER: Final = "**"
"""Last segment of the pattern of a folder."""
_VARIABLE = re.compile(r"\d|^[0-9a-f-]{16,}$|.{40,}")


class Lane(Enum):
    """How a page is fetched."""

    HTTP = "http"
    BROWSER = "browser"
    BOTH = "both"
    """By both, one after the other, to compare them."""
    CHECKED = "checked"
    """By HTTP; by both if the plain page has little text. No page of its own pattern was compared."""


class WordsAndLinks:
    """What is compared of a page: its words and its links."""

    __slots__ = ("links", "words")

    def __init__(self, body: bytes, url: str, charset: str) -> None:
        facts = page_pass(body, url, charset)
        self.words = frozenset(bytes(facts.text).split())
        packed = bytes(facts.fingerprints)
        self.links = frozenset(packed[at : at + 16] for at in range(0, len(packed), 16))


def has_text(plain: WordsAndLinks) -> bool:
    """Whether a plain page has more words than the shell of an application."""
    return not has_few_words(plain.words)


def needs_browser(plain: WordsAndLinks, rendered: WordsAndLinks) -> bool:
    """Whether the rendered page has words or links in a number that the plain page lacks."""
    return _gain(plain.words, rendered.words) > GAIN or _gain(plain.links, rendered.links) > GAIN


def _gain(plain: frozenset[bytes], rendered: frozenset[bytes]) -> float:
    return len(rendered - plain) / len(rendered) if rendered else 0.0


def pattern_of(url: str) -> str:
    """The URL with `*` in the place of path segments that vary (numbers, hashes, long names) and without values of its
    query."""
    head, _, query = url.partition("#")[0].partition("?")
    scheme, _, rest = head.partition("://")
    host, *segments = rest.split("/")
    path = "/".join("*" if _VARIABLE.search(segment) else segment for segment in segments)
    names = "&".join(sorted({piece.partition("=")[0] for piece in query.split("&") if piece}))
    return f"{scheme}://{host}/{path}" + (f"?{names}" if names else "")


def folder_of(pattern: str) -> str:
    """The pattern of all pages in the folder of a page; empty where the last segment varies or is empty."""
    head, mark, query = pattern.partition("?")
    folder, _, name = head.rpartition("/")
    return "" if name in ("", "*") or folder.endswith("/") else f"{folder}/{FOLDER}{mark}{query}"


def describe(stored: Iterable[StoredVerdict], job: str, url: str) -> str:
    """The verdict on pages like this one in one line; empty when none of them was compared."""
    verdicts = Verdicts()
    verdicts.restore(verdict for verdict in stored if verdict.job == job)
    pattern = pattern_of(url)
    own, chosen = verdicts.evidence(job, pattern), verdicts.deciding(job, pattern)
    evidence = chosen or own
    if evidence is None or not evidence.needed:
        return ""
    needed = f"{sum(evidence.needed)} of the last {len(evidence.needed)} pages compared needed a browser"
    if chosen is None:
        return f"both: {needed}; {pattern} is still sampled"
    lane = Lane.BROWSER if chosen.verdict else Lane.HTTP
    return f"{lane.value}: {needed} ({pattern if chosen is own else folder_of(pattern)})"


class Verdicts:
    """The verdicts of all jobs of this process."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Evidence] = OrderedDict()
        """By job and pattern; folders too."""
        self.compared = 0
        self.needed = 0
        """Comparisons in which the page needed a browser."""

    def choose(self, job: str, url: str, *, has_steps: bool = False) -> Lane:
        """The lane of a page. A route is not sent to the server, and steps need a browser."""
        if has_steps or is_route(url.partition("#")[2]):
            return Lane.BROWSER
        pattern = pattern_of(url)
        evidence = self.deciding(job, pattern)
        if evidence is None or evidence.is_due():
            return Lane.BOTH
        if evidence.verdict:
            return Lane.BROWSER
        return Lane.HTTP if evidence is self.evidence(job, pattern) else Lane.CHECKED

    def record(self, job: str, url: str, needed: bool) -> None:
        """Add the result of a comparison."""
        pattern = pattern_of(url)
        for folder in filter(None, (folder_of(pattern), pattern)):
            evidence = self._known.get((job, folder))
            if evidence is None:
                if len(self._known) >= MAX_PATTERNS:
                    self._known.popitem(last=False)
                evidence = self._known[job, folder] = _empty(folder)
            evidence.add(needed)
        self.compared += 1
        self.needed += needed

    def evidence(self, job: str, pattern: str) -> Evidence | None:
        """The comparisons of a pattern."""
        return self._known.get((job, pattern))

    def deciding(self, job: str, pattern: str) -> Evidence | None:
        """The comparisons that decide about a pattern: its own, else those of its folder; None: no verdict."""
        for folder in filter(None, (pattern, folder_of(pattern))):
            evidence = self._known.get((job, folder))
            if evidence is not None and evidence.verdict is not None:
                self._known.move_to_end((job, folder))
                return evidence
        return None

    def stored(self) -> list[StoredVerdict]:
        """All comparisons that count, for the file."""
        return [
            StoredVerdict(job, pattern, list(evidence.needed), evidence.pages, evidence.every)
            for (job, pattern), evidence in self._known.items()
        ]

    def restore(self, stored: Iterable[StoredVerdict]) -> None:
        """Continue with the verdicts of the file."""
        for verdict in stored:
            if len(self._known) < MAX_PATTERNS:
                evidence = self._known[verdict.job, verdict.pattern] = _empty(verdict.pattern)
                evidence.needed.extend(verdict.needed)
                evidence.pages, evidence.every = verdict.pages, verdict.every

    def forget(self, job: str) -> None:
        """A job is deleted."""
        for key in [key for key in self._known if key[0] == job]:
            del self._known[key]

    def __len__(self) -> int:
        return len(self._known)


def _empty(pattern: str) -> Evidence:
    is_folder = pattern.partition("?")[0].endswith(f"/{FOLDER}")
    return Evidence(FOLDER_WINDOW, FOLDER_WINDOW) if is_folder else Evidence(WINDOW, QUORUM)
