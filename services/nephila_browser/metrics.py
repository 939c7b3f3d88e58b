"""Metrics of the browser lane of a downloader."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from nephila.downloader.service import Downloader
from nephila.kernel.runtime.metrics import Metric

if TYPE_CHECKING:
    from nephila_browser.lane import BrowserLane


def _browser(read: Callable[[BrowserLane], Any], empty: Any = 0) -> Callable[[Downloader], Any]:
    """A figure of the browser lane; `empty` in a downloader without one."""
    return lambda d: empty if d.browser is None else read(cast("BrowserLane", d.browser))


BROWSER_METRICS: tuple[Metric[Downloader], ...] = (
    Metric(
        "browser_pages_total",
        "Pages rendered by a browser. Flat while pages are in flight: the browser hangs.",
        _browser(lambda lane: lane.browser.pool.pages),
        counter=True,
    ),
    Metric(
        "browser_seconds_total",
        "Seconds that pages took in a browser. A rise against browser_pages_total: pages are slow, or the CPU is full.",
        _browser(lambda lane: lane.browser.pool.seconds),
        counter=True,
    ),
    Metric(
        "browser_cpu_seconds_total",
        "CPU of all browser processes. A rise against browser_pages_total: pages cost more, so fewer fit a core.",
        _browser(lambda lane: lane.browser.pool.cpu_s()),
        counter=True,
    ),
    Metric(
        "browser_processes",
        "Browser processes that run. 0 while requests are in flight: the browser does not start.",
        _browser(lambda lane: lane.browser.pool.processes),
    ),
    Metric(
        "browser_memory_bytes",
        "Memory of all browser processes. A rise up to browser.memory_bytes for each is normal; then pages end.",
        _browser(lambda lane: lane.browser.pool.memory_bytes()),
    ),
    Metric(
        "browser_launched_total",
        "Browser processes started. A rise with browser_crashes_total: the browser crashes.",
        _browser(lambda lane: lane.browser.pool.launched),
        counter=True,
    ),
    Metric(
        "browser_retired_total",
        "Browser processes ended, by reason: uses and memory are planned, crash and hang are not.",
        _browser(lambda lane: dict(lane.browser.pool.retired), {}),
        "reason",
        counter=True,
    ),
    Metric(
        "browser_crashes_total",
        "Browser processes that crashed, or were killed because they hung. A rise: little memory, or a hostile page.",
        _browser(lambda lane: lane.browser.pool.crashes),
        counter=True,
    ),
    Metric(
        "browser_sub_requests_total",
        "Requests of rendered pages beside the document. A rise against browser_pages_total: pages load more.",
        _browser(lambda lane: lane.browser.sub_requests),
        counter=True,
    ),
    Metric(
        "browser_blocked_total",
        "Requests of rendered pages that the gateway refused or that failed, by reason. A rise of address: an attack.",
        _browser(lambda lane: dict(lane.browser.blocked), {}),
        "reason",
        counter=True,
    ),
    Metric(
        "browser_lane_total",
        "Pages of jobs with render auto, by lane; both: compared. A rise of both: many new URL patterns.",
        _browser(lambda lane: dict(lane.chosen), {}),
        "lane",
        counter=True,
    ),
    Metric(
        "browser_compared_total",
        "Pages that were fetched by both lanes and compared. A rise is normal.",
        _browser(lambda lane: lane.verdicts.compared),
        counter=True,
    ),
)
