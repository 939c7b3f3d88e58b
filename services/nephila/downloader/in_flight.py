"""One request from delivery to outcome: the stage it has reached and the resources it holds. Data only."""

from __future__ import annotations

import asyncio
from enum import IntEnum

import msgspec

from nephila.downloader.http.contract import Handle
from nephila.downloader.http.route import NO_ROUTE, Route
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.proxy_port import ProxyTries, ProxyUse
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery, Receipt
from nephila.kernel.runtime.clock import Timer


class Stage(IntEnum):
    """Where a request stands, in the order of `pipeline.STAGES`.

    A request moves to the next stage, with two exceptions: a redirected robots.txt returns from RESPONSE to RESOLVE,
    and a request that waited in MEMBERSHIP, MIDDLEWARE or PROXY repeats from MEMBERSHIP.
    """

    HOST_SLOT = 0
    """In the queue of its host; later stages hold the slot."""
    HOST_GAP = 1
    """Waiting for the instant for which it was planned."""
    RESOLVE = 2
    """The name of its server is looked up."""
    ADDRESS_CHECK = 3
    """The scheduler decides whether a fetch may start on an address it did not count."""
    GLOBAL_SLOT = 4
    """In the queue for one of the `concurrency` slots; later stages hold the slot."""
    ADDRESS_SLOT = 5
    """In the queue of its server address, or waiting for the end of the gap."""
    MEMBERSHIP = 6
    """Waiting until the partition certainly belongs to this member."""
    MIDDLEWARE = 7
    """A login or other work comes first."""
    PROXY = 8
    """Waiting for a slot of a proxy. Skipped by programs without proxies."""
    DIAL = 9
    """Handed to the fetcher in this call."""
    RESPONSE = 10
    """Connecting, or waiting for the response."""
    ENDED = 11
    """The outcome is published and no slot is held."""


# Names of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
(
    HOST_SLOT,
    HOST_GAP,
    RESOLVE,
    ADDRESS_CHECK,
    GLOBAL_SLOT,
    ADDRESS_SLOT,
    MEMBERSHIP,
    MIDDLEWARE,
    PROXY,
    DIAL,
    RESPONSE,
    ENDED,
) = Stage


class InFlight(msgspec.Struct, eq=False):
    """One request in flight; only the pipeline and the service change it."""

    delivery: Delivery
    request: m.FetchRequest
    stage: Stage = HOST_SLOT
    target: TargetUrl | None = None
    route: Route = NO_ROUTE
    address_slot: str = ""
    """The address whose slot is held or waited for; empty: none."""
    handle: Handle | asyncio.Task[None] | None = None
    """The fetch, look-up or middleware task in flight."""
    timer: Timer | None = None
    """Set while the request waits for an instant."""
    proxy_use: ProxyUse | None = None
    """The slot of a proxy that is held; None: none, as on a direct route."""
    proxy_tries: ProxyTries | None = None
    redirects: int = 0
    origin_address: str = ""
    """Address of the request's own host, once a redirect of its robots.txt has left it."""
    started: float = 0.0
    """When the first server was dialled, in seconds since 1970 UTC; 0: no server has been contacted."""
    dialled_at: float = 0.0
    """Monotonic instant of the last dial."""
    exchange_receipts: tuple[Receipt, ...] = ()
    """Receipts of archived responses that are not pages."""
