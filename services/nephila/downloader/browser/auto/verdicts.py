"""`render: auto`: which pages need a browser, learnt per job, host and URL pattern. Pure.

The first SAMPLES pages of a pattern are fetched by both lanes and compared. Then the lane of the majority of the last
SAMPLES comparisons serves the pattern, and every tenth page is compared again. `verdict_file.py` stores the verdicts.
A lookup is O(length of the URL).
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterable
from enum import Enum
from typing import Final

from nephila.downloader.browser.auto.verdict_file import StoredVerdict
from nephila.kernel.fragment_routes import is_route
from nephila.native import page_pass

SAMPLES: Final = 3
PROBE_EVERY: Final = 10
MAX_PATTERNS: Final = 50_000
"""Patterns that are remembered; the one used least recently is dropped first."""
GAIN: Final = 0.1
"""Share of the words or links of the rendered page that the plain page lacks, above which it needs a browser."""
_VARIABLE = re.compile(r"\d|^[0-9a-f-]{16,}$|.{40,}")


class Lane(Enum):
    """How a page is fetched."""

    HTTP = "http"
    BROWSER = "browser"
    BOTH = "both"
    """By both, one after the other, to compare them."""


class Content:
    """What is compared of a page: its words and its links."""

    __slots__ = ("links", "words")

    def __init__(self, body: bytes, url: str, charset: str) -> None:
        found = page_pass(body, url, charset)
        self.words = frozenset(bytes(found.text).split())
        packed = bytes(found.fingerprints)
        self.links = frozenset(packed[at : at + 16] for at in range(0, len(packed), 16))


def needs_browser(plain: Content, rendered: Content) -> bool:
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


def describe(verdicts: Iterable[StoredVerdict], job: str, url: str) -> str:
    """The verdict on pages like this one in one line; empty when none of them was compared."""
    pattern = pattern_of(url)
    for one in verdicts:
        if one.job == job and one.pattern == pattern and one.needed:
            needed = f"{sum(one.needed)} of the last {len(one.needed)} pages compared needed a browser"
            if len(one.needed) < SAMPLES:
                return f"both: {needed}; {pattern} is still sampled"
            lane = Lane.BROWSER if 2 * sum(one.needed) > len(one.needed) else Lane.HTTP
            return f"{lane.value}: {needed} ({pattern})"
    return ""


class Verdicts:
    """The verdicts of all jobs of this process."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], deque[bool]] = OrderedDict()
        self._counts: dict[tuple[str, str], int] = {}
        self.compared = 0
        self.needed = 0
        """Comparisons in which the page needed a browser."""

    def choose(self, job: str, url: str, *, has_steps: bool = False) -> Lane:
        """The lane of a page. A route is not sent to the server, and steps need a browser."""
        if has_steps or is_route(url.partition("#")[2]):
            return Lane.BROWSER
        key = (job, pattern_of(url))
        found = self._known.get(key)
        if found is None or len(found) < SAMPLES:
            return Lane.BOTH
        self._known.move_to_end(key)
        self._counts[key] += 1
        if self._counts[key] % PROBE_EVERY == 0:
            return Lane.BOTH
        return Lane.BROWSER if 2 * sum(found) > len(found) else Lane.HTTP

    def record(self, job: str, url: str, needed: bool) -> None:
        """Add the result of a comparison."""
        key = (job, pattern_of(url))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MAX_PATTERNS:
                oldest, _ = self._known.popitem(last=False)
                self._counts.pop(oldest, None)
            found = self._known[key] = deque(maxlen=SAMPLES)
            self._counts[key] = 0
        found.append(needed)
        self.compared += 1
        self.needed += needed

    def stored(self) -> list[StoredVerdict]:
        """All comparisons that count, for the file."""
        return [
            StoredVerdict(job, pattern, list(found), self._counts[job, pattern])
            for (job, pattern), found in self._known.items()
        ]

    def restore(self, stored: Iterable[StoredVerdict]) -> None:
        """Continue with the verdicts of the file."""
        for one in stored:
            if len(self._known) < MAX_PATTERNS:
                self._known[one.job, one.pattern] = deque(one.needed, maxlen=SAMPLES)
                self._counts[one.job, one.pattern] = one.pages

    def forget(self, job: str) -> None:
        """A job is deleted."""
        for key in [key for key in self._known if key[0] == job]:
            del self._known[key], self._counts[key]

    def __len__(self) -> int:
        return len(self._known)
