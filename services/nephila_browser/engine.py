"""The contract of a browser: what the pool needs of it. `chromium.py` implements it; tests have a fake.

Invariants: `render` ends within the deadline of its task or raises, except in a process that hangs; after `close` no
process of the browser is left; `on_gone` is called once when the process ends without `close`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import msgspec
from nephila.downloader.http.contract import SiteCookie
from nephila.kernel.messages import Capture
from nephila.kernel.reasons.table import Reason

from nephila_browser.contract import Credentials
from nephila_browser.instructions import PageInstructions


class WebStorage(msgspec.Struct, frozen=True):
    """What scripts of an origin have stored: localStorage and sessionStorage."""

    local: dict[str, str]
    session: dict[str, str]


class LoginValues(NamedTuple):
    """What the steps of a login write. Never into a page of another site, nor over http where its URL is https."""

    url: str
    """Of the login."""
    values: Mapping[str, str]
    """Name of the field → value; secrets."""


class RenderTask(msgspec.Struct, frozen=True, kw_only=True):
    """One page to render."""

    url: str
    """With its route."""
    instructions: PageInstructions
    credentials: Credentials
    user_agent: str
    timeout_s: float
    """For load, waits, steps and captures together."""
    cookies: tuple[SiteCookie, ...] = ()
    """The page begins with these."""
    storage: Mapping[str, WebStorage] = msgspec.field(default_factory=dict)
    """Origin → what its scripts find stored, unless they have stored it again."""
    keep_cookies: bool = False
    """Return the cookies of the page."""
    login: LoginValues | None = None
    """Of a login: wait after the steps until no request is in flight, and return what scripts have stored."""


class RenderedPage(msgspec.Struct, kw_only=True):
    """What a browser made of a page."""

    html: bytes
    """The document after its scripts, UTF-8."""
    url: str = ""
    """The URL at the end; scripts may have changed it."""
    captures: list[Capture] = msgspec.field(default_factory=list)
    first_cookies: list[SiteCookie] = msgspec.field(default_factory=list)
    """Those that the page began with: Chromium may refuse some."""
    cookies: list[SiteCookie] = msgspec.field(default_factory=list)
    storage: dict[str, WebStorage] = msgspec.field(default_factory=dict)
    """Of a login: origin of the page → what its scripts have stored."""


class RenderError(Exception):
    """A page was not rendered: `reason` in one word, a text for people."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class BrowserGoneError(Exception):
    """The process ended while it rendered the page; the page itself may be innocent."""


class BrowserProcess(Protocol):
    """One running browser with the processes below it."""

    pid: int

    async def render(self, task: RenderTask) -> RenderedPage:
        """One page in a context of its own. Raises `RenderError` or `BrowserGoneError`."""

    def memory_bytes(self) -> int:
        """Resident memory of all its processes."""

    def end_page_above(self, size_bytes: int) -> bool:
        """End the page whose process has most memory, if that is more than `size_bytes`; False: there is none. Its
        `render` raises `RenderError` with the reason browser_memory. Other pages continue."""

    def cpu_s(self) -> float:
        """CPU of all its processes so far. After their end the figure of the last call."""

    async def close(self) -> None:
        """End all its processes, by force where they do not end, and delete its profile."""


class Engine(Protocol):
    """Starts browsers."""

    async def launch(self, on_gone: Callable[[BrowserProcess], None]) -> BrowserProcess:
        """A browser that is ready. Raises `RenderError` with the reason browser."""

    async def close(self) -> None:
        """End what all browsers share."""
