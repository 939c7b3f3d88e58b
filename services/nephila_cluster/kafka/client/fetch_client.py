"""The fetch requests of a consumer: a pause after each answer with records, and incremental sessions (KIP-227).

Pause: records that arrive within it are read by one request, and no request waits at the broker meanwhile, which would
look at all its partitions at each append. After a silence the first record is sent at once.

Session: the broker knows the partitions of the last request; the next one names only those whose position has changed,
and the answer only those that have changed. aiokafka names all partitions each time. Invariant: what the session has is
what the last answered request named. A request without an answer ends the session; the next one names everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer
from aiokafka.protocol.fetch import FetchRequest
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import sleep
from nephila.kernel.topics import Waiting

from nephila_cluster.kafka.config import KafkaConfig

IDLE_WAIT_MS = 5000
"""How long the broker holds a request without records; it answers at the first one."""
LATE = 0.16
"""Part of the period of a beat for which the broker holds a request that finds nothing, after an answer with records.
After an empty one it holds the request as without a beat: an idle reader asks seldom."""
PARTIAL_WAIT_MS = 100
"""The same while not all partitions are read: the others have to wait for the answer."""
SESSIONS = 7
"""First version of the request that has sessions."""
MAX_EPOCH = 2**31 - 1
UNKNOWN = -1
Offsets = dict[tuple[str, int], int]
Topics = list[tuple[str, list[tuple[int, int, int]]]]
Forgotten = list[tuple[str, list[int]]]


def gather_fetches(
    consumer: AIOKafkaConsumer,
    config: KafkaConfig,
    clock: Clock,
    waiting: Callable[[], Waiting],
    beat: Callable[[], tuple[float, float]],
) -> None:
    """Let a started consumer fetch as the module says. `waiting`: who waits for its messages at present; `beat`: the
    period, and the seconds until the next fetch; zeros without a beat."""
    pauses = {
        Waiting.HOST: Pause(config.gather_s, config.gather_bytes),
        Waiting.LINKS: Pause(config.patient_s, config.patient_bytes),
        Waiting.ROW: Pause(config.rows_s, config.rows_bytes),
    }
    consumer._fetcher._client = FetchClient(
        consumer._client,
        clock,
        lambda: pauses[waiting()],
        lambda: len(consumer.assignment()),
        beat,
        config.fetch_bytes,
    )


class Pause(NamedTuple):
    """The pause after an answer with records."""

    seconds: float
    full_bytes: int
    """After an answer of this size there is none. At a rate of bytes that would fill an answer sooner, the pause is
    that much shorter."""

    def after(self, size: int, passed_s: float) -> float:
        """Seconds after an answer of this size, `passed_s` after the answer before."""
        if not 0 < size < self.full_bytes:
            return 0.0
        return min(self.seconds, max(passed_s, 0.0) * self.full_bytes / size)


class FetchClient:
    """The client of one consumer, as its fetcher sees it."""

    def __init__(
        self,
        client: Any,
        clock: Clock,
        pause: Callable[[], Pause],
        assigned: Callable[[], int],
        beat: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0),
        full_bytes: int = 1 << 20,
    ) -> None:
        """`assigned`: number of all partitions. `beat`: see `gather_fetches`. `full_bytes`: size of an answer after
        which the next request does not wait for the beat."""
        self._beat = beat
        self._full_bytes = full_bytes
        self._client = client
        self._clock = clock
        self._pause = pause
        self._assigned = assigned
        self._nodes: dict[int, _Session] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def send(self, node_id: int, request: Any) -> Any:
        """Send a request. Raises `KafkaError`."""
        if not isinstance(request, FetchRequest):
            return await self._client.send(node_id, request)
        session = self._nodes.setdefault(node_id, _Session())
        pause_s = session.resume_at - self._clock.monotonic()
        if pause_s > 0:
            await sleep(self._clock, pause_s)
        named = sum(len(entries) for _, entries in request.topics)
        period_s, _ = self._beat()
        wait_ms = IDLE_WAIT_MS if named >= self._assigned() else PARTIAL_WAIT_MS
        fetch = session.next_request(
            request, int(period_s * LATE * 1000) if period_s and not session.is_idle else wait_ms
        )
        sent = self._clock.monotonic()
        answer = await self._client.send(node_id, fetch)
        session.answered(answer, fetch.session[1])
        size = sum(len(entry[-1] or b"") for _, entries in answer.topics for entry in entries)
        now = self._clock.monotonic()
        session.resume_at = now + self._pause_s(session, size, now - sent, now)
        session.answered_at, session.is_idle = now, not size
        return answer

    def _pause_s(self, session: _Session, size: int, took_s: float, now: float) -> float:
        """Seconds until the next request. Records that come after the fetch of a beat end the wait of that fetch; those
        behind them are fetched in the same beat."""
        pause_s, (period_s, next_s) = self._pause().after(size, now - session.answered_at), self._beat()
        if not period_s:
            return pause_s
        if size >= self._full_bytes:
            return 0.0
        return next_s if not size or took_s < period_s * LATE / 4 else min(next_s, period_s * LATE)


class _Session:
    """What one broker knows of this consumer."""

    __slots__ = ("_offsets", "_sent", "answered_at", "epoch", "id", "is_idle", "resume_at")

    def __init__(self) -> None:
        self.id = 0
        """0: no session."""
        self.epoch = 0
        """Number of the next request; 0 begins a session, and ends the one of `id`."""
        self.answered_at = -math.inf
        """When the last answer came (monotonic)."""
        self.resume_at = 0.0
        """No request before this time (monotonic)."""
        self.is_idle = False
        """The last answer was empty."""
        self._offsets: Offsets = {}
        """What the last answered request named."""
        self._sent: Offsets = {}

    def next_request(self, request: FetchRequest, wait_ms: int) -> IncrementalFetch:
        """What to send instead of a request that names everything. Until it is answered the session counts as lost."""
        self._sent = {(topic, entry[0]): entry[1] for topic, entries in request.topics for entry in entries}
        changed, forgotten = request.topics, []
        if self.epoch:
            offsets = self._offsets
            named = ((t, [e for e in entries if offsets.get((t, e[0])) != e[1]]) for t, entries in request.topics)
            changed = [(topic, entries) for topic, entries in named if entries]
            forgotten = [(topic, [partition]) for topic, partition in offsets.keys() - self._sent.keys()]
        epoch, self.epoch = self.epoch, 0
        return IncrementalFetch(request, wait_ms, changed, forgotten, (self.id, epoch))

    def answered(self, answer: Any, epoch: int) -> None:
        """The broker has answered. An error, or no session: the next request begins one."""
        if answer.API_VERSION < SESSIONS or answer.error_code or not answer.session_id:
            self.id = 0
            return
        self.id, self.epoch = answer.session_id, epoch % MAX_EPOCH + 1
        self._offsets = self._sent


class IncrementalFetch(FetchRequest):  # type: ignore[misc]
    """The request of a session. `session`: its id, and the number of the request."""

    def __init__(
        self, whole: FetchRequest, wait_ms: int, changed: Topics, forgotten: Forgotten, session: tuple[int, int]
    ) -> None:
        super().__init__(
            wait_ms, whole._min_bytes, whole._max_bytes, whole._isolation_level, whole.topics, whole._rack_id
        )
        self.changed = changed
        self.forgotten = forgotten
        self.session = session

    def build(self, request_struct_class: type[Any]) -> Any:
        version = request_struct_class.API_VERSION
        if version < SESSIONS:
            return super().build(request_struct_class)
        epoch = (UNKNOWN,) if version >= 9 else ()
        topics = [
            (topic, [(partition, *epoch, offset, UNKNOWN, most) for partition, offset, most in entries])
            for topic, entries in self.changed
        ]
        limits = (UNKNOWN, self._max_wait_ms, self._min_bytes, self._max_bytes, self._isolation_level)
        rack = (self._rack_id,) if version >= 11 else ()
        return request_struct_class(*limits, *self.session, topics, self.forgotten, *rack)
