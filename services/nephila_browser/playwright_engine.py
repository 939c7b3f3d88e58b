"""Browsers driven by Playwright: one driver process, which drives each Chromium over a pipe of DevTools.

Chromium is started here rather than by Playwright, so its process group is known and can be killed. It ends with its
driver, whose end closes the pipe. A driver that died is started again with the next browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence

from nephila.kernel.reasons.table import Reason
from playwright.async_api import Browser, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

from nephila_browser.chromium import Chromium, without_sandbox
from nephila_browser.contract import GatewayAddress
from nephila_browser.engine import BrowserGoneError, BrowserProcess, RenderedPage, RenderError, RenderTask
from nephila_browser.memory_cgroup import delete_abandoned_cgroups
from nephila_browser.page import PageCrashedError, render_page
from nephila_browser.profiles import delete_abandoned

log = logging.getLogger(__name__)

START_S = 30.0
"""Longest start of a browser; one takes about 0.7 s."""
STOP_S = 15.0
"""Longest wait for a driver that ends, or that may be dead."""


class PlaywrightProcess:
    """One Chromium with Playwright's connection to it."""

    def __init__(
        self,
        chromium: Chromium,
        browser: Browser,
        gateway: GatewayAddress,
        blocked: frozenset[str],
        on_gone: Callable[[BrowserProcess], None],
    ) -> None:
        self.pid = chromium.pid
        self._chromium = chromium
        self._browser = browser
        self._gateway = gateway
        self._blocked = blocked
        self._closing = False
        self._killed_renderer = False
        self._on_gone = on_gone
        # The end of the process is certain; calls over a connection that broke with it may wait for their time limits.
        self._ended = asyncio.ensure_future(chromium.wait())
        self._ended.add_done_callback(self._on_end)
        browser.on("disconnected", self._on_end)

    def _on_end(self, _: object) -> None:
        self._chromium.close_pipe()  # the driver takes it for the end of its browser
        if not self._closing:
            self._closing = True
            self._on_gone(self)

    async def render(self, task: RenderTask) -> RenderedPage:
        rendering = asyncio.ensure_future(render_page(self._browser, self._gateway, self._blocked, task))
        rendering.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            await asyncio.wait((rendering, self._ended), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            rendering.cancel()
            await asyncio.wait((rendering,))
            raise
        if not rendering.done():
            rendering.cancel()
            raise BrowserGoneError
        try:
            return rendering.result()
        except PageCrashedError:
            if self._is_memory_spent():
                raise RenderError(
                    Reason.BROWSER_MEMORY, "the page took more memory than its browser may have"
                ) from None
            raise RenderError(Reason.BROWSER, "the page crashed") from None
        except PlaywrightError as error:
            if self._ended.done() or not self._browser.is_connected():
                raise BrowserGoneError from None
            raise RenderError(Reason.BROWSER, str(error).split("\n", 1)[0][:300]) from None

    def _is_memory_spent(self) -> bool:
        """Whether the process of a page was killed for its memory, here or by the kernel."""
        return self._killed_renderer or self._chromium.kernel_kills() > 0

    def end_page_above(self, size_bytes: int) -> bool:
        killed = self._chromium.kill_renderer_above(size_bytes)
        self._killed_renderer |= killed
        return killed

    def memory_bytes(self) -> int:
        return self._chromium.memory_bytes()

    def cpu_s(self) -> float:
        return self._chromium.cpu_s()

    async def close(self) -> None:
        self._closing = True
        await self._chromium.kill()


class PlaywrightEngine:
    """Starts Chromium and connects Playwright to it."""

    def __init__(
        self,
        executable: str,
        gateway: GatewayAddress,
        blocked: Iterable[str],
        *,
        sandbox: bool,
        max_memory_bytes: int = 0,
    ) -> None:
        self._executable = executable
        self._gateway = gateway
        self._blocked = frozenset(blocked)
        self._sandbox = sandbox
        self._max_memory_bytes = max_memory_bytes
        self._driver: Playwright | None = None
        self._starting = asyncio.Lock()
        self._is_first = True

    async def launch(self, on_gone: Callable[[BrowserProcess], None]) -> BrowserProcess:
        if self._is_first:
            self._is_first = False
            if reason := without_sandbox(sandbox=self._sandbox):
                log.warning("%s: a page that breaks out of a renderer has the rights of this process", reason)
            await asyncio.to_thread(delete_abandoned)
            delete_abandoned_cgroups()
        driver = await self._running_driver(None)
        try:
            return await self._launch(driver, on_gone)
        except RenderError:
            if await _is_alive(driver):
                raise  # the fault is in this Chromium: other browsers keep their driver
        return await self._launch(await self._running_driver(driver), on_gone)

    async def _launch(self, driver: Playwright, on_gone: Callable[[BrowserProcess], None]) -> PlaywrightProcess:
        async def connect(executable: str, arguments: Sequence[str]) -> Browser:
            try:
                return await driver.chromium.launch(
                    executable_path=executable,
                    args=arguments,
                    ignore_default_args=True,
                    # The signals of a terminal end this program, which ends its browsers.
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                    timeout=START_S * 1000,
                )
            except Exception as error:  # a driver that was killed fails in many ways
                raise RenderError(Reason.BROWSER, f"no connection to Chromium: {str(error)[:200]}") from None

        chromium, browser = await Chromium.start(
            self._executable,
            self._gateway,
            self._blocked,
            connect,
            sandbox=self._sandbox,
            max_memory_bytes=self._max_memory_bytes,
        )
        return PlaywrightProcess(chromium, browser, self._gateway, self._blocked, on_gone)

    async def _running_driver(self, dead: Playwright | None) -> Playwright:
        """The driver; a new one if there is none, or if it is the `dead` one."""
        async with self._starting:
            if self._driver is None or self._driver is dead:
                await self._stop_driver()
                self._driver = await async_playwright().start()
            return self._driver

    async def _stop_driver(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(driver.stop(), STOP_S)

    async def close(self) -> None:
        await self._stop_driver()


async def _is_alive(driver: Playwright) -> bool:
    """Whether the driver process answers."""
    try:
        context = await asyncio.wait_for(driver.request.new_context(), STOP_S)
        await asyncio.wait_for(context.dispose(), STOP_S)
    except Exception:  # a driver that was killed fails in many ways
        return False
    return True
