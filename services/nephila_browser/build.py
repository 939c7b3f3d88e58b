"""The browser lane as the downloader's port has it (`nephila.downloader.browser_port`)."""

from __future__ import annotations

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.contract import Fetcher
from nephila.downloader.routing.router import Router
from nephila.kernel.process.memory_budget import MemoryBudget
from nephila.kernel.runtime.clock import Clock

from nephila_browser.gateway.gateway import make_gateway
from nephila_browser.lane import BrowserLane, make_lane


def build_lane(
    config: DownloaderConfig, clock: Clock, router: Router, plain: Fetcher, budget: MemoryBudget
) -> BrowserLane:
    """The lane, with a gateway of its own. `plain`: fetches what a browser does not render."""
    gateway = make_gateway(config.http, config.browser.host_rate, clock, router, budget)
    return make_lane(config.http, config.browser, clock, gateway, plain, budget)
