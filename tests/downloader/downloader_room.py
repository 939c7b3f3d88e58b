"""A downloader between a bus and a fetcher that a test controls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from nephila.downloader.admission.admission import MakeAdmission
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.coordination import Coordination
from nephila.downloader.dns.contract import Addresses, ResolveError
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.dns.hash_tree import HashTree
from nephila.downloader.http.contract import HttpRequest, HttpResponse, OnDone
from nephila.downloader.routing.router import DirectRouter
from nephila.downloader.service import Downloader
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.net.egress import EgressGuard
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import OUTCOMES, PAGES, REQUESTS

from tests.downloader_settings import downloader_config


def answer(status: int = 200, body: bytes = b"", reason: str = "", detail: str = "", **headers: str) -> HttpResponse:
    """An answer as a fetcher gives it."""
    made = HttpResponse()
    made.status, made.body, made.reason, made.detail = status, body, reason, detail
    made.headers = {name.replace("_", "-"): value for name, value in headers.items()}
    made.content_type = made.headers.get("content-type", "").partition(";")[0]
    made.wire_bytes = len(body)
    made.address = "8.8.8.8"
    return made


class Fetch:
    """One fetch that was started."""

    def __init__(self, request: HttpRequest, on_done: OnDone) -> None:
        self.request = request
        self.on_done = on_done
        self.aborted = False

    def abort(self) -> None:
        """See `Handle.abort`."""
        self.aborted = True


class FakeFetcher:
    """Keeps orders until a test answers them."""

    def __init__(self) -> None:
        self.fetches: list[Fetch] = []
        self.closed = False
        self.writes = True
        """Whether a request is written at once; else a test calls its `on_sent`."""

    def fetch(self, request: HttpRequest, on_done: OnDone) -> Fetch:
        """See `Fetcher.fetch`."""
        self.fetches.append(Fetch(request, on_done))
        if self.writes and request.on_sent is not None:
            request.on_sent()
        return self.fetches[-1]

    async def close(self) -> None:
        """See `Fetcher.close`."""
        self.closed = True

    @property
    def urls(self) -> list[str]:
        """What has been ordered so far."""
        return [fetch.request.target.href for fetch in self.fetches]


class Names:
    """A resolver from a table; a name that is missing does not exist."""

    def __init__(self) -> None:
        self.table: dict[str, Sequence[str]] = {}
        self.asked: list[str] = []

    async def resolve(self, host: str) -> Addresses:
        """See `Resolver.resolve`."""
        self.asked.append(host)
        if host not in self.table:
            raise ResolveError("no such name")
        return Addresses(self.table[host])

    async def close(self) -> None:
        """See `Resolver.close`."""


rooms: list[Room] = []
"""Those of the present test (conftest.py)."""


class Room:
    """The downloader, its bus, and what it published."""

    def __init__(
        self,
        coordination: Coordination | None = None,
        *,
        clock: ManualClock | None = None,
        make_admission: MakeAdmission | None = None,
        **settings: Any,
    ) -> None:
        self.clock = clock or ManualClock()
        self.bus = LocalBus(self.clock)
        self.names = Names()
        self.fetcher = FakeFetcher()
        self.pages: list[m.Page] = []
        self.outcomes: list[m.FetchOutcome] = []
        self.order: list[str] = []
        self.address = "8.8.8.8"
        self.hold = False
        self.held: list[Delivery] = []
        # All names of this room live on one address; the gap between its starts is the business of its own tests.
        config = downloader_config(**{"address_gap_s": 0.0, **settings})
        resolver = GuardedResolver(EgressGuard(config.dns.allow_private), self.names, HashTree(1000), self.clock)
        router = self._router(config, resolver)
        self.downloader = Downloader(
            config, self.bus, self.clock, router, self.fetcher, coordination, None, make_admission
        )
        self.bus.subscribe(PAGES, "parser", self._on_page, credits=100)
        self.bus.subscribe(OUTCOMES, "scheduler", self._on_outcome, credits=1000)
        rooms.append(self)

    def _router(self, config: DownloaderConfig, resolver: GuardedResolver) -> DirectRouter:
        return DirectRouter(resolver)

    def _on_page(self, delivery: Delivery) -> None:
        self.pages.append(delivery.message)
        self.order.append("page")
        self._ack(delivery)

    def _on_outcome(self, delivery: Delivery) -> None:
        self.outcomes.append(delivery.message)
        self.order.append("outcome")
        self._ack(delivery)

    def _ack(self, delivery: Delivery) -> None:
        if self.hold:
            self.held.append(delivery)
        else:
            delivery.ack()

    def request(self, url: str = "http://a.test/", host: str = "", partition: int = 5, **fields: Any) -> m.FetchRequest:
        """Publish a request; the host exists."""
        name = url.split("/")[2].rpartition("@")[2].partition(":")[0]
        self.names.table.setdefault(name, (self.address,))
        fields = {"job": "j", "url_key": b"k" * 16, "fetch_no": 3, "attempt": 2, "epoch": 7, **fields}
        made = m.FetchRequest(url=url, host=host or name, **fields)
        self.bus.publish(REQUESTS, partition, made)
        return made

    async def settle(self) -> None:
        """Let names be resolved and due calls be made."""
        for _ in range(6):
            await asyncio.sleep(0)
            self.clock.run_due()

    def reply(self, number: int, made: HttpResponse) -> None:
        """The fetcher is done with one of its orders."""
        self.fetcher.fetches[number].on_done(made)
