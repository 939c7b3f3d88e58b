"""The port of proxies: what the downloader asks when requests are led through proxies.

`nephila_proxies` implements it; without that package a crawl with a setting of the section `proxies` is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, Protocol

from nephila.downloader.http.contract import HttpResponse
from nephila.downloader.http.route import Route
from nephila.downloader.http.target import TargetUrl
from nephila.kernel import messages as m
from nephila.kernel.reasons.table import Reason

WAIT_S = 15.0
"""Pause of a host while no proxy of its selector works."""


class ProxyUse:
    """One slot of a proxy, held by one request. The downloader knows of a proxy its `name`, without the password."""

    __slots__ = ("proxy", "route", "since")

    def __init__(self, proxy: Any, route: Route, since: float) -> None:
        self.proxy = proxy
        self.route = route
        self.since = since


class ProxyTries:
    """The proxies that one request has tried."""

    __slots__ = ("by_tunnel", "failed", "suspects")

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.suspects: list[tuple[Any, Any]] = []
        """(proxy, fault) that count only if the request succeeds through another proxy: a wrong certificate, or a 407
        without a tunnel. The server may be the cause."""
        self.by_tunnel = False
        """Use a tunnel also where none is needed: in a tunnel a 407 of the proxy differs from one of the server."""


class NoProxyError(Exception):
    """No proxy can serve a request. `final`: the request fails, for `reason`; else its host waits."""

    def __init__(self, text: str, final: bool, reason: Reason = Reason.PROXY) -> None:
        super().__init__(text)
        self.final = final
        self.reason = reason


class ProxyStep(Enum):
    """The next step of a request after its response."""

    ACCEPT = "accept"
    RETRY = "retry"
    GIVE_BACK = "give_back"
    COMPARE = "compare"
    """Given back for a second fetch through another proxy."""


class Served(NamedTuple):
    """An accepted response of a page."""

    proxy: str
    host: str
    partition: int
    status: int
    request: m.FetchRequest


class Proxies(Protocol):
    """Chooses the proxy of a request and judges what came through it. A selector says which proxies a request may use;
    its content is not the downloader's business."""

    @property
    def resolve_names(self) -> bool:
        """Whether only the proxies know the names of servers."""

    on_retract: Callable[[Served], None]
    """Called for each page that came through a liar."""

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is new, has changed or is deleted."""

    def selector(self, request: m.FetchRequest, target: TargetUrl) -> Any | None:
        """The proxies that a request may use; None: it uses none."""

    def acquire(
        self, request: m.FetchRequest, target: TargetUrl, route: Route, selector: Any, tries: ProxyTries | None
    ) -> ProxyUse | None:
        """A proxy with a free slot; None when all slots are in use. Raises `NoProxyError`."""

    async def lease(self, request: m.FetchRequest, target: TargetUrl, route: Route) -> ProxyUse | None:
        """As `acquire`, for a request outside of the pipeline: waits for a slot. None: it uses no proxy."""

    def follow(self, page: Route, target: TargetUrl, direct: Route) -> Route:
        """The route of a further request of a page: through the same proxy, if it has one."""

    def release(self, use: ProxyUse) -> None:
        """Free the slot."""

    def has_another(self, target: TargetUrl, selector: Any, tries: ProxyTries) -> bool:
        """Whether a further proxy may be tried."""

    def after_dial(
        self, use: ProxyUse, target: TargetUrl, selector: Any, tries: ProxyTries, response: HttpResponse
    ) -> ProxyStep:
        """Judge a response before middleware sees it: RETRY when the request has not reached the server."""

    def after_response(
        self,
        use: ProxyUse,
        request: m.FetchRequest,
        target: TargetUrl,
        tries: ProxyTries,
        response: HttpResponse,
        partition: int = 0,
    ) -> ProxyStep:
        """Judge a response that middleware has seen."""

    def no_proxy(self, target: TargetUrl, selector: Any, tries: ProxyTries | None, detail: str = "") -> NoProxyError:
        """Why no proxy serves a request."""
