"""Due table: the packed states of the URLs that a job fetches repeatedly, and the order in which they are due.

A view of the commit log. A state is one bytes object by url_key (200 bytes for a URL of 60 characters; 10⁶ of them take
about 330 MB with the index). Due times are kept in slots of a minute, each a row of keys; only the current slot is in
exact order. A key whose state has changed since is skipped when its slot is opened.

Invariants: every state with next_at above 0 that is not checked out is in exactly the slot where `due` finds it. A
state that `due` returned is checked out until it is put again. Precision: instants to the second, apart from fetched_at
and next_at; durations to seven digits. `recrawl.policy` computes when a URL is due.
"""

from __future__ import annotations

import heapq
import itertools
import math
import struct
from collections.abc import Iterable, Iterator

import msgspec

from nephila.kernel.messages import Context, Outcome, Render, UrlState

SLOT_S = 60.0
REWIND_S = 120.0
"""A clock set back by more than this triggers `rewind`."""
_NEXT = struct.Struct("<d")
_HEAD = struct.Struct("<ddIIIfffIHHHBBHBB")
"""next_at, fetched_at, first_at, changed_at, lastmod, interval_s, quiet_s, changed_s, fetch_no, checks, changes, depth,
missing, flags, and the lengths of URL, ETag and hash. Behind it: text_hash, URL, ETag or date, the host where the URL
does not hold it, then (with a context or a rendering) both as MessagePack and their length. Snapshots hold the same
bytes: a change of this layout needs another number of the frontier's format."""
CHECKED_OUT = -1.0
"""next_at in a snapshot, of a URL that is queued or outstanding."""
_CHECKED_OUT = _NEXT.pack(CHECKED_OUT)
_NEVER = _NEXT.pack(0.0)
_SEED, _DATE, _HOST, _CONTEXT = 1, 2, 4, 8
_OUTCOME_SHIFT = 4
_CONTEXT_TAIL = struct.Struct("<H")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[Context | None, Render]).decode
_MAX_INSTANT = 2**32 - 1
_SPARE = 4096
_KEY = 16


class DueTable:
    """The states of one job. `put`, `get` and one step of `due` are O(log slots)."""

    def __init__(self, job: str, states: Iterable[UrlState] = ()) -> None:
        self.job = job
        self.packed: dict[bytes, bytes] = {}
        self._slots: dict[int, bytearray] = {}
        self._order: list[int] = []
        """Heap of the numbers of `_slots`."""
        self._open = bytearray()
        """Keys of the current slot."""
        self._opened = -1
        """The highest slot opened so far. URLs due in it or before go to `_near`."""
        self._near: list[tuple[float, bytes]] = []
        self._checked_out: set[bytes] = set()
        self._entries = 0
        self._now = -math.inf
        for state in states:
            self.put(state)

    def __len__(self) -> int:
        return len(self.packed)

    def __contains__(self, url_key: bytes) -> bool:
        return url_key in self.packed

    @property
    def checked_out(self) -> int:
        """States that are checked out."""
        return len(self._checked_out)

    def put(self, state: UrlState) -> None:
        """Replace the state of a URL. It is due at its next_at; never when that is 0."""
        self._keep(state.url_key, _pack(state))

    def get(self, url_key: bytes) -> UrlState | None:
        """The state of a URL; None when it is not watched."""
        packed = self.packed.get(url_key)
        return None if packed is None else _unpack(self.job, url_key, packed)

    def remove(self, url_key: bytes) -> bool:
        """Remove a URL; True when it was there."""
        self._checked_out.discard(url_key)
        return self.packed.pop(url_key, None) is not None

    def due(self, now: float) -> Iterator[UrlState]:
        """Check out and return due states, the longest overdue first (to the minute). The caller stops when it has
        enough. A state may be put meanwhile."""
        if now < self._now - REWIND_S:
            self.rewind(now)
        self._now = now
        while (url_key := self._pop(now)) is not None:
            self._checked_out.add(url_key)
            yield _unpack(self.job, url_key, self.packed[url_key])

    def rewind(self, now: float) -> None:
        """The clock was set back: from now on no state waits longer than its own interval. O(n)."""
        for key, packed in self.packed.items():
            latest = now + _interval_s(packed)
            if _next_at(packed) > latest:
                self.packed[key] = _NEXT.pack(latest) + packed[_NEXT.size :]
        self._rebuild()

    def check_out(self, url_key: bytes) -> bool:
        """Check out one URL, due or not; False when it is not here or checked out already."""
        if not self._waits(url_key):
            return False
        self._checked_out.add(url_key)
        return True

    def is_checked_out(self, url_key: bytes) -> bool:
        return url_key in self._checked_out

    def next_due(self) -> float:
        """The earliest instant at which `due` may return something, up to a minute early; infinity for never."""
        if self._open:
            return 0.0
        slot = self._order[0] * SLOT_S if self._order else math.inf
        return min(slot, self._near[0][0]) if self._near else slot

    def dump(self) -> Iterator[bytes]:
        """All states, packed behind their keys, for a snapshot; nothing may be put meanwhile. 0.2 µs each."""
        out = self._checked_out
        for key, packed in self.packed.items():
            yield key + packed if key not in out else key + _CHECKED_OUT + packed[_NEXT.size :]

    def load(self, dumped: bytes) -> None:
        """Add one item of `dump`."""
        key, packed = dumped[:_KEY], dumped[_KEY:]
        is_checked_out = packed.startswith(_CHECKED_OUT)
        self._keep(key, _NEVER + packed[_NEXT.size :] if is_checked_out else packed)
        if is_checked_out:
            self._checked_out.add(key)

    def states(self) -> Iterator[UrlState]:
        """All states; only known URLs may be put meanwhile."""
        return (_unpack(self.job, key, packed) for key, packed in self.packed.items())

    def sample(self, limit: int) -> list[UrlState]:
        """At most `limit` states, evenly spread. O(n) iterator steps, 10 ms per million."""
        step = max(1, -(-len(self.packed) // limit))
        return [_unpack(self.job, key, self.packed[key]) for key in itertools.islice(self.packed, 0, None, step)]

    def checked_before(self, instant: float, limit: int) -> tuple[int, int]:
        """Pages that are not gone, and those of them whose last check was before an instant; counted on at most `limit`
        states, evenly spread, and scaled up. 0.6 µs a state."""
        step = max(1, -(-len(self.packed) // limit))
        pages = before = examined = 0
        for key in itertools.islice(self.packed, 0, None, step):
            next_at, fetched_at, *_, missing, _, _, _, _ = _HEAD.unpack_from(self.packed[key])
            examined += 1
            if fetched_at and (next_at or not missing):
                pages += 1
                before += fetched_at < instant
        scale = len(self.packed) / examined if examined else 0.0
        return round(pages * scale), round(before * scale)

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold. O(n)."""
        assert self._checked_out <= self.packed.keys(), "a checked-out state is missing"
        assert sorted(self._order) == sorted(self._slots), "slots and their order differ"
        assert all(number > self._opened for number in self._slots), "a waiting slot was opened before"
        assert self._entries == sum(map(len, self._slots.values())) // _KEY, "entries miscounted"
        near = set(self._near)
        members = {number: {bytes(key) for key in _keys(keys)} for number, keys in self._slots.items()}
        opened = {bytes(key) for key in _keys(self._open)}
        for key, packed in self.packed.items():
            next_at = _next_at(packed)
            if next_at <= 0 or key in self._checked_out:
                continue
            slot = _slot(next_at)
            waits = key in members.get(slot, ()) or (next_at, key) in near or (slot == self._opened and key in opened)
            assert waits, f"{key.hex()} is due at {next_at} and is in no slot"

    # ---- parts

    def _keep(self, key: bytes, packed: bytes) -> None:
        before = self.packed.get(key)
        placed = -1 if before is None or key in self._checked_out else _slot(_next_at(before))
        self.packed[key] = packed
        self._checked_out.discard(key)
        next_at = _next_at(packed)
        if next_at <= 0:
            return
        slot = _slot(next_at)
        if slot <= self._opened:
            heapq.heappush(self._near, (next_at, key))
        elif slot != placed:
            self._enter(slot, key)
            if self._entries > 2 * len(self.packed) + _SPARE:
                self._rebuild()

    def _enter(self, slot: int, key: bytes) -> None:
        keys = self._slots.get(slot)
        if keys is None:
            keys = self._slots[slot] = bytearray()
            heapq.heappush(self._order, slot)
        keys += key
        self._entries += 1

    def _pop(self, now: float) -> bytes | None:
        """Remove and return the next due key from its slot."""
        while True:
            if self._near and self._near[0][0] <= now:
                next_at, key = heapq.heappop(self._near)
                if self._waits(key) and _next_at(self.packed[key]) == next_at:
                    return key
            elif self._open:
                key = bytes(self._open[-_KEY:])
                del self._open[-_KEY:]
                next_at = _next_at(self.packed[key]) if self._waits(key) else 0.0
                if next_at <= 0 or _slot(next_at) != self._opened:
                    continue
                if next_at <= now:
                    return key
                heapq.heappush(self._near, (next_at, key))
            elif self._order and self._order[0] * SLOT_S <= now:
                self._opened = heapq.heappop(self._order)
                self._open = self._slots.pop(self._opened)
                self._entries -= len(self._open) // _KEY
            else:
                return None

    def _waits(self, key: bytes) -> bool:
        return key in self.packed and key not in self._checked_out

    def _rebuild(self) -> None:
        self._slots, self._order, self._near, self._entries = {}, [], [], 0
        self._open, self._opened = bytearray(), -1
        for key, packed in self.packed.items():
            next_at = _next_at(packed)
            if next_at > 0 and key not in self._checked_out:
                self._enter(_slot(next_at), key)


def _slot(next_at: float) -> int:
    return int(next_at // SLOT_S) if next_at > 0 else -1


def _keys(row: bytearray) -> Iterator[bytearray]:
    return (row[start : start + _KEY] for start in range(0, len(row), _KEY))


def _next_at(packed: bytes) -> float:
    instant: float = _NEXT.unpack_from(packed)[0]
    return instant


def _interval_s(packed: bytes) -> float:
    interval_s: float = _HEAD.unpack_from(packed)[5]
    return interval_s


def _instant(value: float) -> int:
    return int(min(max(math.ceil(value), 0), _MAX_INSTANT))


def _host_of(url: str) -> str:
    """The part between // and the next slash: the host key of nearly every URL."""
    parts = url.split("/", 3)
    return parts[2] if len(parts) > 2 else ""


def _pack(state: UrlState) -> bytes:
    url = state.url.encode("utf-8", "surrogatepass")
    held = _host_of(state.url) == state.host
    validator = (state.etag or state.last_modified).encode("utf-8", "surrogatepass")[:255]
    host = b"" if held else state.host.encode("utf-8", "surrogatepass")
    text_hash = state.text_hash[:255]
    flags = _SEED * state.seed | _DATE * (not state.etag) | _HOST * (not held) | int(state.outcome) << _OUTCOME_SHIFT
    context = b""
    if state.context is not None or state.render:
        flags |= _CONTEXT
        context = _encode((state.context, state.render))
        context += _CONTEXT_TAIL.pack(len(context))
    head = _HEAD.pack(
        state.next_at if 0 < state.next_at < math.inf else 0.0,
        state.fetched_at,
        _instant(state.first_at),
        _instant(state.changed_at),
        _instant(state.lastmod),
        state.interval_s,
        state.quiet_s,
        state.changed_s,
        state.fetch_no,
        min(state.checks, 0xFFFF),
        min(state.changes, 0xFFFF),
        min(state.depth, 0xFFFF),
        min(state.missing, 0xFF),
        flags,
        len(url),
        len(validator),
        len(text_hash),
    )
    return b"".join((head, text_hash, url, validator, host, context))


def _unpack(job: str, url_key: bytes, packed: bytes) -> UrlState:
    (
        next_at, fetched_at, first_at, changed_at, lastmod, interval_s, quiet_s, changed_s, fetch_no, checks, changes,
        depth, missing, flags, url_end, validator_end, hash_end,
    ) = _HEAD.unpack_from(packed)  # fmt: skip
    hash_end += _HEAD.size
    url_end += hash_end
    validator_end += url_end
    url = packed[hash_end:url_end].decode("utf-8", "surrogatepass")
    validator = packed[url_end:validator_end].decode("utf-8", "replace")
    end, context, render = len(packed), None, Render.UNSPECIFIED
    if flags & _CONTEXT:
        start = end - _CONTEXT_TAIL.size
        end = start - _CONTEXT_TAIL.unpack_from(packed, start)[0]
        context, render = _decode(packed[end:start])
    host = packed[validator_end:end].decode("utf-8", "surrogatepass") if flags & _HOST else _host_of(url)
    return UrlState(
        job=job,
        url_key=url_key,
        url=url,
        host=host,
        depth=depth,
        seed=bool(flags & _SEED),
        fetch_no=fetch_no,
        fetched_at=fetched_at,
        first_at=float(first_at),
        next_at=next_at,
        interval_s=interval_s,
        checks=checks,
        changes=changes,
        changed_at=float(changed_at),
        quiet_s=quiet_s,
        changed_s=changed_s,
        text_hash=packed[_HEAD.size : hash_end],
        etag="" if flags & _DATE else validator,
        last_modified=validator if flags & _DATE else "",
        missing=missing,
        outcome=Outcome(flags >> _OUTCOME_SHIFT),
        lastmod=float(lastmod),
        context=context,
        render=render,
    )
