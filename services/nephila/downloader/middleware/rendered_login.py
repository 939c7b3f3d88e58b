"""The contract of a login by scripts: a browser opens its page, runs its steps, and keeps what the site and its scripts
have stored for the pages of the site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from nephila.downloader.http.contract import SiteCookies
from nephila.downloader.http.route import Route
from nephila.downloader.http.target import TargetUrl
from nephila.kernel.documents.browser_schema import LoginStep
from nephila.kernel.messages import FetchRequest


class RenderedLogin(NamedTuple):
    """One login by scripts."""

    url: str
    """With its route."""
    target: TargetUrl
    route: Route
    steps: tuple[LoginStep, ...]
    values: Mapping[str, str]
    """Name of a field → what is written into it; secrets."""
    cookies: SiteCookies | None


class LoggedInPage(NamedTuple):
    """The page after the steps."""

    html: str
    url: str
    unauthorized: int
    """401 or 403, if the site gave one to scripts of the page."""


class BrowserLogin(Protocol):
    """A browser that logs in."""

    async def log_in(self, request: FetchRequest, login: RenderedLogin) -> LoggedInPage:
        """Run the steps. Raises `FetchError`; the reason is step where an element of a step never came."""
