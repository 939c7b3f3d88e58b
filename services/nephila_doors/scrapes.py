"""One page on request, by the crawl: a job takes the URL, and its row is awaited.

A request is a seed of a job that follows no links, so politeness, robots.txt, egress guard, retries and durability are
those of every crawl: a program that is killed fetches the URL after its restart. Invariants: a URL that is under way is
not queued twice, two callers wait for the same row; a wait has an end, and its error names what the URL waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal

from nephila.kernel.documents.job_document import crawl_job
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila.kernel.runtime.waits import sleep
from nephila.kernel.seeds import url_errors
from nephila_control import job_types, screen_types
from nephila_control.api import Control, NotFound

Render = Literal["never", "auto", "always"]
POLL_S: Final = 0.1
"""Between two looks at the newest rows, while a client waits."""
WAIT_S: Final = 60.0
"""Longest wait for a page unless the caller sets one."""
MAX_WAITING: Final = 1000
"""URLs that are awaited at once; a further request is refused."""
BODY_CHARS: Final = 2_000_000
"""Characters of a page in one answer."""
_PAGES: Final = 10
"""Lists of rows that one look reads at most."""
_REDIRECTS: Final = 10
_WITHOUT_SCHEME: Final = re.compile(
    r"(\[[0-9A-Fa-f:.]+\]|localhost|[^\s/?#@:]+\.[^\s/?#@:]+|[^\s/?#@:]+(?=:\d))(:\d{1,5})?([/?#].*)?", re.DOTALL
)


class NotStored(UserError):
    """The URL has ended without a stored page."""

    def __init__(self, row: screen_types.PageRow) -> None:
        ended = f"{row.outcome}({row.reason})" if row.reason else row.outcome
        status = f", status {row.status}" if row.status else ""
        super().__init__(f"{row.url[:500]}: {ended}{status}: {row.words}")
        self.row = row


class WaitTimeout(UserError):
    """The URL has not ended in time; it stays queued."""


class Busy(UserError):
    """Too many URLs are awaited."""


class Scrapes:
    """Fetches pages on request. `close` ends the waits."""

    def __init__(self, control: Control, clock: Clock, *, name: str = "scrapes") -> None:
        """`name` is that of the job that takes the URLs; the job of rendered pages has a suffix."""
        self.control = control
        self._clock = clock
        self._name = name
        self._waiting: dict[tuple[str, str], asyncio.Future[screen_types.PageRow]] = {}
        self._newest: dict[str, tuple[str, str]] = {}
        """Job → (url_key, fetched_at) of the newest row that was read, while URLs of the job are awaited."""
        self._polling: asyncio.Task[None] | None = None
        self._rules: dict[str, list[str]] = {}
        """Job → names of the rules that read its pages."""

    async def page(
        self,
        url: str,
        *,
        max_age_s: float = 0.0,
        wait_s: float = WAIT_S,
        render: Render = "never",
        rules: Sequence[str] = (),
    ) -> screen_types.PageDetail:
        """Returns the page of a URL, behind its redirects. A stored page of `max_age_s` will do; 0 fetches it now.
        `rules` are all rules that may read pages, the same in all calls that need items. Raises `NotStored` with the
        row, `WaitTimeout`, `Busy`, `UsageError` for a text that is no URL, and the errors of the control API."""
        url = absolute_url(url)
        deadline = self._clock.monotonic() + wait_s
        job = self._name if render == "never" else f"{self._name}-{render}"
        if rules:
            job += "-items"
            await self._set_rules(job, url, render, list(rules))
        for _ in range(_REDIRECTS):
            detail = await self._stored(url, "" if max_age_s and not rules else job)
            if detail is None or self._age_s(detail.page) > max_age_s:
                row = await self._fetched(url, job, render, deadline)
                detail = await self._stored(row.url, job)
            if detail is None:
                raise UserError(f"{url[:500]}: its row was deleted while it was read")
            if detail.page.reason == Reason.REDIRECT and detail.final_url:
                # The target was fetched by the same request.
                url, max_age_s = detail.final_url, max(max_age_s, wait_s + 1)
                continue
            if detail.page.outcome != "stored":
                raise NotStored(detail.page)
            return detail
        raise UserError(f"{url[:500]}: more than {_REDIRECTS} redirects")

    async def markdown(self, detail: screen_types.PageDetail) -> str:
        """Returns the page as Markdown, or its text if the row has no structure."""
        if "html" not in detail.page.content_type:
            return detail.text
        try:
            body = await self.control.get_body(screen_types.GetBody(url=detail.page.url, limit=BODY_CHARS))
        except NotFound:
            return detail.text
        return body.text or detail.text

    async def source(self, detail: screen_types.PageDetail) -> str:
        """Raises `NotFound` if the body is not stored."""
        request = screen_types.GetBody(url=detail.page.url, form="source", limit=BODY_CHARS)
        return (await self.control.get_body(request)).text

    async def _stored(self, url: str, job: str) -> screen_types.PageDetail | None:
        try:
            return await self.control.get_page(screen_types.GetPage(url=url, job=job))
        except NotFound:
            return None

    def _age_s(self, row: screen_types.PageRow) -> float:
        try:
            return self._clock.now() - datetime.fromisoformat(row.fetched_at).timestamp()
        except ValueError:
            return float("inf")

    async def _fetched(self, url: str, job: str, render: Render, deadline: float) -> screen_types.PageRow:
        """Fetches a URL now, and returns its row."""
        key = (job, url_key(url))
        if job not in self._newest:
            newest = await self.control.list_pages(screen_types.ListPages(job=job, limit=1))
            self._newest.setdefault(job, _identity(newest.pages))
        future = self._waiting.get(key)
        if future is None:
            if len(self._waiting) >= MAX_WAITING:
                raise Busy(f"{MAX_WAITING:,} URLs are awaited, the most at once; repeat it later")
            future = asyncio.get_running_loop().create_future()
            self._waiting[key] = future
            try:
                with contextlib.suppress(NotFound):
                    await self.control.forget(job_types.ForgetUrls(name=job, urls=[url]))
                await self._queue(url, job, render)
            except BaseException as error:
                self._waiting.pop(key, None)
                future.set_exception(error) if isinstance(error, Exception) else future.cancel()
                with contextlib.suppress(BaseException):
                    future.exception()
                raise
            if self._polling is None or self._polling.done():
                self._polling = asyncio.ensure_future(self._poll())
        left = deadline - self._clock.monotonic()
        try:
            return await asyncio.wait_for(asyncio.shield(future), max(left, 0.0))
        except TimeoutError:
            raise WaitTimeout(f"{url[:500]} has not ended in time: {await self._why(url, job)}") from None

    async def _why(self, url: str, job: str) -> str:
        """Says in the words of `nephila explain` why the URL waits."""
        try:
            answer = await self.control.explain(job_types.ExplainUrl(url=url, job=job))
        except UserError as error:
            return str(error)
        return answer.explanation.sentence

    async def _queue(self, url: str, job: str, render: Render) -> None:
        """Makes the URL a seed of the job, which the first URL creates."""
        try:
            added = await self.control.add_seeds(job_types.AddSeeds(name=job, urls=[url]))
        except NotFound:
            added = await self.control.apply_job(job_types.ApplyJob(job=_page_job(job, url, render)))
        if added.refused:
            raise UsageError(f"{url[:500]}: {added.refused[0].reason}")

    async def _set_rules(self, job: str, url: str, render: Render, rules: list[str]) -> None:
        """Sets the rules of the job, which the first URL creates."""
        if self._rules.get(job) == rules:
            return
        document = _page_job(job, url, render, rules)
        await self.control.apply_job(job_types.ApplyJob(job=document))
        self._rules[job] = rules

    async def _poll(self) -> None:
        """Reads the newest rows until no URL is awaited."""
        while self._waiting:
            try:
                for job in {job for job, _ in self._waiting}:
                    self._newest[job] = await self._look(job, self._newest[job])
            except NotReadyError:
                pass  # the program restarts: the waits go on to their ends
            except Exception as error:
                for future in self._waiting.values():
                    if not future.done():
                        future.set_exception(error)
                self._waiting.clear()
                break
            await sleep(self._clock, POLL_S)
        self._newest.clear()

    async def _look(self, job: str, last: tuple[str, str]) -> tuple[str, str]:
        """Gives rows that are newer than `last` to the waiting callers, and returns the newest row."""
        before, first = 0, last
        for _ in range(_PAGES):
            page = await self.control.list_pages(screen_types.ListPages(job=job, before=before, limit=200))
            if page.pages and before == 0:
                first = _identity(page.pages)
            for row in page.pages:
                if _identity([row]) == last:
                    return first
                future = self._waiting.get((job, row.url_key))
                if future is not None and not future.done():
                    future.set_result(row)
                    del self._waiting[job, row.url_key]
            before = page.next
            if before == 0:
                break
        return first

    async def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._polling
        for future in self._waiting.values():
            future.cancel()
        self._waiting.clear()


def _identity(rows: Sequence[screen_types.PageRow]) -> tuple[str, str]:
    """Identity of the first row; empty strings without a row."""
    return (rows[0].url_key, rows[0].fetched_at) if rows else ("", "")


def absolute_url(text: str) -> str:
    """A host without a scheme gets http:

    , which servers redirect to https. Any other text is returned unchanged.
    """
    url = text.strip()
    return f"http://{url}" if _WITHOUT_SCHEME.fullmatch(url) else url


def url_key(url: str) -> str:
    """Returns the key of the URL's row. Raises `UsageError`."""
    with url_errors(url):
        return parse_routed(url).fingerprint.hex()


def _page_job(name: str, url: str, render: Render, rules: Sequence[str] = ()) -> dict[str, Any]:
    """Builds the job that takes single URLs."""
    scope = {"mode": "any", "maxDepth": 0}
    return crawl_job(name, {"seeds": [url], "scope": scope, "links": True, "render": render, "rules": list(rules)})
