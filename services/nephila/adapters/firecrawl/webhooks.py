"""Webhooks of crawls: started, page, completed and failed are posted to the URL that the crawl named.

Each body is signed with the API key (X-Firecrawl-Signature: sha256=HMAC-SHA256). The transport is that of all webhooks:
only addresses that the egress guard passes are dialled, redirects are not followed. Pages are delivered in batches, in
the order of their ends, each at least once. Invariants: a receiver that fails delays its own crawl's deliveries alone,
and is given up after ATTEMPTS; what is not delivered when the program ends is not delivered later.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from nephila import __version__
from nephila.control import screen_types
from nephila.control.api import Control
from nephila.harvest.webhooks.transport import WebhookTransport
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila.kernel.runtime.waits import Backoff, sleep

log = logging.getLogger(__name__)
Event = Literal["started", "page", "completed", "failed"]
EVENTS: Final[tuple[Event, ...]] = ("started", "page", "completed", "failed")
MAX_CRAWLS: Final = 100
"""Crawls with a webhook at once."""
ATTEMPTS: Final = 6
RETRY: Final = Backoff(first_s=1.0, longest_s=60.0)
POLL_S: Final = 1.0
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
_OWN: Final = ("content-type", "content-length", "host", "user-agent", "x-firecrawl-signature", "transfer-encoding")
_KINDS: Final = {"crawl": "crawl", "batch": "batch_scrape"}
"""Kind of a crawl → begin of the type of its events."""
Document = Callable[[screen_types.PageRow], Awaitable[dict[str, Any] | None]]
State = Callable[[], Awaitable[str]]


class Webhook(msgspec.Struct, frozen=True):
    """Where the events of a crawl go."""

    url: str
    headers: dict[str, str] = {}
    metadata: dict[str, Any] = {}
    """Repeated in each event."""
    events: tuple[Event, ...] = EVENTS


def read_webhook(given: Any) -> Webhook | None:
    """The option `webhook`: a URL or an object. Raises `UsageError`."""
    if given is None:
        return None
    try:
        found = msgspec.convert({"url": given} if isinstance(given, str) else given, Webhook)
    except msgspec.ValidationError as error:
        raise UsageError(f"webhook: {error}") from None
    if not found.url.startswith(("http://", "https://")) or len(found.url) > 2000:
        raise UsageError("webhook.url is not a URL of http or https")
    if len(found.headers) > 20:
        raise UsageError("webhook.headers has more than 20 headers")
    for name, value in found.headers.items():
        if not _HEADER.fullmatch(name) or name.lower() in _OWN or len(value) > 4000 or not value.isprintable():
            raise UsageError(f"webhook.headers: {name[:100]!a} cannot be sent")
    if len(msgspec.json.encode(found.metadata)) > 10_000:
        raise UsageError("webhook.metadata is longer than 10,000 bytes")
    return found


class Watched(NamedTuple):
    """A crawl with a webhook."""

    control: Control
    """As its owner may use it."""
    key: str
    """The API key that started it."""
    crawl: str
    kind: str
    hook: Webhook


class Webhooks:
    """Deliveries of all crawls. `close` ends them."""

    def __init__(self, clock: Clock, transport: WebhookTransport) -> None:
        self._clock = clock
        self._transport = transport
        self._tasks: set[asyncio.Task[None]] = set()

    def check(self) -> None:
        """Raise `UsageError` when no further crawl may have a webhook."""
        if len(self._tasks) >= MAX_CRAWLS:
            raise UsageError(
                f"{MAX_CRAWLS} crawls have a webhook, the most at once; leave it out and ask for the status"
            )

    def begin(self, watched: Watched, document: Document, state: State) -> None:
        """Deliver the events of a crawl from its start to its end."""
        task = asyncio.ensure_future(self._run(watched, document, state))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End all deliveries."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._transport.close()

    async def _run(self, watched: Watched, document: Document, state: State) -> None:
        delivery = _Delivery(self, watched)
        try:
            await delivery.send("started")
            seen: set[str] = set()
            while True:
                # Before the rows: all rows of a crawl that has ended are there.
                ended = await self._ready(state)
                for row in await self._ready(lambda: self._new_rows(watched, seen)):
                    found = await self._ready(lambda row=row: document(row))  # type: ignore[misc]
                    seen.add(row.url_key)
                    if found is not None:
                        await delivery.send("page", [found])
                if ended == "completed":
                    await delivery.send("completed")
                elif ended != "scraping":
                    await delivery.send("failed", error="no page was stored" if ended == "failed" else ended)
                if ended != "scraping":
                    return
                await sleep(self._clock, POLL_S)
        except _GivenUp as error:
            log.warning("the webhook of %s is given up: %s", watched.crawl, error)
        except UserError as error:
            log.warning("the webhook of %s ends: %s", watched.crawl, error)
        except Exception:
            log.exception("the webhook of %s ends", watched.crawl)

    async def _ready(self, work: Callable[[], Awaitable[Any]]) -> Any:
        while True:
            with contextlib.suppress(NotReadyError):
                return await work()
            await sleep(self._clock, POLL_S)

    async def _new_rows(self, watched: Watched, seen: set[str]) -> list[screen_types.PageRow]:
        """Stored rows that were not delivered, the oldest first."""
        found: list[screen_types.PageRow] = []
        before = 0
        while True:
            wanted = screen_types.ListPages(job=watched.crawl, outcome="stored", before=before, limit=200)
            part = await watched.control.list_pages(wanted)
            new = [row for row in part.pages if row.url_key not in seen]
            found += new
            before = part.next
            if not before or len(new) < len(part.pages):
                return found[::-1]

    async def post(self, watched: Watched, body: bytes) -> None:
        """Deliver one event. Raises `_GivenUp`."""
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
    """Events of one crawl."""

    def __init__(self, webhooks: Webhooks, watched: Watched) -> None:
        self._webhooks = webhooks
        self._watched = watched

    async def send(self, event: Event, data: list[Mapping[str, Any]] | None = None, error: str = "") -> None:
        """Deliver an event, if the crawl wants it."""
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
