"""Webhooks of crawls: started, page, completed and failed are posted to the URL that the crawl named.

Each body is signed with the API key (X-Firecrawl-Signature: sha256=HMAC-SHA256). The transport is that of all webhooks:
only addresses that the egress guard passes are dialled, redirects are not followed. Pages are delivered in the order of
their ends, each at least once. Invariants: a receiver that fails delays its own crawl's deliveries alone, and is given
up after ATTEMPTS; an event is marked as delivered after its receiver has accepted it, and a restarted program continues
behind the marks; of several programs the one with the lease of a crawl delivers.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec
from nephila import __version__
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila.kernel.runtime.waits import Backoff, sleep
from nephila_control import screen_types
from nephila_control.api import Control
from nephila_harvest.webhooks.transport import WebhookTransport

from nephila_doors.firecrawl.kept_crawls import KeptCrawl, KeptCrawls

log = logging.getLogger(__name__)
Event = Literal["started", "page", "completed", "failed"]
EVENTS: Final[tuple[Event, ...]] = ("started", "page", "completed", "failed")
MAX_CRAWLS: Final = 100
"""Crawls with a webhook at once."""
ATTEMPTS: Final = 6
RETRY: Final = Backoff(first_s=1.0, longest_s=60.0)
POLL_S: Final = 1.0
LEASE_S: Final = 15.0
"""How long a program that was killed keeps its crawls."""
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
_OWN: Final = ("content-type", "content-length", "host", "user-agent", "x-firecrawl-signature", "transfer-encoding")
_KINDS: Final = {"crawl": "crawl", "batch": "batch_scrape"}
"""Kind of a crawl → begin of the type of its events."""
Document = Callable[[screen_types.PageRow], Awaitable[dict[str, Any] | None]]
State = Callable[[], Awaitable[str]]


class CrawlWebhook(msgspec.Struct, frozen=True):
    url: str
    headers: dict[str, str] = {}
    metadata: dict[str, Any] = {}
    """Each event repeats this."""
    events: tuple[Event, ...] = EVENTS


def read_webhook(option: Any) -> CrawlWebhook | None:
    """The option `webhook` is a URL or an object. Raises `UsageError`."""
    if option is None:
        return None
    try:
        webhook = msgspec.convert({"url": option} if isinstance(option, str) else option, CrawlWebhook)
    except msgspec.ValidationError as error:
        raise UsageError(f"webhook: {error}") from None
    if not webhook.url.startswith(("http://", "https://")) or len(webhook.url) > 2000:
        raise UsageError("webhook.url is not a URL of http or https")
    if len(webhook.headers) > 20:
        raise UsageError("webhook.headers has more than 20 headers")
    for name, value in webhook.headers.items():
        if not _HEADER.fullmatch(name) or name.lower() in _OWN or len(value) > 4000 or not value.isprintable():
            raise UsageError(f"webhook.headers: {name[:100]!a} cannot be sent")
    if len(msgspec.json.encode(webhook.metadata)) > 10_000:
        raise UsageError("webhook.metadata is longer than 10,000 bytes")
    return webhook


class Watched(NamedTuple):
    """A crawl with a webhook."""

    control: Control
    """The API as the owner of the crawl may use it."""
    key: str
    crawl: str
    kind: str
    hook: CrawlWebhook
    document: Document
    """Makes the document of a row; None if the row is no page."""
    state: State
    """Returns the status of the crawl."""


class Unknown(Exception):
    """Deliveries of the crawl cannot be continued; the message is one line."""


class Webhooks:
    """Delivers the events of all crawls from `start` to `close`."""

    def __init__(
        self, clock: Clock, transport: WebhookTransport, crawls: KeptCrawls, watched: Callable[[KeptCrawl], Watched]
    ) -> None:
        """`watched` gathers the needs of deliveries of a crawl; it raises `Unknown`."""
        self._clock = clock
        self._transport = transport
        self._crawls = crawls
        self._watched = watched
        self._owner = secrets.token_hex(8)
        """Names this program in leases."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leases: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Continues deliveries that earlier programs did not finish."""
        self._leases = asyncio.ensure_future(self._hold_leases())

    def check(self) -> None:
        """Raises `UsageError` if no further crawl may have a webhook."""
        if len(self._tasks) >= MAX_CRAWLS:
            raise UsageError(
                f"{MAX_CRAWLS} crawls have a webhook, the most at once; leave it out and ask for the status"
            )

    async def keep(self, crawl: KeptCrawl) -> None:
        """Stores a new crawl before its job exists."""
        await asyncio.to_thread(self._crawls.add, crawl, self._owner, self._until())

    def begin(self, crawl: KeptCrawl) -> None:
        """Delivers the events of a stored crawl, from the first undelivered one to the last."""
        task = asyncio.ensure_future(self._run(crawl))
        self._tasks[crawl.crawl] = task
        task.add_done_callback(lambda _: self._tasks.pop(crawl.crawl, None))

    async def close(self) -> None:
        """Ends all deliveries; another program may continue them at once."""
        tasks = [*self._tasks.values(), *([self._leases] if self._leases is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._transport.close()
        with contextlib.suppress(UserError):
            if self._leases is not None:
                await asyncio.to_thread(self._crawls.release, self._owner)
        self._crawls.close()

    def _until(self) -> int:
        return int(self._clock.now() + LEASE_S) + 1

    async def _hold_leases(self) -> None:
        """Renews the leases, ends deliveries whose lease is lost, and begins those whose lease has expired."""
        trouble = ""
        while True:
            try:
                tasks = dict(self._tasks)
                mine = await asyncio.to_thread(self._crawls.renew, self._owner, self._until())
                for crawl, task in tasks.items():
                    if crawl not in mine:
                        task.cancel()
                free = MAX_CRAWLS - len(self._tasks)
                now = int(self._clock.now())
                for record in await asyncio.to_thread(self._crawls.take, self._owner, now, self._until(), free):
                    self.begin(record)
                trouble = ""
            except UserError as error:
                if not trouble:
                    log.warning("webhooks of crawls: %s; trying again", error)
                trouble = str(error)
            await sleep(self._clock, LEASE_S / 3)

    async def _run(self, crawl: KeptCrawl) -> None:
        try:
            await self._deliver(self._watched(crawl), crawl.crawl)
        except (_GivenUp, Unknown) as error:
            log.warning("the webhook of %s is given up: %s", crawl.crawl, error)
        except UserError as error:
            log.warning("the webhook of %s ends: %s", crawl.crawl, error)
        except Exception:
            # It is not settled: the next start of the program tries it again.
            log.exception("the webhook of %s ends", crawl.crawl)
            return
        with contextlib.suppress(UserError):
            await asyncio.to_thread(self._crawls.settle, crawl.crawl)

    async def _deliver(self, watched: Watched, crawl: str) -> None:
        seen = await asyncio.to_thread(self._crawls.delivered, crawl)
        delivery = _Delivery(self, watched)
        if "started" not in seen:
            await delivery.send("started")
            await asyncio.to_thread(self._crawls.mark, crawl, "started")
        while True:
            # Before the rows: all rows of a crawl that has ended are there.
            ended = await self._ready(watched.state)
            for row in await self._ready(lambda: self._new_rows(watched, seen)):
                document = await self._ready(lambda row=row: watched.document(row))  # type: ignore[misc]
                if document is not None:
                    await delivery.send("page", [document])
                seen.add(row.url_key)
                await asyncio.to_thread(self._crawls.mark, crawl, row.url_key)
            if ended == "completed":
                await delivery.send("completed")
            elif ended != "scraping":
                await delivery.send("failed", error="no page was stored" if ended == "failed" else ended)
            if ended != "scraping":
                return
            await sleep(self._clock, POLL_S)

    async def _ready(self, work: Callable[[], Awaitable[Any]]) -> Any:
        while True:
            with contextlib.suppress(NotReadyError):
                return await work()
            await sleep(self._clock, POLL_S)

    async def _new_rows(self, watched: Watched, seen: set[str]) -> list[screen_types.PageRow]:
        """Returns stored rows that were not delivered, the oldest first."""
        rows: list[screen_types.PageRow] = []
        before = 0
        while True:
            query = screen_types.ListPages(job=watched.crawl, outcome="stored", before=before, limit=200)
            part = await watched.control.list_pages(query)
            new = [row for row in part.pages if row.url_key not in seen]
            rows += new
            before = part.next
            if not before or len(new) < len(part.pages):
                return rows[::-1]

    async def post(self, watched: Watched, body: bytes) -> None:
        """Delivers one event. Raises `_GivenUp`."""
        hook = watched.hook
        signed = hmac.new(watched.key.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            **hook.headers,
            "Content-Type": "application/json",
            "User-Agent": f"Nephila/{__version__}",
            "X-Firecrawl-Signature": f"sha256={signed}",
        }
        for attempt in range(1, ATTEMPTS + 1):
            answer = await self._transport.post(hook.url, headers, body)
            if 200 <= answer.status < 300:
                return
            if answer.error.startswith("refused") or attempt == ATTEMPTS:
                raise _GivenUp(answer.error or f"status {answer.status}")
            await sleep(self._clock, max(RETRY.after(attempt), min(answer.retry_after_s, RETRY.longest_s)))


class _GivenUp(Exception):
    """The receiver does not take events."""


class _Delivery:
    def __init__(self, webhooks: Webhooks, watched: Watched) -> None:
        self._webhooks = webhooks
        self._watched = watched

    async def send(self, event: Event, data: list[Mapping[str, Any]] | None = None, error: str = "") -> None:
        """Delivers an event if the crawl subscribes to it."""
        watched = self._watched
        if event not in watched.hook.events:
            return
        body = {
            "success": event != "failed",
            "type": f"{_KINDS[watched.kind]}.{event}",
            "id": watched.crawl,
            "data": data or [],
            "metadata": watched.hook.metadata,
            **({"error": error} if error else {}),
        }
        await self._webhooks.post(watched, msgspec.json.encode(body))
