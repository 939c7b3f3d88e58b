"""Calls Scrapy's engine when a host may be fetched from again: by itself it asks every 5 s."""

from __future__ import annotations

import time

from scrapy.crawler import Crawler
from scrapy.utils.asyncio import CallLaterResult, call_later


class WakeUp:
    """At most one call is due."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._call: CallLaterResult | None = None
        self._due = 0.0

    def at(self, instant: float) -> None:
        """Calls at a monotonic instant, or before."""
        if self._call is not None and self._due <= instant:
            return
        self.cancel()
        self._due = instant
        self._call = call_later(max(instant - time.monotonic(), 0.0), self._wake)

    def cancel(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _wake(self) -> None:
        self._call = None
        slot = getattr(self._crawler.engine, "_slot", None)
        if slot is not None:
            slot.nextcall.schedule()
