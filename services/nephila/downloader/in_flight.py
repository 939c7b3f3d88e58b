"""One request in our hands, from delivery to outcome: what it holds and what it waits for. No behaviour of its own."""

from __future__ import annotations

import asyncio

from nephila.downloader.http.contract import Handle
from nephila.downloader.http.target import Target
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery, Receipt
from nephila.kernel.runtime.clock import Timer


class InFlight:
    """See the module; only the service changes it."""

    __slots__ = (
        "address",
        "delivery",
        "dialled",
        "exchange_receipts",
        "handle",
        "has_global_slot",
        "has_host_slot",
        "origin_address",
        "redirects",
        "request",
        "route",
        "started",
        "target",
        "timer",
    )

    def __init__(self, delivery: Delivery, request: m.FetchRequest) -> None:
        self.delivery = delivery
        self.request = request
        self.target: Target | None = None
        self.route: tuple[tuple[str, ...], int] = ((), 0)
        self.address = ""  # the address slot held or waited for
        self.has_host_slot = False
        self.has_global_slot = False  # holds or waits for one of the `concurrency` places
        self.dialled = False
        self.handle: Handle | asyncio.Task[None] | None = None
        self.timer: Timer | None = None  # runs while the gap of its address is waited for
        self.redirects = 0
        self.origin_address = ""  # the address of the host itself, which further hops of a robots.txt may leave
        self.started = 0.0
        self.exchange_receipts: list[Receipt] = []  # of answers that are no pages
