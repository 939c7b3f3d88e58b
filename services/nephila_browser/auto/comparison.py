"""One page fetched by both lanes: plain first, then, after the delay of the host, by the browser."""

from __future__ import annotations

import logging
from collections.abc import Callable

from nephila.downloader.http.contract import Fetcher, Handle, HttpRequest, HttpResponse, OnDone
from nephila.kernel.runtime.clock import Clock, Timer

from nephila_browser.auto.verdicts import WordsAndLinks, needs_browser

log = logging.getLogger(__name__)

HTML = ("text/html", "application/xhtml+xml")


class LaneComparison:
    """A page in flight on both lanes. Its response is the rendered one if the page needs a browser, else the plain one.

    Nothing is learnt where one of the two lanes fails; the plain response counts then.
    """

    def __init__(
        self,
        plain: Fetcher,
        browser: Fetcher,
        clock: Clock,
        delay_s: float,
        request: HttpRequest,
        on_done: OnDone,
        learn: Callable[[bool], None],
        accepts: Callable[[HttpResponse], bool],
    ) -> None:
        """`learn` receives whether the page needs a browser. `accepts`: a plain page that needs no comparison."""
        self._accepts = accepts
        self._browser = browser
        self._clock = clock
        self._delay_s = delay_s
        self._request = request
        self._on_done = on_done
        self._learn = learn
        self._timer: Timer | None = None
        self._handle: Handle | None = plain.fetch(request, self._on_plain)

    def abort(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._handle is not None:
            self._handle.abort()

    def _on_plain(self, response: HttpResponse) -> None:
        self._handle = None
        if response.reason or not 200 <= response.status < 300 or response.content_type not in HTML:
            self._on_done(response)
            return
        if self._accepts(response):
            self._on_done(response)
            return
        self._timer = self._clock.call_at(self._clock.monotonic() + self._delay_s, lambda: self._render(response))

    def _render(self, plain: HttpResponse) -> None:
        self._timer = None
        self._handle = self._browser.fetch(self._request, lambda rendered: self._on_rendered(plain, rendered))

    def _on_rendered(self, plain: HttpResponse, rendered: HttpResponse) -> None:
        self._handle = None
        plain.browser_s = rendered.browser_s
        if not rendered.rendered:
            self._on_done(plain)
            return
        url = self._request.target.href
        try:
            needed = needs_browser(
                WordsAndLinks(plain.body, url, plain.charset or "utf-8"), WordsAndLinks(rendered.body, url, "utf-8")
            )
        except Exception:  # a page that the native core refuses is not compared
            log.exception("two copies of a page could not be compared")
            self._on_done(plain)
            return
        self._learn(needed)
        chosen = rendered if needed else plain
        chosen.wire_bytes = plain.wire_bytes + rendered.wire_bytes
        self._on_done(chosen)
