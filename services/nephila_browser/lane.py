"""The browser lane of a downloader: what it is built from, how it starts.

Requests of the lane that a browser cannot render (sitemaps, feeds, middleware requests) go to the plain fetcher.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

from nephila.downloader.browser_config import BrowserConfig
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import Fetcher, Handle, HttpRequest, HttpResponse, OnDone
from nephila.downloader.http.request import names_list
from nephila.downloader.middleware.rendered_login import LoggedInPage, RenderedLogin
from nephila.kernel import messages as m
from nephila.kernel.process.memory_budget import MemoryBudget
from nephila.kernel.runtime.clock import Clock

from nephila_browser.auto.comparison import LaneComparison
from nephila_browser.auto.verdict_file import VerdictFile
from nephila_browser.auto.verdicts import Lane, Verdicts, WordsAndLinks, has_text
from nephila_browser.budget import BrowserBudget
from nephila_browser.contract import Gateway
from nephila_browser.engine import BrowserProcess, Engine
from nephila_browser.fetcher import BrowserFetcher
from nephila_browser.installation import find_executable
from nephila_browser.instructions import Instructions
from nephila_browser.pool import HARD_LIMIT, BrowserPool

SAVE_EVERY: Final = 20
"""Comparisons between two writes of the verdicts."""
KINDS: Final = ("image", "font", "media")
"""What `browser.block` may name."""


class LazyEngine:
    """An engine that is made at its first launch, since it needs the address of the gateway."""

    def __init__(self, config: BrowserConfig, gateway: Gateway) -> None:
        self._config = config
        self._gateway = gateway
        self._engine: Engine | None = None
        self._making = asyncio.Lock()

    async def launch(self, on_gone: Callable[[BrowserProcess], None]) -> BrowserProcess:
        """Raises `RenderError`."""
        async with self._making:
            if self._engine is None:
                from nephila_browser.playwright_engine import PlaywrightEngine

                config = self._config
                self._engine = PlaywrightEngine(
                    find_executable(config.executable),
                    await self._gateway.start(),
                    config.block,
                    sandbox=config.sandbox,
                    max_memory_bytes=int(config.memory_bytes * HARD_LIMIT),
                )
        return await self._engine.launch(on_gone)

    async def close(self) -> None:
        if self._engine is not None:
            await self._engine.close()


class BrowserLane:
    """A fetcher that renders pages and fetches everything else plainly."""

    def __init__(
        self,
        plain: Fetcher,
        browser: BrowserFetcher,
        instructions: Instructions,
        verdicts: Verdicts,
        file: VerdictFile,
        clock: Clock,
    ) -> None:
        self._plain = plain
        self.browser = browser
        self._instructions = instructions
        self.verdicts = verdicts
        """Which pages of jobs with `render: auto` need a browser."""
        self._file = file
        self._saving: asyncio.Future[None] | None = None
        self._clock = clock
        verdicts.restore(file.load())
        self.chosen: Counter[str] = Counter()
        """Pages of jobs with `render: auto`, by lane."""

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is new, has changed or is deleted."""
        self._instructions.on_job(job)
        if job.deleted:
            self.verdicts.forget(job.uid)
            self.browser.forget(job.uid)

    def on_rule(self, rule: m.ParseRule) -> None:
        """A rule is new, has changed or is deleted."""
        self._instructions.on_rule(rule)

    def fetch(self, request: HttpRequest, on_done: OnDone) -> Handle:
        origin = request.origin
        if origin is None or origin.kind is m.FetchKind.ROBOTS or names_list(request.target.path):
            return self._plain.fetch(request, on_done)
        if origin.render is m.Render.AUTO:
            return self._by_verdict(origin, request, on_done)
        return self.browser.fetch(request, on_done)

    def _by_verdict(self, origin: m.FetchRequest, request: HttpRequest, on_done: OnDone) -> Handle:
        job, url = origin.job, origin.url
        instructions = self._instructions.of(job, url)
        lane = self.verdicts.choose(job, url, has_steps=bool(instructions.steps))
        if lane is not Lane.CHECKED:
            self.chosen[lane.value] += 1
        if lane is Lane.HTTP:
            return self._plain.fetch(request, on_done)
        if lane is Lane.BROWSER:
            return self.browser.fetch(request, on_done)

        def learn(needed: bool) -> None:
            self.verdicts.record(job, url, needed)
            if self.verdicts.compared % SAVE_EVERY == 0 and (self._saving is None or self._saving.done()):
                self._saving = asyncio.ensure_future(self._save())

        def accepts(plain: HttpResponse) -> bool:
            if lane is not Lane.CHECKED:
                return False
            accepted = _has_text(plain, url)
            self.chosen[(Lane.HTTP if accepted else Lane.BOTH).value] += 1
            return accepted

        return LaneComparison(
            self._plain, self.browser, self._clock, instructions.delay_s, request, on_done, learn, accepts
        )

    async def log_in(self, request: m.FetchRequest, login: RenderedLogin) -> LoggedInPage:
        return await self.browser.log_in(request, login)

    def figures(self) -> dict[str, float]:
        """What the lane did, for the summary of a crawl."""
        browser, pool = self.browser, self.browser.pool
        return {
            "pages": pool.pages,
            "seconds": round(pool.seconds, 3),
            "cpu_s": round(pool.cpu_s(), 3),
            "processes": pool.launched,
            "crashes": pool.crashes,
            "sub_requests": browser.sub_requests,
            "blocked": sum(browser.blocked.values()),
            "plain": self.chosen[Lane.HTTP.value],
            "compared": self.verdicts.compared,
        }

    async def _save(self) -> None:
        await asyncio.to_thread(self._file.save, self.verdicts.stored())

    async def close(self) -> None:
        await self.browser.close()
        if self._saving is not None:
            await self._saving
        if self.verdicts.compared:
            await self._save()
        await self._plain.close()


def _has_text(plain: HttpResponse, url: str) -> bool:
    try:
        return has_text(WordsAndLinks(plain.body, url, plain.charset or "utf-8"))
    except Exception:  # a page that the native core refuses is not compared either
        return True


def make_lane(
    http: HttpConfig, config: BrowserConfig, clock: Clock, gateway: Gateway, plain: Fetcher, memory: MemoryBudget
) -> BrowserLane:
    """The lane with all its dependencies."""
    instructions = Instructions()
    pool = BrowserPool(
        LazyEngine(config, gateway),
        clock,
        processes=config.processes,
        pages=config.pages,
        max_uses=config.uses,
        max_memory_bytes=config.memory_bytes,
    )
    browser = BrowserFetcher(http, config, clock, gateway, pool, instructions, BrowserBudget(), memory)
    return BrowserLane(plain, browser, instructions, Verdicts(), VerdictFile(config.verdicts), clock)
