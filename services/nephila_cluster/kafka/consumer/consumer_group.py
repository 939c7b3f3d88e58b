"""The consumer of one group: reads the topics of a service for the partitions of this member, and commits offsets.

Offsets are committed explicitly, up to the oldest record with an unacked message. In a rebalance, kept partitions
continue at the position remembered here (Kafka would return to the committed one). Revoked partitions finish, are
committed and released before their next member starts. New partitions are opened in a task, because no heartbeat is
sent while the rebalance callback runs. Records taken and not processed are bounded by pausing partitions. The poll
never stops, so long work is not mistaken for a dead member (aiokafka#848). `inbox.py` holds the state of partitions.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, ConsumerRecord, TopicPartition
from aiokafka.errors import ConsumerStoppedError, IllegalStateError, KafkaError
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.histogram import NETWORK_S, Histogram

from nephila_cluster.kafka.beat import Beat
from nephila_cluster.kafka.claim_check import ClaimStore
from nephila_cluster.kafka.client import consumer as client
from nephila_cluster.kafka.client.fetch_client import IDLE_WAIT_MS, gather_fetches
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.consumer.commit_metadata import CommitMetadata
from nephila_cluster.kafka.consumer.inbox import Inbox
from nephila_cluster.kafka.consumer.offsets import PartitionPosition
from nephila_cluster.kafka.consumer.owned_partitions import OwnedPartitions
from nephila_cluster.kafka.consumer.partition_state import PartitionState, Phase
from nephila_cluster.kafka.consumer.pauses import Pauses
from nephila_cluster.kafka.consumer.poll_size import PollSize
from nephila_cluster.kafka.consumer.start_position import (
    StartPosition,
    crashed_partitions,
    mark_held,
    open_partition,
    pardon,
    start_positions,
)
from nephila_cluster.kafka.group.assignor import assignor_for
from nephila_cluster.kafka.group.member_session import MemberSession
from nephila_cluster.kafka.group.membership import Membership
from nephila_cluster.kafka.group.rebalance import OnMemberCrash, report_crash
from nephila_cluster.kafka.group.watchdog import Watchdog
from nephila_cluster.kafka.lanes import Lanes

log = logging.getLogger(__name__)

POLL_MS, BACKOFF_S, MARK_S = 200, 0.5, 0.1


class ConsumerGroup(ConsumerRebalanceListener):  # type: ignore[misc]
    """This member of one consumer group."""

    def __init__(
        self,
        name: str,
        config: KafkaConfig,
        clock: Clock,
        claim_store: ClaimStore | None,
        fatal: Callable[[UserError], None],
        settings: Mapping[str, str] | None = None,
        beat: Beat | None = None,
        lanes: Lanes | None = None,
    ) -> None:
        """`settings`: what all members of the system must share; other members read it. `lanes`: of the system."""
        self.name = name
        self.config = config
        self._clock = clock
        self.owned = OwnedPartitions(lanes or Lanes())
        self.inbox = Inbox(config, clock, claim_store, self._commit_metadata, beat, self.owned)
        self._pauses = Pauses(self.inbox)
        self.on_member_crash: OnMemberCrash | None = None
        self.membership = Membership(config.name, clock.now(), settings)
        self.restarts = self.evictions = 0
        """Consumers that were stuck and replaced; times that the group removed this member, which lived."""
        self.rebalances = 0
        """Assignments received."""
        self.partitions_gained = self.partitions_lost = 0
        """Partitions that came to this member, and that left it; a kept one counts in neither."""
        self.handover_s = Histogram(NETWORK_S)
        """From the assignment of partitions until they are open."""
        self.trouble = ""
        self.missing: list[str] = []
        """Topics that no longer exist on the broker."""
        self._fatal = fatal
        self.consumer: AIOKafkaConsumer | None = None
        self._session = MemberSession(config.session_s)
        self._joined = self._joining = self._closing = False
        self._poll_size = PollSize()
        self._committing = asyncio.Lock()
        self.has_lost_topics = False  # nothing is committed: the next member would take it for offsets of new topics
        self._tasks: set[asyncio.Task[Any]] = set()
        self._watchdog: Watchdog[TopicPartition] = Watchdog(config.silent_s)
        self._poison_task: asyncio.Task[None] | None = None

    # ---- life

    async def start(self) -> None:
        """Connect and join. Raises `KafkaError`."""
        self._closing = False
        self.owned.read(self.inbox.route)
        for left in (2, 1, 0):
            try:
                await self._connect()
                break
            except KafkaError as error:
                if not left or type(error) is not KafkaError:
                    raise  # else an older member of our name joined just now: the client has no error class for it
                await asyncio.sleep(BACKOFF_S)
        for routine in (self._poll(), self._commit_routine(), self._watch()):
            self._spawn(routine)

    async def _connect(self) -> None:
        assignor = assignor_for(self.membership)
        consumer = client.new_consumer(self.config, self.name, sorted(self.inbox.topics), assignor, self)
        self.consumer, self._joined = consumer, False
        beat, session_s = self.inbox.beat, self.config.session_s
        client.watch_session(consumer, self._clock, self._session, lambda: beat.heartbeat_s(session_s, self.settled))
        try:
            await consumer.start()
        except BaseException:
            await consumer.stop()
            raise
        client.relax_polling(consumer, IDLE_WAIT_MS)
        gather_fetches(consumer, self.config, self._clock, lambda: self.inbox.waiting, self.inbox.beat_s)

    async def close(self) -> None:
        """Finish the messages in handlers, commit, and leave the group, so that the others need not wait for the
        session timeout."""
        self._closing = True
        consumer = self.consumer
        if consumer is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(
                    self._finish(frozenset(self.membership.held)), self.config.drain_s + client.STOP_S
                )
        for task in set(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))
        if consumer is not None:
            await client.stop_consumer(consumer, leave=True)
        self.consumer = None

    def _spawn(self, routine: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(routine)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("%s: %r", self.name, task.exception(), exc_info=task.exception())
            self._fatal(UserError(f"group {self.name} ended: {task.exception()!r}"))

    @property
    def held(self) -> frozenset[int]:
        """Partitions that this member owns and has opened."""
        return self.owned.of(self.inbox.held)

    @property
    def may_emit(self) -> bool:
        """False once the broker may have assigned our partitions to others: no heartbeat was answered for too long."""
        return self._session.may_emit(self._clock.monotonic())

    @property
    def settled(self) -> bool:
        """Whether everything that was assigned or promised to this member is open."""
        opened = all(state.is_opened for state in self.inbox.partition_states.values())
        return self._joined and not self._joining and opened and not self.membership.promised

    def set_able(self, able: bool) -> None:
        """State whether this member can work; a member that cannot gives its partitions to others."""
        if self.membership.able != able:
            self.membership.able = able
            if self.consumer is not None:
                self.consumer._coordinator.request_rejoin()

    # ---- reading

    async def _poll(self) -> None:
        while True:
            consumer = self.consumer
            if consumer is None:
                await asyncio.sleep(BACKOFF_S)
                continue
            try:
                batches = await consumer.getmany(timeout_ms=POLL_MS, max_records=self._poll_size.records)
                self._clear_error()
            except (ConsumerStoppedError, KafkaError) as error:
                if self._joined and self._session.fenced:
                    self._duplicate_member()
                if not isinstance(error, ConsumerStoppedError):
                    self._record_error(error)
                await asyncio.sleep(BACKOFF_S)
                continue
            ahead = self.inbox.leased_offsets(batches)
            if ahead and not await self._commit(ahead):
                batches = {tp: records for tp, records in batches.items() if tp not in ahead}
                client.seek_back(consumer, self.inbox.next_offsets(ahead))
                await asyncio.sleep(MARK_S)
            began = self._clock.monotonic()
            self._take(consumer, batches)
            self._poll_size.adapt(self._clock.monotonic() - began)
            # A poll that returns records does not yield to the event loop.
            await asyncio.sleep(0)

    def _take(self, consumer: AIOKafkaConsumer, batches: Mapping[TopicPartition, list[ConsumerRecord]]) -> None:
        for tp, records in batches.items():
            if (refused := self.inbox.take(tp, records)) is not None:
                self.inbox.isolation.release(tp)
                self._stop_partition(refused)
            if (claim := self.inbox.missing_objects(tp)) is not None:
                self._spawn(self._fetch_claim(tp, *claim))
        self._pauses.after_poll(consumer, batches)

    async def _fetch_claim(self, tp: TopicPartition, offset: int, names: Collection[str]) -> None:
        """Fetch the objects that a record names; the partition waits, which keeps the order."""
        await self.inbox.fetch(tp, names)
        if self.consumer is not None:
            client.seek_back(self.consumer, {tp: offset})
            self._pauses.apply(self.consumer)

    # ---- committing

    async def _commit_routine(self) -> None:
        while True:
            await asyncio.sleep(max(self.config.commit_interval_s, self.inbox.beat.commit_s))
            await self.commit()
            self._pauses.apply(self.consumer)

    async def commit(self, letting_go: frozenset[int] = frozenset()) -> None:
        """Commit all progress; what fails now is committed later."""
        await self._commit({**self.inbox.offsets(), **self.inbox.final_offsets(letting_go)})

    async def _commit(self, offsets: dict[TopicPartition, int]) -> bool:
        async with self._committing:
            if self.consumer is None or self._joining or self.has_lost_topics:
                return False
            # Of topics that exist; an offset of a deleted topic would be refused and hold up those of the others.
            offsets = {tp: at for tp, at in offsets.items() if self.consumer.partitions_for_topic(tp.topic)}
            commits = self.inbox.with_metadata(offsets)  # of partitions that are still held
            if not commits:
                return False
            try:
                await client.commit_offsets(self.consumer, commits)
                self.inbox.committed(offsets)
                return True
            except (KafkaError, IllegalStateError) as error:
                log.debug("%s: not committed: %s", self.name, error)
                return False

    async def _commit_metadata(self, tp: TopicPartition, metadata: CommitMetadata) -> bool:
        """Store metadata durably, for `PoisonIsolation`; False when the partition is not held any more."""
        while True:
            state = self.inbox.partition_states.get(tp)
            if state is None or state.position is None or state.phase is Phase.LEAVING or state.stopped:
                return False
            state.metadata = metadata
            if await self._commit({tp: state.position.committed_to}):
                return True
            await asyncio.sleep(MARK_S)

    # ---- rebalances

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Before a join: the old generation may still commit, unless it was lost."""
        consumer = self.consumer
        if not self._joined:
            pass  # a replaced consumer claims what the one before it held
        elif consumer is not None and consumer._coordinator.generation < 0:
            alive = self._session.steady(self._clock.monotonic())
            self._drop_lost(frozenset(self.membership.held))
            if self.membership.held and alive:
                self._duplicate_member()
            self.evictions += bool(self.membership.held)
            self.membership.removed()
        else:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.commit(), self.config.rebalance_s / 2)
        self._joining = True

    def _drop_lost(self, lost: frozenset[int]) -> None:
        """This member was silent for too long, or another member uses its name: others own its partitions."""
        if not lost:
            return
        log.warning("%s: the group removed this member; %d partitions lost", self.name, len(lost))
        self.inbox.drop(lost)
        self.owned.lose(lost)

    def _duplicate_member(self) -> None:
        if not self._closing:
            self._fatal(client.duplicate_member_error(self.name, self.config.name))

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """After a join; kept partitions are sought before anything is awaited."""
        if (consumer := self.consumer) is None:
            return
        self._joining, self._joined = False, True
        new, gone = self.membership.on_assignment((tp.partition for tp in assigned), consumer._coordinator.generation)
        self.rebalances += 1
        self.partitions_gained += len(new)
        self.partitions_lost += len(gone)
        self._drop_lost(gone)
        self._session.on_join()
        client.watch_partition_counts(consumer, assigned)
        opening = {}
        for tp in assigned:
            state = self.inbox.partition_states.get(tp)
            if state is None:
                opening[tp] = self.inbox.partition_states[tp] = PartitionState()
            elif state.position is not None:
                consumer.seek(tp, state.position.next)
        if offsets := self.inbox.pardon(self.membership.pardoned):
            self._spawn(self._commit(offsets))
        self._pauses.apply(consumer)
        if opening:
            self._spawn(self._open(opening))
        if (leaving := self.membership.leaving & self.membership.held.keys()) and not self._closing:
            self._spawn(self._revoke(leaving))
        log.info("%s: %d partitions, %d new, %d leaving", self.name, len(self.membership.held), len(new), len(leaving))

    async def _open(self, opening: dict[TopicPartition, PartitionState]) -> None:
        """Find the start offset, let the service load what it needs, then read."""
        began = self._clock.monotonic()
        while True:
            consumer = self.consumer
            mine = {tp: state for tp, state in opening.items() if state.phase is not Phase.REVOKED}
            if not mine:
                return
            try:
                if consumer is not None:
                    positions = await start_positions(consumer, self.inbox, list(mine))
                    break
            except (KafkaError, IllegalStateError) as error:
                self._record_error(error)
            await asyncio.sleep(BACKOFF_S)
        mine = {tp: state for tp, state in mine.items() if state.phase is Phase.OPENING}
        if not mine:
            return
        for tp, state in mine.items():
            state.position, state.metadata = PartitionPosition(positions[tp].start), positions[tp].metadata
            if (refused := positions[tp].refused) is not None:
                self._stop_partition(refused)
        await self.owned.assign({tp.partition for tp in mine})
        await self._mark(mine, positions)
        if self.on_member_crash is not None and (starts := crashed_partitions(self.inbox, mine, positions)):
            self._spawn(report_crash(self.on_member_crash, starts, self.config.session_s, self._clock))
        for tp, state in mine.items():
            open_partition(self.name, self.inbox, tp, state, positions[tp])
            if self.consumer is not None and state.phase is not Phase.REVOKED:
                client.seek_back(self.consumer, {tp: positions[tp].start})
        self.handover_s.observe(self._clock.monotonic() - began)
        if self.inbox.isolation.active and (self._poison_task is None or self._poison_task.done()):
            self._poison_task = self._spawn(self.inbox.isolation.run())
        self._pauses.apply(self.consumer)

    async def grow(self) -> None:
        """The system may have more partitions: open the new ones of the lanes here, then read what waited for them."""
        await self.owned.grow(self.inbox.staying)
        self._pauses.resume(self.consumer)

    async def _mark(
        self, mine: dict[TopicPartition, PartitionState], positions: dict[TopicPartition, StartPosition]
    ) -> None:
        """Commit that these partitions are held; retries, because a crash before it would not be counted."""
        marked = False
        while pardon(mine, positions) or not marked:
            tps = [tp for tp, state in mine.items() if state.phase is Phase.OPENING]
            marked = False
            async with self._committing:
                with contextlib.suppress(KafkaError, IllegalStateError):
                    if self.consumer is not None and not self._joining:
                        await mark_held(self.consumer, self.inbox, tps, positions)
                        marked = True
            await asyncio.sleep(0 if marked else MARK_S)

    def _stop_partition(self, error: UserError) -> None:
        self.trouble = str(error)
        self._fatal(error)

    async def _revoke(self, leaving: frozenset[int]) -> None:
        """Finish, commit, release, and request the plan that assigns them to the next member."""
        fresh = self.inbox.leave(leaving, self.owned.listener is not None)
        if not fresh:
            return
        await self._finish(fresh)
        self.inbox.drop(fresh)
        self.owned.end(fresh)
        self.membership.release(fresh)
        self.partitions_lost += len(fresh)
        if self.consumer is not None:
            self.consumer._coordinator.request_rejoin()

    async def _finish(self, partitions: frozenset[int]) -> None:
        self.inbox.leave(partitions, self.owned.listener is not None)
        self._pauses.apply(self.consumer)
        if not await self.owned.finish(self.inbox, partitions, self.config.drain_s):
            log.warning("%s: work on %s was not finished in time; it is delivered again", self.name, sorted(partitions))
        await self.commit(partitions)

    async def _watch(self) -> None:
        """Replace a consumer that is stuck; partitions and messages in handlers stay."""
        while True:
            await asyncio.sleep(self.config.silent_s / 6)
            consumer = self.consumer
            if consumer is None or self._joining or self._closing:
                continue
            positions = self.inbox.reading()
            with contextlib.suppress(TimeoutError, KafkaError, IllegalStateError):
                async with asyncio.timeout(self.config.silent_s):
                    self.missing = await client.missing_topics(consumer, self.inbox.topics, self.missing)
                    ends = await consumer.end_offsets(list(positions)) if positions else {}
                for refused in self.inbox.check_log_end(positions, ends):
                    self._stop_partition(refused)
                if stuck := self._watchdog.stuck(self._clock.monotonic(), positions, ends):
                    await self._renew(consumer, stuck)

    async def _renew(self, consumer: AIOKafkaConsumer, stuck: list[TopicPartition]) -> None:
        self.restarts += 1
        names = ", ".join(f"{tp.topic}/{tp.partition}" for tp in sorted(stuck)[:5])
        log.warning(
            "%s: the consumer was silent for %g s on %s; it is replaced", self.name, self.config.silent_s, names
        )
        self.consumer = None
        await client.stop_consumer(consumer, leave=False)
        while True:
            try:
                await self._connect()
                self._watchdog = Watchdog(self.config.silent_s)
                return
            except KafkaError as error:
                self.consumer = None
                self._record_error(error)
                await asyncio.sleep(BACKOFF_S)

    def _record_error(self, error: Exception) -> None:
        if not self.trouble:
            log.warning("group %s: %s: %s; retrying", self.name, type(error).__name__, error)
        self.trouble = f"{type(error).__name__}: {error}"

    def _clear_error(self) -> None:
        if self.trouble and not self.inbox.refused:
            self.trouble = ""
