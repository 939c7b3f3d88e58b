"""Browsers without a browser: each page is a future that the test completes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nephila.kernel.documents.browser_schema import Browser
from nephila_browser.contract import Credentials, FetchLimits, GatewayAddress, GatewayResult
from nephila_browser.engine import BrowserGoneError, BrowserProcess, RenderedPage, RenderError, RenderTask
from nephila_browser.instructions import PageInstructions


def task(url: str = "http://a.test/", timeout_s: float = 30.0) -> RenderTask:
    """A page to render."""
    return RenderTask(
        url=url,
        instructions=PageInstructions(Browser(), ()),
        credentials=Credentials("u", "p"),
        user_agent="test",
        timeout_s=timeout_s,
    )


class FakeProcess:
    """A browser whose pages end when the test says so."""

    def __init__(self, pid: int, on_gone: Callable[[BrowserProcess], None]) -> None:
        self.pid = pid
        self.memory = 100
        self.cpu = 1.0
        self.closed = False
        self.largest = 0
        """Memory of the newest page."""
        self.pages: list[asyncio.Future[RenderedPage]] = []
        self.urls: list[str] = []
        self._on_gone = on_gone

    async def render(self, task: RenderTask) -> RenderedPage:
        """See `BrowserProcess.render`."""
        page: asyncio.Future[RenderedPage] = asyncio.get_running_loop().create_future()
        self.pages.append(page)
        self.urls.append(task.url)
        try:
            return await page
        finally:
            self.pages.remove(page)

    def cpu_s(self) -> float:
        """See `BrowserProcess.cpu_s`."""
        return self.cpu

    def memory_bytes(self) -> int:
        """See `BrowserProcess.memory_bytes`."""
        return self.memory

    def end_page_above(self, size_bytes: int) -> bool:
        """See `BrowserProcess.end_page_above`."""
        if self.largest <= size_bytes:
            return False
        self.memory -= self.largest
        self.largest = 0
        self.pages[-1].set_exception(RenderError("browser_memory", "too much"))
        return True

    async def close(self) -> None:
        """See `BrowserProcess.close`."""
        self.closed = True
        for page in self.pages:
            if not page.done():
                page.set_exception(BrowserGoneError())

    def complete(self, html: bytes = b"<p>done") -> None:
        """End the oldest page."""
        self.pages[0].set_result(RenderedPage(html=html))

    def crash(self) -> None:
        """End as after kill -9."""
        self._on_gone(self)
        for page in self.pages:
            page.set_exception(BrowserGoneError())


class FakeEngine:
    """Starts fake browsers."""

    def __init__(self) -> None:
        self.started: list[FakeProcess] = []
        self.closed = False
        self.broken = ""
        """Why no browser starts."""

    async def launch(self, on_gone: Callable[[BrowserProcess], None]) -> FakeProcess:
        """See `Engine.launch`."""
        if self.broken:
            raise RenderError("browser", self.broken)
        self.started.append(FakeProcess(100 + len(self.started), on_gone))
        return self.started[-1]

    async def close(self) -> None:
        """See `Engine.close`."""
        self.closed = True


class FakeGateway:
    """Answers with results that a test sets per URL."""

    def __init__(self) -> None:
        self.results: dict[str, GatewayResult] = {}
        self.open: dict[str, FetchLimits] = {}
        self.registered: list[FetchLimits] = []
        self.closed = False

    async def start(self) -> GatewayAddress:
        """See `Gateway.start`."""
        return GatewayAddress("127.0.0.1", 1, "", "")

    def register(self, fetch_id: str, limits: FetchLimits) -> Credentials:
        """See `Gateway.register`."""
        self.open[fetch_id] = limits
        self.registered.append(limits)
        return Credentials(fetch_id, "p")

    def result(self, fetch_id: str) -> GatewayResult:
        """See `Gateway.result`."""
        return self.results.get(self.open.pop(fetch_id).document_url, GatewayResult())

    async def close(self) -> None:
        """See `Gateway.close`."""
        self.closed = True
