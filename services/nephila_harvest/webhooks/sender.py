"""Delivers changes to webhooks: one task for each destination, in order, with retries.

IN: the table `changes`. OUT: HTTP requests. State: `WebhookStore`. Invariant: a change is settled (its position is
stored) only after the receiver has accepted it, or as a dead letter; a kill in between repeats the delivery with the
same id. A destination holds at most `BATCH` changes in memory, however long it fails.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.waits import Backoff, wait
from nephila.storage.rows import iso
from nephila.storage.source import Source

from nephila_harvest.change_feed import FeedPart, FeedRow, changes
from nephila_harvest.webhooks.config import Webhook, WebhooksConfig, key_of
from nephila_harvest.webhooks.message import body_of, headers_of
from nephila_harvest.webhooks.store import FeedPosition, WebhookStore
from nephila_harvest.webhooks.transport import DeliveryAnswer, WebhookTransport

log = logging.getLogger(__name__)

BATCH = 100
"""Changes that one destination reads at once; with diffs of 4 KB at most 0.5 MB."""
WARN_FAILURES = 3
"""Failures in a row that are worth a warning."""
FIRST = "first"
DATABASE_PAUSE_S = 5.0
"""Pause after the database could not be read or written."""
_RETRIED = (408, 425, 429)
"""4xx that ask for a later attempt."""
T = TypeVar("T")


class WebhookSender:
    """Sends the changes of a feed to the webhooks; a `lifecycle.Service`."""

    def __init__(
        self,
        config: WebhooksConfig,
        source: Source,
        store: WebhookStore,
        transport: WebhookTransport,
        clock: Clock,
        jitter: Callable[[], float] = random.random,
        in_thread: Callable[..., Awaitable[Any]] = asyncio.to_thread,
    ) -> None:
        """`jitter`: a number in [0, 1) for each pause. `in_thread`: runs a function that reads or writes the
        database."""
        self.delivered: Counter[str] = Counter()
        """Accepted deliveries of each webhook."""
        self.failed: Counter[str] = Counter()
        """Failed attempts of each webhook."""
        self.dead: Counter[str] = Counter()
        """Changes that became dead letters."""
        self.positions: dict[str, FeedPosition] = {}
        """The stored position of each webhook."""
        self.unready = ""
        """Why no change can be delivered, one line; empty while the database answers."""
        self._config = config
        self._source = source
        self.store = store
        """Positions and dead letters."""
        self._transport = transport
        self._clock = clock
        self._jitter = jitter
        self._in_thread = in_thread
        self._keys = {webhook.name: key_of(webhook, "webhooks") for webhook in config.webhooks}
        self._closing = asyncio.Event()
        self._lock = ExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def failing(self) -> dict[str, float]:
        """Webhook → seconds since it began to fail; 0 while deliveries succeed."""
        now = self._clock.now()
        return {
            name: max(now - float(position.failing_since), 0.0) if position.failing_since else 0.0
            for name, position in self.positions.items()
        }

    async def start(self) -> None:
        """Take the lock and begin. Raises `UserError` while another program sends."""
        self._lock.enter_context(self.store.sending())
        self._tasks = [asyncio.create_task(self._run(webhook)) for webhook in self._config.webhooks]

    async def drain(self, grace_s: float) -> None:
        """Begin no further attempt; an attempt in flight ends within the grace period."""
        self._closing.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)

    async def close(self) -> None:
        """End attempts in flight, and release the lock."""
        self._closing.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await self._transport.close()
        self.store.close()
        self._lock.close()

    async def idle(self) -> bool:
        """Whether every change is settled at all destinations."""
        for webhook in self._config.webhooks:
            position = await self._database(self.store.position, webhook.name)
            if position is None or (await self._read(str(position.seq))).rows:
                return False
            if await self._database(self._replays, webhook.name):
                return False
        return True

    async def _run(self, webhook: Webhook) -> None:
        """Deliver until the service closes; a fault of the database is retried, with one warning."""
        while not self._closing.is_set():
            try:
                busy = await self._replay_dead(webhook) or await self._next(webhook)
                if self.unready:
                    log.warning("webhooks: the database is back")
                self.unready = ""
                if not busy:
                    await wait(self._clock, self._config.poll_s, self._closing)
            except UserError as error:
                if not self.unready:
                    log.warning("webhooks: %s: %s; trying again", webhook.name, error)
                self.unready = str(error)
                await wait(self._clock, DATABASE_PAUSE_S, self._closing)

    async def _next(self, webhook: Webhook) -> bool:
        """Deliver the next changes; False if there is none."""
        position = await self._position(webhook)
        part = await self._read(str(position.seq))
        if not part.rows:
            return False
        for row in part.rows:
            if self._closing.is_set():
                return True
            if _wanted(webhook, row):
                after = await self._deliver(webhook, position, row)
                if after is None:
                    return True
                position = after
        if position.seq < part.position:  # changes that it does not want
            await self._database(self.store.advance, webhook.name, position, part.position)
        return True

    async def _position(self, webhook: Webhook) -> FeedPosition:
        position = await self._database(self.store.position, webhook.name)
        if position is None:
            if webhook.since == FIRST:
                start = 0
            elif webhook.since:
                start = await self._database(_before, self._source, webhook.since)
            else:
                newest = await self._database(_newest, self._source)
                start = newest.position
            position = await self._database(self.store.begin, webhook.name, start)
        self.positions[webhook.name] = position
        return position

    async def _deliver(self, webhook: Webhook, position: FeedPosition, row: FeedRow) -> FeedPosition | None:
        """Attempts until the change is settled; returns the new position. None: the service closes, or the position was
        changed by a replay."""
        name = webhook.name
        while True:
            answer = await self._attempt(webhook, row)
            if self._accepts(answer):
                after = FeedPosition(row.seq)
                stored = await self._database(self.store.advance, name, position, row.seq)
                self.delivered[name] += 1
                if position.failures >= WARN_FAILURES:
                    log.warning("webhooks: %s accepts deliveries again after %d failures", name, position.failures)
                return self._stored(name, after) if stored else None
            after, is_dead = self._after_failure(webhook, position, row, answer)
            if is_dead:
                now = iso(self._clock.now())
                stored = await self._database(self.store.bury, name, position, after, row, now)
                self.dead[name] += 1
                log.error("webhooks: %s: %s is a dead letter: %s", name, row.change.id, after.error)
            else:
                stored = await self._database(self.store.fail, name, position, after)
            if not stored:
                return None
            position = self._stored(name, after)
            if await wait(self._clock, self._pause_s(position.failures, answer.retry_after_s), self._closing):
                return None
            if is_dead:
                return position

    def _stored(self, name: str, position: FeedPosition) -> FeedPosition:
        self.positions[name] = position
        return position

    def _after_failure(
        self, webhook: Webhook, position: FeedPosition, row: FeedRow, answer: DeliveryAnswer
    ) -> tuple[FeedPosition, bool]:
        """The position behind a failed attempt, and whether the change becomes a dead letter."""
        now = self._clock.now()
        error = answer.error or f"status {answer.status}"
        since = float(position.failing_since) if position.failing_since else now
        self.failed[webhook.name] += 1
        failures = position.failures + 1
        if failures == WARN_FAILURES:
            log.warning("webhooks: %s: %s; trying again with growing pauses", webhook.name, error)
        refused = 400 <= answer.status < 500 and answer.status not in _RETRIED
        is_dead = now - since >= self._config.give_up_s or (refused and failures >= self._config.refusals)
        if refused and is_dead:  # the fault may be that of this change alone: the next one begins with all attempts
            return FeedPosition(row.seq, 0, "", error), is_dead
        return FeedPosition(row.seq if is_dead else position.seq, failures, repr(since), error), is_dead

    async def _replay_dead(self, webhook: Webhook) -> bool:
        """One attempt for each dead letter that waits for it; False if none waits."""
        letters = await self._database(self._replays, webhook.name)
        for letter in letters:
            if self._closing.is_set():
                break
            answer = await self._attempt(webhook, letter.row)
            if self._accepts(answer):
                self.delivered[webhook.name] += 1
                await self._database(self.store.delivered_dead, webhook.name, letter.row.seq)
            else:
                self.failed[webhook.name] += 1
                error = answer.error or f"status {answer.status}"
                await self._database(self.store.dead_again, webhook.name, letter.row.seq, error)
        return bool(letters)

    def _replays(self, name: str) -> list[Any]:
        return self.store.dead(name, replay=True, limit=BATCH)

    async def _attempt(self, webhook: Webhook, row: FeedRow) -> DeliveryAnswer:
        body = body_of(row)
        with suppress(UsageError):  # a file that is half replaced: the last key counts
            self._keys[webhook.name] = key_of(webhook, "webhooks")
        headers = headers_of(self._keys[webhook.name], row.change.id, int(self._clock.now()), body)
        return await self._transport.post(webhook.url, headers, body)

    @staticmethod
    def _accepts(answer: DeliveryAnswer) -> bool:
        return 200 <= answer.status < 300

    def _pause_s(self, failures: int, retry_after_s: float) -> float:
        longest = self._config.longest_pause_s
        pause = Backoff(self._config.first_pause_s, longest).after(max(failures, 1))
        return max(pause * (1 - self._jitter() / 2), min(retry_after_s, longest))

    async def _read(self, since: str) -> FeedPart:
        return await self._database(_part, self._source, since)

    async def _database(self, work: Callable[..., T], *arguments: Any) -> T:
        result: T = await self._in_thread(work, *arguments)
        return result


def _wanted(webhook: Webhook, row: FeedRow) -> bool:
    return (not webhook.jobs or row.change.job in webhook.jobs) and (
        not webhook.changes or row.change.change in webhook.changes
    )


def _part(source: Source, since: str) -> FeedPart:
    return changes(source, since=since, limit=BATCH)


def _newest(source: Source) -> FeedPart:
    return changes(source, limit=1, newest=True)


def _before(source: Source, since: str) -> int:
    """The number behind which a position begins."""
    part = changes(source, since=since, limit=1)
    return part.rows[0].seq - 1 if part.rows else part.position
