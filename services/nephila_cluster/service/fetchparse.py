"""A downloader and a parser side by side on one loop over Kafka: `nephila service fetchparse`.

Pages stay in the process; every other message goes through the broker as between the services. Invariant: the outcome
of a page is sent when the broker has the links and the record of that page. After a crash a request therefore has no
outcome, or nothing of its page is missing: its lease expires, and the URL is fetched again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nephila.downloader.service import Downloader
from nephila.kernel.bus.contract import Bus, DeadHandler, Handler, Receipt, all_of
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.wrapper import BusWrapper, Outlet
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import OUTCOMES, PAGES, Topic
from nephila.parser.service import Parser


class _PageBus(LocalBus):
    """Carries pages inside the process; dead letters go to the broker."""

    def __init__(self, clock: Clock, outer: Bus) -> None:
        super().__init__(clock)
        self._outer = outer

    def dead_letter(
        self, topic: Topic, service: str, partition: int, message: Any, error: BaseException | str, attempts: int
    ) -> Receipt:
        return self._outer.dead_letter(topic, service, partition, message, error, attempts)


class FetchParseBus(BusWrapper):
    """The bus as downloader and parser see it."""

    def __init__(self, bus: Outlet, clock: Clock, publishes_pages: bool = False) -> None:
        """`publishes_pages`: pages go to the broker as well, for sinks that keep raw pages."""
        super().__init__(bus)
        self._inside = _PageBus(clock, bus)
        self._publishes_pages = publishes_pages
        self._pages: dict[tuple[str, bytes], Receipt] = {}
        """Pages whose outcome is not published yet → receipt of links and record."""

    @property
    def unacked(self) -> int:
        return self._bus.unacked + self._inside.unacked

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """The receipt of a page resolves when the broker has everything derived from it."""
        if topic is PAGES:
            receipts = [self._bus.publish(PAGES, partition, message)] if self._publishes_pages else []
            key = (message.job, message.url_key)
            receipts.append(self._inside.publish(PAGES, partition, message))
            receipt = self._pages[key] = all_of(receipts)
            return receipt
        if topic is OUTCOMES:
            page = self._pages.pop((message.job, message.url_key), None)
            return self._bus.publish_after(() if page is None else (page,), OUTCOMES, partition, message)
        return self._bus.publish(topic, partition, message)

    def subscribe(
        self, topic: Topic, group: str, handler: Handler, *, credits: int, on_dead: DeadHandler | None = None
    ) -> None:
        bus: Bus = self._inside if topic is PAGES else self._bus
        bus.subscribe(topic, group, handler, credits=credits, on_dead=on_dead)


class FetchParse:
    """Both services as one."""

    def __init__(self, downloader: Downloader, parser: Parser, clock: Clock) -> None:
        self.downloader = downloader
        self.parser = parser
        self._clock = clock

    @property
    def live_settings(self) -> Mapping[str, Callable[[Any], None]]:
        return self.downloader.live_settings

    async def start(self) -> None:
        """Start the parser first: a page has to find it."""
        await self.parser.start()
        await self.downloader.start()

    async def drain(self, grace_s: float) -> None:
        """Finish fetches in flight, then their pages, within `grace_s` seconds."""
        until = self._clock.monotonic() + grace_s
        for service in (self.downloader, self.parser):
            await service.drain(max(until - self._clock.monotonic(), 0.0))

    async def close(self) -> None:
        """Close the downloader, then the parser."""
        await self.downloader.close()
        await self.parser.close()
