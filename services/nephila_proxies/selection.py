"""Which proxy a request uses, and what its result means for the proxy and for the request.

A fault before the request has reached the server is repeated through the next proxy at once. After that the server may
have seen the request, so it is given back: its host's delay applies, and no attempt is counted. Both are bounded.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable

import msgspec
from nephila.downloader.http.contract import HttpResponse
from nephila.downloader.http.route import ProxyHop, Route, proxied
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.proxy_port import NoProxyError, ProxyStep, ProxyTries, ProxyUse, Served
from nephila.kernel import messages as m
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.reasons.status_words import tunnel_status_of
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.waits import sleep

from nephila_proxies.pool import ProxyNeed, ProxyPool
from nephila_proxies.proxy import Proxy, ProxyFault
from nephila_proxies.second_fetches import SecondFetches
from nephila_proxies.selector import DIRECT, Selector, parse_selector
from nephila_proxies.sessions import ProxySessions

log = logging.getLogger(__name__)

LOCAL, PROXY, PROXY_ONLY = NAMES = ("local", "proxy", "proxy_only")
MAX_PROXIES_PER_REQUEST = 5
"""Proxies that one request is sent through before it is given back."""
MAX_GIVE_BACKS = 3
"""Times that one URL is given back because of bans and broken connections; then its result counts."""
MAX_BOOKED, MAX_STICKY = 10_000, 10_000
"""Entries of the two tables; the oldest is dropped first."""
MAX_LABELS = 20
"""Classes that metrics tell apart."""
LEASE_RETRY_S = 0.25
BAN_STATUSES = frozenset((403, 429))


class NoProxy:
    """Hosts that never use a proxy: exact names and `*.suffix`, which covers names below the suffix."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._exact: set[str] = set()
        self._suffixes: set[str] = set()
        for pattern in patterns:
            host = pattern.strip().lower().rstrip(".")
            if not host or "*" in host.removeprefix("*.") or "/" in host:
                raise UsageError(f"no_proxy {pattern!r}: expected a host, or *.example.org for hosts below a name")
            (self._suffixes if host.startswith("*.") else self._exact).add(host.removeprefix("*."))

    def covers(self, host: str) -> bool:
        """Whether a host is in the list. O(labels)."""
        host = host.rstrip(".")
        if host in self._exact:
            return True
        while self._suffixes and host:
            host = host.partition(".")[2]
            if host in self._suffixes:
                return True
        return False


class ProxySelection:
    """Chooses proxies and judges results. Counters are read by the metrics."""

    def __init__(
        self,
        pool: ProxyPool,
        clock: Clock,
        *,
        default: str = "",
        no_proxy: Iterable[str] = (),
        names: str = LOCAL,
        give_up_s: float = 600.0,
        always_sessions: bool = False,
        on_fault: Callable[[Proxy, ProxyFault], None] | None = None,
        second_fetches: SecondFetches | None = None,
        trusts_tls: bool = True,
    ) -> None:
        """`trusts_tls`: certificates are checked, so that no proxy can change what an https server sends.
        `second_fetches`: compares pages; None: no page is compared."""
        if names not in NAMES:
            raise UsageError(f"proxies.names {names!r}: known are {', '.join(NAMES)}")
        self.pool = pool
        self._clock = clock
        self._default = default
        self._no_proxy = NoProxy(no_proxy)
        self.names = names
        self._give_up_s = give_up_s
        self._class_of_job: dict[str, str] = {}
        self._sessions = ProxySessions(always_sessions)
        self._sticky: dict[str, str] = {}
        """Session → name of its proxy."""
        self._given_back: dict[tuple[str, bytes], int] = {}
        self._none_since: dict[Selector, float] = {}
        self._selectors: dict[str, Selector] = {}
        self.picks: Counter[str] = Counter()
        """Requests by the class of their proxy."""
        self.faults: Counter[ProxyFault] = Counter()
        self.without_proxy = 0
        """Requests that found no proxy."""
        self._on_fault = on_fault
        self._reported: set[str] = set()
        """Lines about refused CONNECTs that the log has."""
        self.second_fetches = second_fetches or SecondFetches(0.0, random.Random(0))
        self._trusts_tls = trusts_tls
        self.retracted = 0
        """Pages that came through proxies that lie."""
        self.on_retract: Callable[[Served], None] = lambda _: None
        """Called for each page that came through a liar; set by the service that publishes."""

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is new, has changed or is deleted."""
        self._sessions.on_job(job)
        if job.deleted:
            self._class_of_job.pop(job.uid, None)
            return
        self._class_of_job[job.uid] = spec_of(job).proxy_class

    @property
    def resolve_names(self) -> bool:
        """Whether only the proxies know the names of servers."""
        return self.names == PROXY_ONLY

    def selector(self, request: m.FetchRequest, target: TargetUrl) -> Selector | None:
        """The proxies that a request may use; None: it uses none."""
        context = request.context
        text = (context.proxy_class if context is not None else "") or self._class_of_job.get(request.job, "")
        text = text or self._default
        if text == DIRECT or self._no_proxy.covers(target.dial_host):
            return None
        selector = self._selectors.get(text)
        if selector is None:
            selector = parse_selector(text)
            if len(self._selectors) < 1000:
                self._selectors[text] = selector
        return selector

    def acquire(
        self, request: m.FetchRequest, target: TargetUrl, route: Route, selector: Selector, tries: ProxyTries | None
    ) -> ProxyUse | None:
        """A proxy with a free slot; None when all slots are in use. Raises `NoProxyError`."""
        now = self._clock.monotonic()
        by_tunnel = tries is not None and tries.by_tunnel
        need = self._need(target, tries)
        avoid: Collection[str] = tries.failed if tries is not None else ()
        if used := self.second_fetches.used(request):
            both = [*avoid, *used]
            if self.pool.has_alive(selector, need, both, now):
                avoid = both
            else:
                self.second_fetches.end_doubt(request)
        session = self._sessions.key(request, target)
        if session and (name := self._sticky.get(session)) is not None:
            stuck = self.pool.find(name)
            if stuck is not None and self.pool.serves(stuck, selector, need, avoid, now):
                return self._use(stuck, target, route, now, by_tunnel) if self.pool.has_slot(stuck) else None
        proxy = self.pool.pick(selector, need, avoid, now)
        if proxy is None:
            if self.pool.has_alive(selector, need, avoid, now):
                return None
            raise self.no_proxy(target, selector, tries)
        if session:
            if len(self._sticky) >= MAX_STICKY and session not in self._sticky:
                del self._sticky[next(iter(self._sticky))]
            self._sticky[session] = proxy.name
        return self._use(proxy, target, route, now, by_tunnel)

    async def lease(self, request: m.FetchRequest, target: TargetUrl, route: Route) -> ProxyUse | None:
        """Lease a proxy for a request outside of the pipeline, such as that of a login; waits for a slot. None: the
        request uses no proxy."""
        selector = self.selector(request, target)
        if selector is None:
            return None
        while (use := self.acquire(request, target, route, selector, None)) is None:
            await sleep(self._clock, LEASE_RETRY_S)
        return use

    def follow(self, page: Route, target: TargetUrl, direct: Route) -> Route:
        """The route of a further request of a page that has a route: through the same proxy, if it has one."""
        hop = page.proxy
        if hop is None or self._no_proxy.covers(target.dial_host):
            return direct
        is_local = self.names == LOCAL
        needed = is_local or hop.scheme != "http" or target.scheme == "https"
        hop = msgspec.structs.replace(
            hop,
            host=direct.pace_address if is_local else target.dial_host,
            port=direct.port,
            tunnel=needed or (hop.tunnel and not page.tls_name),
        )
        return proxied(direct, page.addresses, page.port, hop)

    def release(self, use: ProxyUse) -> None:
        """Free the slot."""
        self.pool.end_use(use.proxy)

    def has_another(self, target: TargetUrl, selector: Selector, tries: ProxyTries) -> bool:
        """Whether a further proxy may be tried for a request."""
        return len(tries.failed) < MAX_PROXIES_PER_REQUEST and self.pool.has_alive(
            selector, self._need(target, tries), tries.failed, self._clock.monotonic()
        )

    # ---- results

    def after_dial(
        self, use: ProxyUse, target: TargetUrl, selector: Selector, tries: ProxyTries, response: HttpResponse
    ) -> ProxyStep:
        """Judge a response before middleware sees it: RETRY when the request has not reached the server."""
        proxy = use.proxy
        if response.status == 407 and use.route.proxy is not None and not use.route.proxy.tunnel:
            tries.by_tunnel = True
            tries.suspects.append((proxy, ProxyFault.REFUSED))
            return ProxyStep.RETRY
        fault = _fault_before_request(response)
        if fault is None:
            return ProxyStep.ACCEPT
        if fault is ProxyFault.NO_TUNNEL:
            status = tunnel_status_of(response.reason)
            self.pool.refused_tunnel(proxy, target.port, status, self._clock.monotonic())
        if tries.by_tunnel and fault in (ProxyFault.DEAD, ProxyFault.NO_TUNNEL):
            fault = ProxyFault.UNREACHABLE  # a proxy may permit CONNECT only to port 443
        tries.failed.append(proxy.name)
        if fault is ProxyFault.TAMPERED:
            tries.suspects.append((proxy, fault))
        else:
            self._fail(proxy, fault, target.host)
        if fault not in (ProxyFault.TAMPERED, ProxyFault.UNREACHABLE) or self.has_another(target, selector, tries):
            return ProxyStep.RETRY
        # Most often the server is the cause: with no proxy left, this is its result.
        if tries.by_tunnel:
            response.status, response.reason, response.detail = 407, Reason.NONE, ""
        return ProxyStep.ACCEPT

    def after_response(
        self,
        use: ProxyUse,
        request: m.FetchRequest,
        target: TargetUrl,
        tries: ProxyTries,
        response: HttpResponse,
        partition: int = 0,
    ) -> ProxyStep:
        """Judge a response that middleware has seen: GIVE_BACK when another proxy may get a better one, COMPARE for a
        second fetch. `partition`: of the request."""
        reached = _fault_before_request(response) is None
        fault = _fault_of_response(response) if reached else None
        key = (request.job, request.url_key)
        if fault is None:
            if reached and response.reason != Reason.STALE:
                self.pool.succeeded(use.proxy, self._clock.monotonic() - use.since)
                for suspect, suspected in tries.suspects:
                    if suspected is not ProxyFault.REFUSED or response.status != 407:
                        self._fail(suspect, suspected, target.host)
                if self._none_since:
                    self._none_since.pop(self.selector(request, target) or Selector("", ""), None)
                if self._can_lie(request, target, response) and self._compare(
                    use.proxy, request, target, response, partition
                ):
                    return ProxyStep.COMPARE
                self._given_back.pop(key, None)
            return ProxyStep.ACCEPT
        self.second_fetches.failed(request)
        self._fail(use.proxy, fault, target.host)
        times = self._given_back.pop(key, 0) + 1
        if times > MAX_GIVE_BACKS:
            return ProxyStep.ACCEPT
        if len(self._given_back) >= MAX_BOOKED:
            del self._given_back[next(iter(self._given_back))]
        self._given_back[key] = times
        return ProxyStep.GIVE_BACK

    # ---- lies

    def _can_lie(self, request: m.FetchRequest, target: TargetUrl, response: HttpResponse) -> bool:
        """Whether a proxy could have replaced a response, and whether a second fetch would get the same one: it has no
        session, sends no form, and is not an error of the server."""
        context = request.context
        return (
            self.second_fetches.active
            and (target.scheme != "https" or not self._trusts_tls)
            and (request.kind is not m.FetchKind.ROBOTS or target.href == request.url)  # not the target of a redirect
            and not response.reason
            and not response.rendered
            and response.status < 500
            and not (context is not None and context.form)
            and not self._sessions.key(request, target)
        )

    def _compare(
        self, proxy: Proxy, request: m.FetchRequest, target: TargetUrl, response: HttpResponse, partition: int
    ) -> bool:
        """Compare a response with those of other proxies, and act on what is found. True: fetch it once more."""
        selector = self.selector(request, target)
        assert selector is not None
        need, now = self._need(target, None), self._clock.monotonic()
        seconds = self.second_fetches
        judgement = seconds.judge(
            proxy, request, target, response, lambda avoid: self.pool.has_alive(selector, need, avoid, now)
        )
        for name in judgement.agreed:
            if (agreed := self.pool.find(name)) is not None:
                self.pool.confirmed(agreed)
        for name in judgement.lied:
            if (liar := self.pool.find(name)) is not None:
                self._fail(liar, ProxyFault.LIED, target.host)
                hosts = judgement.hosts | {target.host}
                is_liar = sum(self.pool.lied(liar, host, now) for host in hosts) > 0  # each host counts
                pages = seconds.take_served(name, None if is_liar else hosts)
                log.warning(
                    "proxy %s returned another page for %s than %s: it is not used for %s for a day, and %d pages are "
                    "fetched again",
                    name,
                    target.host,
                    " and ".join(judgement.agreed) or "another proxy",
                    "any host" if is_liar else "this host",
                    len(pages),
                )
                self.retracted += len(pages)
                for page in pages:
                    self.on_retract(page)
        for name, host in judgement.acquitted:
            if (honest := self.pool.find(name)) is not None:
                self.pool.acquitted(honest, host)
        if not judgement.again:
            seconds.accepted(proxy.name, target.host, partition, response.status, request)
        return judgement.again

    def _fail(self, proxy: Proxy, fault: ProxyFault, host: str) -> None:
        self.faults[fault] += 1
        self.pool.failed(proxy, fault, host, self._clock.monotonic())
        if self._on_fault is not None:
            self._on_fault(proxy, fault)

    # ---- helpers

    def _need(self, target: TargetUrl, tries: ProxyTries | None) -> ProxyNeed:
        by_tunnel = self.names == LOCAL or (tries is not None and tries.by_tunnel)
        return ProxyNeed(target.host, target.scheme == "https", target.port, by_tunnel)

    def no_proxy(
        self, target: TargetUrl, selector: Selector, tries: ProxyTries | None, detail: str = ""
    ) -> NoProxyError:
        """Why no proxy serves a request. Final when none has for a long time, or when all refuse CONNECT."""
        self.without_proxy += 1
        now, need = self._clock.monotonic(), self._need(target, tries)
        since = self._none_since.setdefault(selector, now)
        named = "/".join(part for part in selector if part) or "any class"
        refusals = self.pool.refusals(selector, need, now)
        if refusals and not refusals[0]:
            statuses = ", ".join(f"{status}: {count}" for status, count in sorted(refusals.items()) if count)
            hint = "; plain http needs no CONNECT with proxies.names: proxy" if target.scheme == "http" else ""
            text = f"all proxies of {named} refuse CONNECT to port {target.port} (status {statuses}){hint}"
            if text not in self._reported:
                if len(self._reported) >= MAX_LABELS:
                    self._reported.clear()
                self._reported.add(text)
                log.error("%s", text)
            return NoProxyError(text, not self.pool.has_candidate(selector), reason=Reason.NO_TUNNEL)
        return NoProxyError(detail or f"no proxy of {named} works", now - since >= self._give_up_s)

    def _use(self, proxy: Proxy, target: TargetUrl, route: Route, now: float, by_tunnel: bool) -> ProxyUse:
        self.pool.start_use(proxy)
        kind = proxy.kind or "unknown"
        self.picks[kind if kind in self.picks or len(self.picks) < MAX_LABELS else "other"] += 1
        return ProxyUse(proxy, route_through(proxy, target, route, self.names, by_tunnel), now)


def route_through(proxy: Proxy, target: TargetUrl, route: Route, names: str, by_tunnel: bool = False) -> Route:
    """A direct route led through a proxy. `by_tunnel`: also where the proxy could receive the whole URL."""
    endpoint = proxy.endpoint
    is_local = names == LOCAL
    hop = ProxyHop(
        proxy.name,
        endpoint.scheme,
        endpoint.user,
        endpoint.password,
        route.pace_address if is_local else target.dial_host,
        route.port,
        # A proxy that receives the whole URL resolves the name in it, so names resolved here need a tunnel.
        tunnel=by_tunnel or is_local or endpoint.scheme != "http" or target.scheme == "https",
        tls_name=endpoint.host.rstrip(".") if endpoint.scheme == "https" else "",
    )
    return proxied(route, proxy.addresses, endpoint.port, hop)


def _fault_before_request(response: HttpResponse) -> ProxyFault | None:
    """The fault of a fetch that has not reached the server."""
    if tunnel_status_of(response.reason):
        return ProxyFault.NO_TUNNEL
    match response.reason:
        case Reason.PROXY:
            return ProxyFault.DEAD
        case Reason.PROXY_AUTH:
            return ProxyFault.REFUSED
        case Reason.CONNECT:
            return ProxyFault.UNREACHABLE
        case Reason.TLS:
            return ProxyFault.TAMPERED
        case Reason.TIMEOUT if response.detail.startswith("connect:"):
            return ProxyFault.DEAD
        case Reason.TIMEOUT if response.detail.startswith("tunnel:"):
            return ProxyFault.UNREACHABLE
    return None


def _fault_of_response(response: HttpResponse) -> ProxyFault | None:
    """The fault of a fetch that the server may have seen."""
    if response.status in BAN_STATUSES or response.reason in (Reason.BLOCKED, Reason.LOGIN_PAGE):
        return ProxyFault.BANNED
    match response.reason:
        case Reason.TIMEOUT:
            return ProxyFault.SLOW
        case Reason.DISCONNECTED | Reason.PROTOCOL | Reason.ENCODING:
            return ProxyFault.BROKEN
    return None
