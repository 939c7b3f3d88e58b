"""The stage PROXY: which proxy a request uses, and what its response says about that proxy."""

from __future__ import annotations

from collections.abc import Callable

from nephila.downloader.http.contract import HttpResponse
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.in_flight import MEMBERSHIP, PROXY, RESPONSE, InFlight
from nephila.downloader.proxy_port import WAIT_S, NoProxyError, Proxies, ProxyStep, ProxyTries
from nephila.downloader.stages.ending import GO, WAIT, Ending, OnEnd, Run, StageResult
from nephila.kernel import messages as m
from nephila.kernel.outcomes import given_back
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock

PROXY_RETRY_S = 0.25
"""Between two tries for the slot of a proxy; a slot that is freed starts the first waiting request at once."""


class ProxyStage:
    """Requests without a free slot wait, and repeat from MEMBERSHIP."""

    def __init__(
        self,
        proxies: Proxies,
        clock: Clock,
        ending: Ending,
        run: Run,
        call_middleware: Callable[[m.FetchRequest, TargetUrl, HttpResponse], None],
        on_response: Callable[[InFlight, HttpResponse], None],
        on_end: OnEnd,
    ) -> None:
        """`on_response`: a response is accepted; `call_middleware` comes before it."""
        self._proxies = proxies
        self._clock = clock
        self._ending = ending
        self._run = run
        self._call_middleware = call_middleware
        self._on_response = on_response
        self._on_end = on_end
        self._waiting: dict[InFlight, None] = {}

    def enter(self, fetch: InFlight) -> StageResult:
        """Lead the route through a proxy. A request without a free slot waits and repeats from MEMBERSHIP."""
        proxies, target = self._proxies, fetch.target
        assert target is not None
        selector = proxies.selector(fetch.request, target)
        if selector is None:
            return GO
        try:
            use = proxies.acquire(fetch.request, target, fetch.route, selector, fetch.proxy_tries)
        except NoProxyError as error:
            return self._end_without_proxy(fetch, error)
        if use is None:
            self._waiting[fetch] = None
            retry = self._clock.monotonic() + PROXY_RETRY_S
            fetch.timer = self._clock.call_at(retry, lambda: self._on_retry(fetch))
            return WAIT
        fetch.proxy_use = use
        return GO

    def _on_retry(self, fetch: InFlight) -> None:
        timer, fetch.timer = fetch.timer, None
        if timer is not None:
            timer.cancel()
        self._waiting.pop(fetch, None)
        if not self._ending.ends_early(fetch):
            self._run(fetch, MEMBERSHIP)

    def cancel(self, fetch: InFlight) -> None:
        """The request has ended: it waits for no proxy and frees its slot."""
        self._waiting.pop(fetch, None)
        self.release(fetch)

    def release(self, fetch: InFlight) -> None:
        """Free the slot of a proxy; the first request that waits for one tries at once."""
        use, fetch.proxy_use = fetch.proxy_use, None
        if use is not None:
            self._proxies.release(use)
            if self._waiting:
                following = next(iter(self._waiting))
                del self._waiting[following]
                self._clock.call_soon(lambda: self._on_free(following))

    def _on_free(self, fetch: InFlight) -> None:
        if fetch.stage is PROXY and fetch not in self._waiting:
            self._on_retry(fetch)

    def on_response(self, fetch: InFlight, response: HttpResponse) -> None:
        """Judge what came through a proxy: accept it, try the next proxy, or give the request back."""
        proxies, use, request, target = self._proxies, fetch.proxy_use, fetch.request, fetch.target
        assert use is not None
        assert target is not None
        selector = proxies.selector(request, target)
        assert selector is not None
        response.address = fetch.route.pace_address
        tries = fetch.proxy_tries
        if tries is None:
            tries = fetch.proxy_tries = ProxyTries()
        if proxies.after_dial(use, target, selector, tries, response) is ProxyStep.RETRY:
            self.release(fetch)
            if proxies.has_another(target, selector, tries):
                self._clock.call_soon(lambda: self._retry_by_next(fetch))
            else:
                self._end_without_proxy(fetch, proxies.no_proxy(target, selector, tries, response.detail))
            return
        self._call_middleware(request, target, response)
        step = proxies.after_response(use, request, target, tries, response, fetch.delivery.partition)
        if step is not ProxyStep.ACCEPT:
            outcome = given_back(request)
            if step is ProxyStep.COMPARE:
                outcome.reason, outcome.detail = Reason.SECOND_FETCH, f"compared with the page through {use.proxy.name}"
            else:
                detail = response.detail or f"status {response.status} by {use.proxy.name}"
                outcome.reason, outcome.detail = Reason.PROXY, detail
            outcome.wire_bytes = response.wire_bytes
            outcome.started_at, outcome.ended_at = fetch.started, self._clock.now()
            outcome.address = fetch.origin_address or response.address
            self._on_end(fetch, outcome)
        else:
            self._on_response(fetch, response)

    def _retry_by_next(self, fetch: InFlight) -> None:
        if fetch.stage is RESPONSE and fetch.proxy_use is None:
            self._run(fetch, PROXY)

    def _end_without_proxy(self, fetch: InFlight, error: NoProxyError) -> StageResult:
        """No proxy serves the request: its host waits, and after a long time the request fails."""
        if error.final:
            return self._ending.end(fetch, m.FetchResult.FAILED, error.reason, str(error))
        return self._ending.paused(fetch, error.reason, str(error), WAIT_S)
