"""The port of rendered pages: a fetcher that a browser serves, made by `nephila_browser` where it is installed."""

from __future__ import annotations

from typing import Final, Protocol

from nephila.downloader.http.contract import Fetcher
from nephila.downloader.middleware.rendered_login import BrowserLogin
from nephila.kernel import messages as m
from nephila.kernel.runtime.extensions import absence, extension

VERDICT_FILE: Final = "render-verdicts.json"
"""Name of the file in an output directory: which pages need a browser."""


class BrowserLane(Fetcher, BrowserLogin, Protocol):
    """A fetcher that renders pages and fetches everything else plainly."""

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is new, has changed or is deleted."""

    def on_rule(self, rule: m.ParseRule) -> None:
        """A rule is new, has changed or is deleted."""

    def figures(self) -> dict[str, float]:
        """The counts of the lane, for the summary of a crawl."""


def missing(executable: str) -> str:
    """Why this machine cannot render pages, in one line with the remedy; empty when it can. `executable`: the setting
    `browser.executable`."""
    reason: str = absence("browser-installation") or extension("browser-installation")(executable)
    return reason
