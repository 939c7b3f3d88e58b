"""Novelty: parts of a host that link to themselves and bring no new text are closed for a job, as a trap. Pure.

There is one `NoveltyTracker` per (host, job). Every fetched page counts for its path patterns (`path_patterns`). A page
has a new text, or a duplicate (a text that this host has shown before), or a near duplicate (a new text in a body about
as long as other recent ones of the pattern, such as a calendar that differs only by the name of a month).

A pattern is closed when two things hold. Its last fetches brought only duplicates, as many in a row as the cap. And it
feeds itself: those pages led to at least one new URL of the same pattern per four fetches, the last of them recently. A
query parameter is closed only if most of its values were new: that is a session id, not the product shown under it. A
duplicate that is new in its directory is a copy in a mirror or a translation. It counts neither way, up to COPIES
times.

Invariants: the root of a host is never closed. A new text of a new length, or a link to a pattern that still brings new
texts, resets the counts of all patterns of the page. A released pattern is not closed again. Of a closed pattern up to
half a cap of queued URLs is still fetched (`exempt`), because it may have stopped growing just then. Memory is bounded
(`MAX_PATTERNS`, `MAX_CLOSED`, three bounded hash sets). The same calls give the same verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Final

import msgspec

from nephila.kernel.messages import Quarantine
from nephila.scheduler.traps.path_patterns import Patterns, common_prefix, patterns_of
from nephila.scheduler.traps.recent_hashes import RecentHashSet
from nephila.scheduler.traps.url_shape import without_session

CAP_FETCHES: Final = 100
CAP_SHARE: Final = 0.05
WATCH_FROM: Final = 16
"""Fetches of a job on a host before patterns are counted: they cost 2 KB, and most hosts never have so many fetches.
Texts are remembered from the first fetch. With a cap below 64: a quarter of the cap."""
MAX_PATTERNS: Final = 256
MAX_CLOSED: Final = 256
MAX_TEXTS: Final = 8192
"""Texts remembered per host: 64 KiB."""
MAX_SESSION_COPIES: Final = 4096
MAX_VALUES: Final = 4096
"""Session copies and parameter values remembered: 32 KiB each, on hosts that have some."""
SAME_TEXT: Final = 3
SAME_SIZE: Final = 2
"""Weights of a duplicate and of a near duplicate, in thirds of a fetch."""
SIZES: Final = 4
SIZE_SLACK: Final = 6
SIZE_AGE: Final = 32
"""Lengths remembered per pattern; the difference that a month or a number makes; fetches until a length is forgotten.
Texts by people spread over more than these 52 lengths. A run of 150 that never leaves them is no accident."""
COPIES: Final = 8
"""Directories in which a duplicate counts as a copy."""
EXHAUSTED_AFTER: Final = 20
"""After so many duplicates in a row, a link to a pattern is no sign of novelty any more."""
NEVER: Final = 50
"""A parameter with at most one new text in so many fetches is closed without growth, such as /login?return=…"""

_VERSION: Final = 1
_FIELDS: Final = (
    "fetches",
    "new_texts",
    "duplicate_run",
    "weight",
    "near_duplicates",
    "self_links",
    "new_values",
    "since_new_text",
    "since_self_link",
)
_fields_of: Final = attrgetter(*_FIELDS)
_Row = tuple[str, int, int, int, int, int, int, int, int, int, list[tuple[int, int]]]
_STATE: Final = msgspec.msgpack.Decoder(tuple[int, int, bytes, bytes, bytes, list[_Row], list[Quarantine]])


class PatternCounts:
    """Counts of one path pattern. `duplicate_run`: fetches since the last novelty; `weight`: the same in thirds;
    `since_new_text`: fetches since the last new text, with or without new links."""

    __slots__ = (
        "duplicate_run",
        "fetches",
        "near_duplicates",
        "new_texts",
        "new_values",
        "self_links",
        "since_new_text",
        "since_self_link",
        "sizes",
        "weight",
    )

    def __init__(self) -> None:
        self.since_self_link = 0
        """Duplicates since the last new URL of the pattern."""
        self.fetches = self.new_texts = self.duplicate_run = self.weight = self.near_duplicates = 0
        self.self_links = self.new_values = self.since_new_text = 0
        self.sizes: list[tuple[int, int]] = []

    def clear(self) -> None:
        """Novelty resets the run."""
        self.duplicate_run = self.weight = self.near_duplicates = self.self_links = self.new_values = (
            self.since_self_link
        ) = 0

    def record_duplicate(self, weight: int, fresh: bool) -> None:
        """Count a page without novelty; `fresh`: under a new value of the parameter."""
        self.duplicate_run += 1
        self.since_new_text += 1
        self.since_self_link += 1
        self.weight += weight
        self.near_duplicates += weight == SAME_SIZE
        self.new_values += fresh

    def known_size(self, size_bytes: int) -> bool:
        """Whether a body is about as long as one of the last; adds its length."""
        repeated, now = False, self.fetches
        others = [(size_bytes, now)]
        for fetch in self.sizes:
            if abs(fetch[0] - size_bytes) > SIZE_SLACK:
                others.append(fetch)
            elif now - fetch[1] <= SIZE_AGE:
                repeated = True
        self.sizes = others[:SIZES]
        return repeated

    def can_close(self, cap: float, name: str) -> bool:
        """Whether the evidence is enough to close the pattern."""
        parameter = "?" in name
        if name.endswith("/") and self.duplicate_run < self.new_texts:
            # Most of this directory was new. A trap inside it is closed by its narrower pattern long before.
            return False
        if self.weight < SAME_TEXT * cap or (parameter and 2 * self.new_values < self.duplicate_run):
            return False
        if 4 * self.self_links >= self.duplicate_run and 2 * self.since_self_link < cap:
            return True
        return parameter and NEVER * (self.new_texts + self.near_duplicates) <= self.duplicate_run


class NoveltyTracker:
    """Novelty of one host for one job. `cap_fetches` and `cap_share` may change at any time."""

    __slots__ = (
        "_exempt",
        "_patterns",
        "_session_copies",
        "_texts",
        "_values",
        "cap_fetches",
        "cap_share",
        "closed",
        "fetches",
        "host",
        "job",
    )

    def __init__(self, job: str, host: str, cap_fetches: int = 0, cap_share: float = 0.0, fetches: int = 0) -> None:
        """Zeros mean the defaults: 100 fetches, 5 % of the host's. `fetches`: made before tracking started."""
        self.job = job
        self.host = host
        self.cap_fetches = cap_fetches or CAP_FETCHES
        self.cap_share = cap_share or CAP_SHARE
        self.fetches = fetches
        self.closed: dict[str, Quarantine] = {}
        """Quarantines by pattern, released ones too. Empty for nearly every host: check it before `verdict`."""
        self._patterns: dict[str, PatternCounts] = {}
        self._exempt: dict[str, int] = {}
        """Closed pattern → queued URLs that are still fetched. Not in a snapshot."""
        self._texts = RecentHashSet(MAX_TEXTS)
        self._session_copies: RecentHashSet | None = None
        self._values: RecentHashSet | None = None

    # ---- verdicts

    def verdict(self, url: str) -> str:
        """Why a URL is not fetched, or the empty string. Free while nothing is closed, then some microseconds."""
        if not self.closed:
            return ""
        for pattern in patterns_of(url).patterns:
            quarantine = self.closed.get(pattern)
            if quarantine is not None and not quarantine.released:
                return f"{pattern} was closed as a trap: {quarantine.reason}"
        return ""

    def exempt(self, url: str) -> bool:
        """Whether a queued URL of a closed pattern is still fetched; counts down. A new text there allows some more."""
        for pattern in patterns_of(url).patterns:
            left = self._exempt.get(pattern, 0)
            if left:
                self._exempt[pattern] = left - 1
                return True
        return False

    def is_session_copy(self, url: str) -> str:
        """Why a *link* is a copy of a known page under a new session id, or the empty string; remembers the link.

        The first two copies pass, because the first may fail. Not for seeds and redirect targets: a server may send
        every visitor to a session of its own.
        """
        bare = without_session(url)
        if not bare:
            return ""
        if self._session_copies is None:
            self._session_copies = RecentHashSet(MAX_SESSION_COPIES)
        key = _hash(bare)
        if self._session_copies.add(key) or self._session_copies.add(key ^ 1):
            return ""
        return f"session id: {bare[:200]} is known under others"

    def session_copy_of(self, url: str) -> str:
        """The URL without its session id, when `is_session_copy` would refuse a link to it; remembers nothing."""
        bare = without_session(url) if self._session_copies is not None else ""
        if not bare or self._session_copies is None:
            return ""
        key = _hash(bare)
        return bare if key in self._session_copies and key ^ 1 in self._session_copies else ""

    # ---- events

    def linked(self, parent: str, new: Iterable[str]) -> None:
        """A page of this host led to these new URLs: does its pattern link to itself, or elsewhere?

        About 0.1 µs per link inside the pattern, some microseconds for others. Before or after `fetched` of that page.
        """
        if not self.watches:
            return
        root = parent[: parent.find("/", 8) + 1]
        inside = common_prefix(parent)
        self_links, leads = 0, False
        for url in new:
            if url.startswith(inside) or (url.startswith(root) and self._is_exhausted(url)):
                self_links += 1
            else:
                leads = True
                break
        if not self_links and not leads:
            return
        patterns = patterns_of(parent).patterns
        if len(self._patterns) + len(patterns) > MAX_PATTERNS:
            self._forget()
        for name in patterns:
            counts = self._patterns.get(name)
            if counts is None:
                counts = self._patterns[name] = PatternCounts()
            if leads:
                counts.clear()
            counts.self_links += self_links
            if self_links:
                counts.since_self_link = 0

    def fetched(self, url: str, text_hash: bytes, size_bytes: int, now_utc: float) -> Quarantine | None:
        """A page was fetched for the first time; `text_hash` is empty for a page without text, `size_bytes` is its
        body's length.

        Returns the quarantine when this closes a pattern; the caller logs it. Not for failed fetches, redirects and
        later fetches of a URL. Some microseconds.
        """
        self.fetches += 1
        if not self.watches:
            self._is_new(url, text_hash)
            return None
        at = patterns_of(url)
        if len(self._patterns) + len(at.patterns) > MAX_PATTERNS:
            self._forget()
        weight = self._weight(url, at, text_hash, size_bytes)
        if not at.patterns:
            return None
        watched = not self.closed or not any(pattern in self.closed for pattern in at.patterns)
        for name, value in zip(at.patterns, at.values, strict=True):
            counts = self._patterns.get(name)
            if counts is None:
                counts = self._patterns[name] = PatternCounts()
            counts.fetches += 1
            if weight == 0:
                counts.new_texts += 1
                counts.since_new_text = 0
                counts.clear()
                if name in self._exempt:
                    self._exempt[name] = self.cap_fetches // 10
            elif weight > 0 and watched:
                counts.record_duplicate(weight, bool(value) and self._is_fresh(name, value))
        return self._close(at, now_utc) if weight > 0 and watched else None

    @property
    def watches(self) -> bool:
        """Whether there were enough fetches to count patterns."""
        return self.fetches > WATCH_FROM or 4 * self.fetches > self.cap_fetches

    def _is_new(self, url: str, text_hash: bytes) -> bool:
        # The same page under http and https is no sign of a trap.
        return bool(text_hash) and self._texts.add(int.from_bytes(text_hash[:8], "little") ^ url.startswith("https"))

    def _is_copy(self, url: str, text_hash: bytes) -> bool:
        """Whether a duplicate is new in the directory of this URL, as in a mirror or a translation. A URL with a query
        is in no directory."""
        if "?" in url:
            return False
        text = int.from_bytes(text_hash[:8], "little")
        directory = url[: url.rfind("/") + 1]
        if not self._texts.add(text ^ _hash(directory)):
            return False
        return any(self._texts.add(text ^ _hash(f"copy {number}")) for number in range(COPIES))

    def _is_fresh(self, pattern: str, value: str) -> bool:
        if self._values is None:
            self._values = RecentHashSet(MAX_VALUES)
        return self._values.add(_hash(f"{pattern}={value}"))

    def _weight(self, url: str, at: Patterns, text_hash: bytes, size_bytes: int) -> int:
        """0 for novelty, else the weight of the duplicate; -1 for a page without text and for a copy."""
        if not text_hash:
            return -1
        narrowest = self._patterns.get(at.patterns[0]) if at.patterns else None
        known_size = narrowest is not None and narrowest.known_size(size_bytes)
        if not self._is_new(url, text_hash):
            return -1 if self._is_copy(url, text_hash) else SAME_TEXT
        return SAME_SIZE if known_size else 0

    def _close(self, at: Patterns, now_utc: float) -> Quarantine | None:
        cap = max(float(self.cap_fetches), self.cap_share * self.fetches)
        names = [name for name in at.patterns if self._patterns[name].can_close(cap, name)]
        if not names or len(self.closed) >= MAX_CLOSED:
            return None
        # The pattern with the fewest new texts; of equals the narrowest.
        name = min(names, key=lambda n: self._patterns[n].new_texts / self._patterns[n].fetches)
        counts = self._patterns.pop(name)
        for other in at.patterns:
            # The closed pattern explains these fetches; the counts of the wider patterns start again.
            if other != name:
                self._patterns[other].clear()
        what = "nothing new" if not counts.near_duplicates else "nothing but pages of the same texts or lengths"
        reason = f"{what} in its last {counts.duplicate_run} fetches of {counts.fetches}"
        quarantine = Quarantine(self.job, self.host, name, reason, now_utc, counts.fetches)
        self.closed[name] = quarantine
        # Half a cap; a tenth where the total would exceed two caps.
        left = 2 * cap - counts.fetches - WATCH_FROM
        self._exempt[name] = int(min(max(left, cap / 10), cap / 2))
        return quarantine

    # ---- quarantines

    def release(self, pattern: str) -> Quarantine | None:
        """Open a pattern again for good; returns the quarantine to log, None when the pattern is not closed."""
        quarantine = self.closed.get(pattern)
        if quarantine is None or quarantine.released:
            return None
        released = msgspec.structs.replace(quarantine, released=True)
        self.closed[pattern] = released
        return released

    def restore(self, quarantine: Quarantine) -> None:
        """Apply a logged quarantine."""
        self.closed[quarantine.place] = quarantine
        self._patterns.pop(quarantine.place, None)

    def patterns(self) -> Iterator[tuple[str, int, int, int]]:
        """(pattern, fetches, new texts, duplicates in a row) of all counted patterns, for display."""
        for name, counts in self._patterns.items():
            yield name, counts.fetches, counts.new_texts, counts.duplicate_run

    # ---- patterns

    def _is_exhausted(self, url: str) -> bool:
        patterns = (self._patterns.get(name) for name in patterns_of(url).patterns)
        return any(counts.since_new_text >= EXHAUSTED_AFTER for counts in patterns if counts is not None)

    def _forget(self) -> None:
        """Drop the quarter of the patterns that is farthest from being closed. O(patterns), once per 64 new ones. An
        active pattern comes back early enough."""
        ranked = sorted(
            self._patterns, key=lambda name: (self._patterns[name].weight, self._patterns[name].fetches, name)
        )
        for name in ranked[: MAX_PATTERNS // 4]:
            del self._patterns[name]

    # ---- snapshots

    def pack(self) -> bytes:
        """The whole state, with quarantines. O(size), at most about 180 KiB."""
        memories = [
            b"" if memory is None else memory.pack() for memory in (self._texts, self._session_copies, self._values)
        ]
        patterns = [(name, *_fields_of(counts), counts.sizes) for name, counts in self._patterns.items()]
        state = (_VERSION, self.fetches, *memories, patterns, list(self.closed.values()))
        return msgspec.msgpack.encode(state)

    def unpack(self, packed: bytes) -> None:
        """Apply the bytes of `pack`; ValueError, and no change, when they are damaged."""
        try:
            version, fetches, texts, twins, values, rows, closed = _STATE.decode(packed)
            if version != _VERSION:
                raise ValueError(f"version {version}, not {_VERSION}")
            memories = RecentHashSet(MAX_TEXTS), RecentHashSet(MAX_SESSION_COPIES), RecentHashSet(MAX_VALUES)
            for memory, state in zip(memories, (texts, twins, values), strict=True):
                memory.restore(state)
            if len(rows) > MAX_PATTERNS or len(closed) > MAX_CLOSED:
                raise ValueError(f"{len(rows)} patterns, {len(closed)} closed")
            patterns = {row[0]: _counts_of(row[1:-1], row[-1]) for row in rows}
        except (msgspec.DecodeError, msgspec.ValidationError, ValueError) as error:
            raise ValueError(f"state of the traps of {self.host} is damaged: {error}") from None
        self.fetches, self._patterns = fetches, patterns
        self._texts, self._session_copies, self._values = (
            memories[0],
            memories[1] if twins else None,
            memories[2] if values else None,
        )
        self.closed = {quarantine.place: quarantine for quarantine in closed}

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        self._texts.check()
        assert len(self._patterns) <= MAX_PATTERNS, f"{len(self._patterns)} patterns"
        assert len(self.closed) <= MAX_CLOSED, f"{len(self.closed)} closed patterns"
        for name, p in self._patterns.items():
            assert name != "/", "the root is judged"
            assert p.new_texts <= p.fetches <= self.fetches, (
                f"{name}: {p.new_texts} new texts in {p.fetches} of {self.fetches} fetches"
            )
            assert p.near_duplicates <= p.duplicate_run <= p.fetches, (
                f"{name}: {p.duplicate_run} duplicates of {p.fetches} fetches"
            )
            assert p.weight == SAME_TEXT * (p.duplicate_run - p.near_duplicates) + SAME_SIZE * p.near_duplicates, (
                f"{name}: weight {p.weight}"
            )
            assert p.new_values <= p.duplicate_run <= p.since_new_text, (
                f"{name}: {p.new_values} new values in {p.duplicate_run} fetches, {p.since_new_text} since a new text"
            )
            assert len(p.sizes) <= SIZES, f"{name}: {len(p.sizes)} sizes"


def _counts_of(numbers: Sequence[int], sizes: list[tuple[int, int]]) -> PatternCounts:
    counts = PatternCounts()
    for field, number in zip(_FIELDS, numbers, strict=True):
        setattr(counts, field, number)
    counts.sizes = sizes[:SIZES]
    return counts


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
