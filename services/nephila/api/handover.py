"""The bus of a crawl whose pages are yielded to a consumer: a record waits here until its page was taken.

A record is published to storage when the consumer requests the page after it. Invariants: a stored page was taken, so a
program that crashes while it handles a page gets that page again with `resume`; a waiting page counts as in flight, so
the scheduler's window bounds the number of waiting pages and a slow consumer slows the crawl. Bodies beyond HELD_BYTES
wait in files. Everything but `next_page` and `follow` runs on the crawl's loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import IO, Any, Final, NamedTuple

import msgspec

from nephila.api.page import Page, instant
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import OUTLINKS, PAGES, RECORDS, Topic
from nephila.parser.links.link_list import LINKS_PER_MESSAGE, UnresolvedLink, pack, resolve, run_to_end
from nephila.storage.rows import OUTCOMES

HELD_BYTES: Final = 64 * 1024 * 1024
"""Of bodies in memory, while their pages wait."""

_Key = tuple[bytes, int, int]


class _Held(NamedTuple):
    """A page that waits, and the function that publishes its record."""

    page: Page
    size_bytes: int
    """Bytes of its body that are in memory."""
    release: Callable[[], None]


class Handover(LocalBus):
    """`LocalBus` that holds records until their pages are taken."""

    def __init__(
        self, clock: Clock, *, all_outcomes: bool, found_links: bool, on_quiet: Callable[[], None] | None = None
    ) -> None:
        """`all_outcomes`: also URLs that were denied, failed or dropped are yielded. `found_links`: the links of a page
        are followed, not only those that `follow` adds."""
        super().__init__(clock, on_quiet=on_quiet)
        self._all = all_outcomes
        self.follows_pages = found_links
        self._pages: dict[_Key, m.Page] = {}
        """Pages without their records yet."""
        self._waiting: deque[_Held] = deque()
        self._held_bytes = 0
        self._taken: _Held | None = None
        """The page that the consumer has."""
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiter: Future[Page | None] | None = None
        self._ended = False
        self._error: BaseException | None = None

    # ---- on the loop

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        if topic is PAGES:
            self._pages[message.url_key, message.fetch_no, message.attempt] = message
        elif topic is RECORDS:
            page = self._pages.pop((message.url_key, message.fetch_no, message.attempt), None)
            if self._all or (message.outcome is m.Outcome.STORED and not message.not_modified):
                return self._hold(partition, message, page)
        elif topic is OUTLINKS and not self.follows_pages and not message.source:
            return Receipt(0)
        return super().publish(topic, partition, message)

    def has_reader(self, topic: Topic) -> bool:
        return topic is PAGES or super().has_reader(topic)

    def _hold(self, partition: int, record: m.Record, page: m.Page | None) -> Receipt:
        receipt = Receipt(1)
        self.unacked += 1

        def release() -> None:
            LocalBus.publish(self, RECORDS, partition, record).add_done_callback(receipt.resolve_one)
            self.unacked -= 1

        body = bytes(page.body) if page is not None else b""
        source: bytes | IO[bytes] = body
        if self._held_bytes + len(body) > HELD_BYTES and self._waiting:
            source = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is read, or with the page
            source.write(body)
        size_bytes = len(body) if source is body else 0
        self._held_bytes += size_bytes
        self._waiting.append(_Held(self._page(record, page, source), size_bytes, release))
        self._serve()
        return receipt

    def _page(self, record: m.Record, page: m.Page | None, source: bytes | IO[bytes]) -> Page:
        own = page or m.Page(record.job, record.url_key, record.url, depth=record.depth)
        head = msgspec.structs.replace(own, body=b"")
        return Page(
            url=record.url,
            status=record.status,
            title=record.title,
            text=str(record.text, "utf-8", "replace"),
            lang=record.lang,
            content_type=record.content_type,
            charset=page.charset if page is not None else "",
            depth=record.depth,
            outcome=OUTCOMES[record.outcome],
            reason=record.reason,
            final_url=record.final_url,
            fetched_at=instant(record.fetched_at),
            items=[json.loads(item) for item in record.items],
            rule=record.rule,
            meta=json.loads(record.meta) if record.meta else {},
            source=source,
            add_links=lambda links: self.follow(head, links),
        )

    def begin(self) -> None:
        """The loop runs. A consumer that already waits gets the first page."""
        self._loop = asyncio.get_running_loop()

    def _serve(self) -> None:
        """Give a page to the consumer that waits for one."""
        while self._waiting and (waiter := self._waiter) is not None:
            self._release_taken()
            with self._lock:
                self._waiter = None
            if waiter.set_running_or_notify_cancel():
                self._taken = self._waiting.popleft()
                waiter.set_result(self._taken.page)

    def _release_taken(self) -> None:
        """The consumer is done with its page: publish its record."""
        taken, self._taken = self._taken, None
        if taken is not None:
            self._held_bytes -= taken.size_bytes
            taken.release()

    def _on_page_wanted(self) -> None:
        # Otherwise a page that arrived in the meantime was given already, and is still in use.
        if self._waiter is not None:
            self._release_taken()
            self._serve()

    def _add(self, page: m.Page, links: list[str]) -> None:
        rows = run_to_end(resolve(page.url, [UnresolvedLink(link) for link in links]))
        for at in range(0, len(rows), LINKS_PER_MESSAGE):
            links_of = pack(page, rows[at : at + LINKS_PER_MESSAGE], page.depth + 1, m.LinkSource.UNSPECIFIED)
            LocalBus.publish(self, OUTLINKS, 0, links_of)

    # ---- from any thread

    def next_page(self) -> Future[Page | None]:
        """The next page, None after the last. The page before it counts as taken. Raises the error of the crawl."""
        answer: Future[Page | None] = Future()
        with self._lock:
            if self._ended:
                self._resolve(answer)
                return answer
            self._waiter = answer
            self._call(self._on_page_wanted)
        return answer

    def follow(self, page: m.Page, links: list[str]) -> None:
        """Links of a page that was taken. Raises `UsageError` when the crawl has ended."""
        with self._lock:
            if self._ended or not self._call(self._add, page, links):
                raise UsageError(f"{page.url}: the crawl has ended, its links cannot be followed")

    def finish(self, error: BaseException | None) -> None:
        """The loop has ended: present and later waiters get None, or the error."""
        with self._lock:
            self._ended, self._error = True, error
            waiter, self._waiter = self._waiter, None
            if waiter is not None and waiter.set_running_or_notify_cancel():
                self._resolve(waiter)

    def _call(self, function: Callable[..., None], *arguments: Any) -> bool:
        """Have the loop call it; False when there is none. With the lock."""
        with contextlib.suppress(RuntimeError):  # it is closed
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function, *arguments)
                return True
        return False

    def _resolve(self, answer: Future[Page | None]) -> None:
        if self._error is not None:
            answer.set_exception(self._error)
        else:
            answer.set_result(None)
