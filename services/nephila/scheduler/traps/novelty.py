"""Traps by yield: parts of a host that feed on themselves and bring nothing new are closed for a job. Pure.

One `Yield` per (host, job). Every fetched page counts for its places (`places.where`): it brought a new text, a text
that this host has shown before, or a new text in a body about as long as some of the last of its place (a calendar
that differs by the name of a month, a page that differs by a number). A place is closed when its last pages were barren
without a break, as many as the cap says, *and* it fed itself: those pages led to at least one new URL of the place in
four, the last of them lately. A parameter is blamed only if most of its values were new: a session id, not the product
shown under it. A text of another directory that is new in this one is a copy, of a mirror or a translation: it counts
neither way, for the first COPIES of a text.

Invariants: the root of a host is never closed; a page with a new text of a new length, or with a new link to a place
that is not barren, sets the count of all its places back to nothing; what was released by hand is not judged again;
of a closed place up to half a cap of queued URLs are fetched all the same (`spare`), for it may have stopped growing
just then; memory is bounded (`MAX_PATTERNS`, `MAX_CLOSED`, two memories of hashes); the same calls give the same
verdicts.
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
"""Fetches a job makes on a host before its places are worth their memory (2 KB): most hosts never have so many. Texts
are remembered from the first. With a cap of less than 64, a quarter of it."""
MAX_PATTERNS: Final = 256
MAX_CLOSED: Final = 256
MAX_TEXTS: Final = 8192
"""Texts remembered per host: 64 KiB."""
MAX_SESSION_COPIES: Final = 4096
MAX_VALUES: Final = 4096
"""Copies under session ids and values of parameters: 32 KiB each, on hosts that have some."""
SAME_TEXT: Final = 3
SAME_SIZE: Final = 2
"""What a barren fetch weighs in thirds of one: a text shown before, and a new text of a length shown before."""
SIZES: Final = 4
SIZE_SLACK: Final = 6
SIZE_AGE: Final = 32
"""Lengths remembered of a place, what a month or a number more may differ by, and fetches until one is forgotten.
Texts that people write spread over more than the 52 lengths this makes; a row of 150 that never leaves them is no
accident."""
COPIES: Final = 8
"""Directories in which a text is a copy of the one that the host showed first."""
EXHAUSTED_AFTER: Final = 20
"""After this many texts in a row that were not new, a link into a place is no news any more."""
NEVER: Final = 50
"""A parameter with at most one new text in this many fetches needs no growth to be closed: /login?return=…"""

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
)
_fields_of: Final = attrgetter(*_FIELDS)
_Row = tuple[str, int, int, int, int, int, int, int, int, list[tuple[int, int]]]
_STATE: Final = msgspec.msgpack.Decoder(tuple[int, int, bytes, bytes, bytes, list[_Row], list[Quarantine]])


class PatternCounts:
    """What came of one place. `run` counts fetches since the last news, `weight` the same in thirds, `dry` those since
    the last new text, whatever links came."""

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
        """Barren fetches since the last new URL of the place. Not in a snapshot: after one it counts as growing."""
        self.fetches = self.new_texts = self.duplicate_run = self.weight = self.near_duplicates = 0
        self.self_links = self.new_values = self.since_new_text = 0
        self.sizes: list[tuple[int, int]] = []

    def clear(self) -> None:
        """Something new came: the count begins again."""
        self.duplicate_run = self.weight = self.near_duplicates = self.self_links = self.new_values = (
            self.since_self_link
        ) = 0

    def record_duplicate(self, weight: int, fresh: bool) -> None:
        """A page that brought nothing, under a parameter's value that may be fresh."""
        self.duplicate_run += 1
        self.since_new_text += 1
        self.since_self_link += 1
        self.weight += weight
        self.near_duplicates += weight == SAME_SIZE
        self.new_values += fresh

    def known_size(self, size_bytes: int) -> bool:
        """Whether a body is about as long as one of this place's last; it is one of them from now on."""
        known, now = False, self.fetches
        others = [(size_bytes, now)]
        for one in self.sizes:
            if abs(one[0] - size_bytes) > SIZE_SLACK:
                others.append(one)
            elif now - one[1] <= SIZE_AGE:
                known = True
        self.sizes = others[:SIZES]
        return known

    def can_close(self, cap: float, name: str) -> bool:
        """Whether it is certain enough that nothing will come."""
        parameter = "?" in name
        if name.endswith("/") and self.duplicate_run < self.new_texts:
            # A whole directory that was fruitful: the narrower places in it are closed long before.
            return False
        if self.weight < SAME_TEXT * cap or (parameter and 2 * self.new_values < self.duplicate_run):
            return False
        if 4 * self.self_links >= self.duplicate_run and 2 * self.since_self_link < cap:
            return True
        return parameter and NEVER * (self.new_texts + self.near_duplicates) <= self.duplicate_run


class NoveltyTracker:
    """What the parts of one host bring one job. `cap_fetches` and `cap_share` may be set anew at any time."""

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
        """Zeros mean the defaults: 100 fetches, 5 % of the host's. `fetches`: made before anybody watched."""
        self.job = job
        self.host = host
        self.cap_fetches = cap_fetches or CAP_FETCHES
        self.cap_share = cap_share or CAP_SHARE
        self.fetches = fetches
        self.closed: dict[str, Quarantine] = {}
        """By place; those released by hand too. Empty for nearly every host: ask before `verdict`."""
        self._patterns: dict[str, PatternCounts] = {}
        self._exempt: dict[str, int] = {}
        """Closed place → queued URLs of it that are fetched all the same. Not in a snapshot."""
        self._texts = RecentHashSet(MAX_TEXTS)
        self._session_copies: RecentHashSet | None = None
        self._values: RecentHashSet | None = None

    # ---- verdicts

    def verdict(self, url: str) -> str:
        """Why a URL is not fetched, or the empty string. Free while nothing is closed, then some microseconds."""
        if not self.closed:
            return ""
        for place in patterns_of(url).patterns:
            quarantine = self.closed.get(place)
            if quarantine is not None and not quarantine.released:
                return f"{place} was closed as a trap: {quarantine.reason}"
        return ""

    def exempt(self, url: str) -> bool:
        """Whether a queued URL of a closed place is fetched all the same; counted down. News there allow some more."""
        for place in patterns_of(url).patterns:
            left = self._exempt.get(place, 0)
            if left:
                self._exempt[place] = left - 1
                return True
        return False

    def is_session_copy(self, url: str) -> str:
        """Why a *link* is another copy of a page under a new session id, or the empty string; remembers the link.

        Two copies are let through: the first may come to nothing. Not for seeds and targets of redirects: a server may
        send every visitor to a session of his own.
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
        """The URL without its session id, when `twin` would refuse a link to it; remembers nothing."""
        bare = without_session(url) if self._session_copies is not None else ""
        if not bare or self._session_copies is None:
            return ""
        key = _hash(bare)
        return bare if key in self._session_copies and key ^ 1 in self._session_copies else ""

    # ---- what happens

    def linked(self, parent: str, new: Iterable[str]) -> None:
        """A page of this host led to these URLs, admitted as new: does its place feed itself, or lead elsewhere?

        About 0.1 µs per link into the same place, some microseconds for others. Before `fetched` of the same page or
        after it.
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
        places = patterns_of(parent).patterns
        if len(self._patterns) + len(places) > MAX_PATTERNS:
            self._forget()
        for name in places:
            place = self._patterns.get(name)
            if place is None:
                place = self._patterns[name] = PatternCounts()
            if leads:
                place.clear()
            place.self_links += self_links
            if self_links:
                place.since_self_link = 0

    def fetched(self, url: str, text_hash: bytes, size_bytes: int, now_utc: float) -> Quarantine | None:
        """A page was fetched for the first time: its text's hash (empty: it has none), the length of its body.

        Returns the quarantine when this closes a place; log it. Not for fetches that failed or led elsewhere, nor for
        a fetch again. Some microseconds.
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
        watched = not self.closed or not any(place in self.closed for place in at.patterns)
        for name, value in zip(at.patterns, at.values, strict=True):
            place = self._patterns.get(name)
            if place is None:
                place = self._patterns[name] = PatternCounts()
            place.fetches += 1
            if weight == 0:
                place.new_texts += 1
                place.since_new_text = 0
                place.clear()
                if name in self._exempt:
                    self._exempt[name] = self.cap_fetches // 10
            elif weight > 0 and watched:
                place.record_duplicate(weight, bool(value) and self._is_fresh(name, value))
        return self._close(at, now_utc) if weight > 0 and watched else None

    @property
    def watches(self) -> bool:
        """Whether there were enough fetches for places to be judged."""
        return self.fetches > WATCH_FROM or 4 * self.fetches > self.cap_fetches

    def _is_new(self, url: str, text_hash: bytes) -> bool:
        # http and https twins of one host are no sign of a trap.
        return bool(text_hash) and self._texts.add(int.from_bytes(text_hash[:8], "little") ^ url.startswith("https"))

    def _is_copy(self, url: str, text_hash: bytes) -> bool:
        """Whether a text that the host has shown is new in the directory of this URL, as in a mirror or a translation.
        Pages behind a query are no files of a directory."""
        if "?" in url:
            return False
        text = int.from_bytes(text_hash[:8], "little")
        directory = url[: url.rfind("/") + 1]
        if not self._texts.add(text ^ _hash(directory)):
            return False
        return any(self._texts.add(text ^ _hash(f"copy {number}")) for number in range(COPIES))

    def _is_fresh(self, place: str, value: str) -> bool:
        if self._values is None:
            self._values = RecentHashSet(MAX_VALUES)
        return self._values.add(_hash(f"{place}={value}"))

    def _weight(self, url: str, at: Patterns, text_hash: bytes, size_bytes: int) -> int:
        """0 for news, else how barren the page was; -1 for what says nothing: no text, or a copy's."""
        if not text_hash:
            return -1
        narrowest = self._patterns.get(at.patterns[0]) if at.patterns else None
        known_size = narrowest is not None and narrowest.known_size(size_bytes)
        if not self._is_new(url, text_hash):
            return -1 if self._is_copy(url, text_hash) else SAME_TEXT
        return SAME_SIZE if known_size else 0

    def _close(self, at: Patterns, now_utc: float) -> Quarantine | None:
        cap = max(float(self.cap_fetches), self.cap_share * self.fetches)
        found = [name for name in at.patterns if self._patterns[name].can_close(cap, name)]
        if not found or len(self.closed) >= MAX_CLOSED:
            return None
        # The place that has brought least; of equals the narrowest.
        name = min(found, key=lambda n: self._patterns[n].new_texts / self._patterns[n].fetches)
        place = self._patterns.pop(name)
        for other in at.patterns:
            # What the closed place has cost is explained; the places around it begin again.
            if other != name:
                self._patterns[other].clear()
        what = "nothing new" if not place.near_duplicates else "nothing but pages of the same texts or lengths"
        reason = f"{what} in its last {place.duplicate_run} fetches of {place.fetches}"
        quarantine = Quarantine(self.job, self.host, name, reason, now_utc, place.fetches)
        self.closed[name] = quarantine
        # Half a cap, and where that would be more than twice the cap in all a tenth.
        left = 2 * cap - place.fetches - WATCH_FROM
        self._exempt[name] = int(min(max(left, cap / 10), cap / 2))
        return quarantine

    # ---- quarantines

    def release(self, place: str) -> Quarantine | None:
        """Open a place again for good; returns what to log, None when it is not closed."""
        quarantine = self.closed.get(place)
        if quarantine is None or quarantine.released:
            return None
        released = msgspec.structs.replace(quarantine, released=True)
        self.closed[place] = released
        return released

    def restore(self, quarantine: Quarantine) -> None:
        """Take over a logged quarantine."""
        self.closed[quarantine.place] = quarantine
        self._patterns.pop(quarantine.place, None)

    def places(self) -> Iterator[tuple[str, int, int, int]]:
        """(place, fetches, pages with news, barren fetches in a row) of what is judged, for people."""
        for name, place in self._patterns.items():
            yield name, place.fetches, place.new_texts, place.duplicate_run

    # ---- places

    def _is_exhausted(self, url: str) -> bool:
        known = (self._patterns.get(name) for name in patterns_of(url).patterns)
        return any(place.since_new_text >= EXHAUSTED_AFTER for place in known if place is not None)

    def _forget(self) -> None:
        """Drop the quarter that is farthest from a verdict; O(places), once in 64 new ones. What gets fetches comes
        back before it could have got far."""
        ranked = sorted(
            self._patterns, key=lambda name: (self._patterns[name].weight, self._patterns[name].fetches, name)
        )
        for name in ranked[: MAX_PATTERNS // 4]:
            del self._patterns[name]

    # ---- snapshots

    def pack(self) -> bytes:
        """Everything, quarantines included. O(size), at most about 180 KiB."""
        memories = [
            b"" if memory is None else memory.pack() for memory in (self._texts, self._session_copies, self._values)
        ]
        places = [(name, *_fields_of(place), place.sizes) for name, place in self._patterns.items()]
        state = (_VERSION, self.fetches, *memories, places, list(self.closed.values()))
        return msgspec.msgpack.encode(state)

    def unpack(self, packed: bytes) -> None:
        """Take over what `pack` gave; ValueError when it cannot be that, and nothing is changed."""
        try:
            version, fetches, texts, twins, values, rows, closed = _STATE.decode(packed)
            if version != _VERSION:
                raise ValueError(f"version {version}, not {_VERSION}")
            memories = RecentHashSet(MAX_TEXTS), RecentHashSet(MAX_SESSION_COPIES), RecentHashSet(MAX_VALUES)
            for memory, state in zip(memories, (texts, twins, values), strict=True):
                memory.restore(state)
            if len(rows) > MAX_PATTERNS or len(closed) > MAX_CLOSED:
                raise ValueError(f"{len(rows)} places, {len(closed)} closed")
            places = {row[0]: _counts_of(row[1:-1], row[-1]) for row in rows}
        except (msgspec.DecodeError, msgspec.ValidationError, ValueError) as error:
            raise ValueError(f"state of the traps of {self.host} is damaged: {error}") from None
        self.fetches, self._patterns = fetches, places
        self._texts, self._session_copies, self._values = (
            memories[0],
            memories[1] if twins else None,
            memories[2] if values else None,
        )
        self.closed = {quarantine.place: quarantine for quarantine in closed}

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        self._texts.check()
        assert len(self._patterns) <= MAX_PATTERNS, f"{len(self._patterns)} places"
        assert len(self.closed) <= MAX_CLOSED, f"{len(self.closed)} closed places"
        for name, p in self._patterns.items():
            assert name != "/", "the root is judged"
            assert p.new_texts <= p.fetches <= self.fetches, (
                f"{name}: {p.new_texts} news in {p.fetches} of {self.fetches} fetches"
            )
            assert p.near_duplicates <= p.duplicate_run <= p.fetches, (
                f"{name}: {p.duplicate_run} barren of {p.fetches} fetches"
            )
            assert p.weight == SAME_TEXT * (p.duplicate_run - p.near_duplicates) + SAME_SIZE * p.near_duplicates, (
                f"{name}: weight {p.weight}"
            )
            assert p.new_values <= p.duplicate_run <= p.since_new_text, (
                f"{name}: {p.new_values} fresh values in {p.duplicate_run} fetches, {p.since_new_text} dry"
            )
            assert len(p.sizes) <= SIZES, f"{name}: {len(p.sizes)} sizes"


def _counts_of(numbers: Sequence[int], sizes: list[tuple[int, int]]) -> PatternCounts:
    place = PatternCounts()
    for field, number in zip(_FIELDS, numbers, strict=True):
        setattr(place, field, number)
    place.sizes = sizes[:SIZES]
    return place


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
