"""Ends requests for a browser in a program that has none, so that their URLs do not wait for ever."""

from __future__ import annotations

from nephila.downloader.outcome import undialled
from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.messages import FetchResult
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import OUTCOMES, REQUESTS_BROWSER

DETAIL = "no downloader with a browser: set downloader.browser.enabled"


class RefuseBrowserRequests:
    """Reads `requests.browser` in the place of a downloader with a browser."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock

    def start(self) -> None:
        """Subscribe to the requests."""
        self._bus.subscribe(REQUESTS_BROWSER, "browser", self._on_request, credits=1000)

    def _on_request(self, delivery: Delivery) -> None:
        outcome = undialled(delivery.message, FetchResult.FAILED, Reason.NO_BROWSER, DETAIL, self._clock.now())
        delivery.ack_after((self._bus.publish(OUTCOMES, delivery.partition, outcome),))
