"""Second fetches: a share of the pages that came through a proxy is fetched again through another one and compared.

A response is doubted when its proxy is new or has lied before, by chance (`share`), when its body came through this
proxy for `SAME_BODY_HOSTS` hosts, or through any for `SAME_BODY_URLS` URLs of its host. A doubted request is given
back, so the delay of its host applies, and the next fetch avoids the proxies that it has used:

    first = second                    both proxies agree; the second response is the result
    first != second, third = one      the outvoted proxy has lied
    all three differ                  the page is dynamic, no proxy has lied; the last response is the result

A body that came for many hosts or URLs is true when three proxies return it, and a lie when two return another one,
alike or not. Proxies that lie alike confirm each other until then: what they were believed before is taken back. Where
no other proxy works, the response is accepted and counted as `unchecked`. Pure.

Costs: `share` of the fetches, `FIRST_PAGES` per proxy, and one fetch more per page that changes with each request. The
tables have `MAX_DOUBTS`, `MAX_BODIES` and `MAX_SERVED` entries; the oldest is dropped first.
"""

import random
from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from typing import NamedTuple

from nephila.downloader.http.contract import HttpResponse
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.proxy_port import Served
from nephila.kernel import messages as m

from nephila_proxies.proxy import Proxy
from nephila_proxies.signature import Signature, digest_of, signature_of

FIRST_PAGES = 2
"""Pages of a new proxy that are all compared."""
SAME_BODY_HOSTS = 3
"""Hosts with one body through one proxy from which the body is doubted."""
SAME_BODY_URLS = 3
"""URLs of one host with one body, through any proxies, from which the body is doubted."""
FETCHES = 5
"""Fetches of a doubted request, failed ones included; then the response counts."""
MAX_DOUBTS, MAX_BODIES, MAX_SERVED, MAX_VERDICTS = 10_000, 20_000, 20_000, 1_000
Key = tuple[str, bytes]


class SecondFetch(NamedTuple):
    """What a response means. `again`: fetch it once more, through another proxy."""

    again: bool = False
    agreed: tuple[str, ...] = ()
    """Proxies whose responses are alike."""
    lied: tuple[str, ...] = ()
    """Proxies that were outvoted."""
    hosts: frozenset[str] = frozenset()
    """Hosts for which they lied beside that of the request: those that one body came for."""
    acquitted: tuple[tuple[str, str], ...] = ()
    """(Proxy, host) of earlier lies of which these liars were the only witnesses."""


ACCEPTED, AGAIN = SecondFetch(), SecondFetch(again=True)


class _Doubt:
    """The responses of one doubted request."""

    __slots__ = ("fetches", "seen")

    def __init__(self) -> None:
        self.seen: list[tuple[str, Signature]] = []
        self.fetches = 0


class SecondFetches:
    """Samples, votes, and pages that came through proxies. O(1) per page, O(bytes) per doubted page."""

    def __init__(self, share: float, rng: random.Random) -> None:
        """`share`: of the pages of a trusted proxy; 0: nothing is compared."""
        self._share = share
        self._rng = rng
        self._doubts: OrderedDict[Key, _Doubt] = OrderedDict()
        self._bodies: OrderedDict[tuple[str, bytes], set[str]] = OrderedDict()
        """(Proxy, digest of a body) → hosts, at most `SAME_BODY_HOSTS`."""
        self._pages: OrderedDict[tuple[str, bytes], set[bytes]] = OrderedDict()
        """(Host, digest of a body) → keys of URLs, at most `SAME_BODY_URLS`."""
        self._verdicts: deque[tuple[str, tuple[str, ...], tuple[str, ...]]] = deque(maxlen=MAX_VERDICTS)
        """(Host, proxies that agreed, proxies that were outvoted by them), the newest last."""
        self._true_bodies: OrderedDict[bytes, None] = OrderedDict()
        """Bodies of many hosts that three proxies have returned."""
        self._served: deque[Served] = deque(maxlen=MAX_SERVED)
        self.compared = 0
        """Second and third fetches."""
        self.undecided = 0
        """Pages of which all fetches differ."""
        self.unchecked = 0
        """Doubted pages for which no other proxy works."""

    @property
    def active(self) -> bool:
        """Whether responses are compared at all."""
        return self._share > 0

    def used(self, request: m.FetchRequest) -> Collection[str]:
        """Proxies that the next fetch of a request avoids."""
        doubt = self._doubts.get((request.job, request.url_key)) if self._doubts else None
        return () if doubt is None else [name for name, _ in doubt.seen]

    def end_doubt(self, request: m.FetchRequest) -> None:
        """No proxy is left for another fetch: the next response counts."""
        if self._doubts.pop((request.job, request.url_key), None) is not None:
            self.unchecked += 1

    def failed(self, request: m.FetchRequest) -> None:
        """A fetch of a request has failed, whether it is doubted or not."""
        doubt = self._doubts.get((request.job, request.url_key)) if self._doubts else None
        if doubt is not None:
            doubt.fetches += 1

    def judge(
        self,
        proxy: Proxy,
        request: m.FetchRequest,
        target: TargetUrl,
        response: HttpResponse,
        has_another: Callable[[Collection[str]], bool],
    ) -> SecondFetch:
        """Judge a response of a server. `has_another`: whether a proxy beside these works for the request."""
        key = (request.job, request.url_key)
        doubt = self._doubts.get(key)
        # One robots.txt may be that of many hosts.
        is_common = request.kind != m.FetchKind.ROBOTS and self._is_common(proxy.name, target.host, key[1], response)
        if doubt is None:
            if not is_common and not self._is_sampled(proxy):
                return ACCEPTED
            doubt = self._doubts[key] = _Doubt()
            if len(self._doubts) > MAX_DOUBTS:
                self._doubts.popitem(last=False)
        else:
            self.compared += 1
        doubt.fetches += 1
        doubt.seen.append((proxy.name, signature_of(response)))
        finding = self._vote(target.host, doubt.seen)
        if finding is None:
            most = FETCHES if self._common(target.host, doubt.seen) else 3
            if doubt.fetches < FETCHES and len(doubt.seen) < most:
                if has_another([name for name, _ in doubt.seen]):
                    return AGAIN
                self.unchecked += 1
            else:
                self.undecided += 1
        self._doubts.pop(key, None)
        if finding is None:
            return ACCEPTED
        return finding._replace(again=proxy.name in finding.lied)

    def _common(self, host: str, seen: list[tuple[str, Signature]]) -> set[bytes]:
        """Digests of the bodies that came for many hosts, or for many URLs of this one."""
        return {
            signature.digest
            for name, signature in seen
            if signature.digest not in self._true_bodies
            and (
                len(self._bodies.get((name, signature.digest), ())) >= SAME_BODY_HOSTS
                or len(self._pages.get((host, signature.digest), ())) >= SAME_BODY_URLS
            )
        }

    def _vote(self, host: str, seen: list[tuple[str, Signature]]) -> SecondFetch | None:
        """Who agrees and who has lied; None while it is open."""
        common = self._common(host, seen)
        if common:
            liars = tuple(name for name, signature in seen if signature.digest in common)
            others = tuple(name for name, signature in seen if signature.digest not in common)
            if len(others) > 1:
                hosts_of = (
                    self._bodies.get((name, signature.digest), set()) for name, signature in seen if name in liars
                )
                hosts = frozenset[str]().union(*hosts_of)
                return SecondFetch(lied=liars, hosts=hosts, acquitted=self._acquit(liars))
            if len(liars) < 3:
                return None
            self._true_bodies.update(dict.fromkeys(common))
            while len(self._true_bodies) > MAX_BODIES:
                self._true_bodies.popitem(last=False)
            return SecondFetch()
        for _, signature in seen:
            alike = tuple(name for name, other in seen if other.is_like(signature))
            if len(alike) > 1:
                lied = tuple(name for name, _ in seen if name not in alike)
                if lied:
                    self._verdicts.append((host, alike, lied))
                return SecondFetch(agreed=alike, lied=lied)
        return None

    def _acquit(self, liars: Collection[str]) -> tuple[tuple[str, str], ...]:
        """Take back the verdicts of which only these liars were the witnesses. O(`MAX_VERDICTS`)."""
        void = [verdict for verdict in self._verdicts if sum(name not in liars for name in verdict[1]) < 2]
        if void:
            gone = {id(verdict) for verdict in void}
            self._verdicts = deque((verdict for verdict in self._verdicts if id(verdict) not in gone), MAX_VERDICTS)
        return tuple((name, host) for host, _, lied in void for name in lied if name not in liars)

    def _is_sampled(self, proxy: Proxy) -> bool:
        return proxy.agreed < FIRST_PAGES or bool(proxy.lies) or self._rng.random() < self._share

    def _is_common(self, name: str, host: str, url_key: bytes, response: HttpResponse) -> bool:
        """Whether a body has come through a proxy for many hosts, or for many URLs of one host."""
        if not response.body or response.status != 200:
            return False
        digest = digest_of(response)
        if digest in self._true_bodies:
            return False
        hosts = self._bodies.setdefault((name, digest), set())
        self._bodies.move_to_end((name, digest))
        if len(self._bodies) > MAX_BODIES:
            self._bodies.popitem(last=False)
        if len(hosts) < SAME_BODY_HOSTS:
            hosts.add(host)
        pages = self._pages.setdefault((host, digest), set())
        self._pages.move_to_end((host, digest))
        if len(self._pages) > MAX_BODIES:
            self._pages.popitem(last=False)
        if len(pages) < SAME_BODY_URLS:
            pages.add(url_key)
        return len(hosts) >= SAME_BODY_HOSTS or len(pages) >= SAME_BODY_URLS

    # ---- pages of liars

    def accepted(self, name: str, host: str, partition: int, status: int, request: m.FetchRequest) -> None:
        """A response of a page is accepted; robots.txt is not stored."""
        if request.job:
            self._served.append(Served(name, host, partition, status, request))

    def take_served(self, name: str, hosts: Collection[str] | None) -> list[Served]:
        """Remove and return the pages of these hosts that came through a proxy; None: of all hosts.
        O(`MAX_SERVED`)."""
        taken = [page for page in self._served if page.proxy == name and (hosts is None or page.host in hosts)]
        if taken:
            gone = {id(page) for page in taken}
            self._served = deque((page for page in self._served if id(page) not in gone), MAX_SERVED)
        return taken

    def check(self) -> None:
        """Raise AssertionError when an invariant is broken."""
        assert len(self._doubts) <= MAX_DOUBTS
        assert len(self._bodies) <= MAX_BODIES >= len(self._true_bodies)
        assert all(0 < len(hosts) <= SAME_BODY_HOSTS for hosts in self._bodies.values())
        assert len(self._pages) <= MAX_BODIES
        assert all(0 < len(pages) <= SAME_BODY_URLS for pages in self._pages.values())
        for doubt in self._doubts.values():
            names = [name for name, _ in doubt.seen]
            assert 0 < len(names) < FETCHES, f"an open vote of {names}"
