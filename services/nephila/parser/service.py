"""IN: pages, jobs. OUT: outlinks, then records.

One page at a time, in the bus' own call: kind, charset, page pass, SHA-256, two messages (sitemaps and feeds: their
reading in place of the page pass, and as many messages of links as they need; long ones in slices over turns of the
loop). Invariants: the outlinks of a page are published before its record, so that a crawl never looks finished while
links are on their way; a page that cannot be parsed ends as failed(dead_letter) and never stops the next; nothing is
kept between pages but the jobs and the lists under way.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nephila.kernel import failpoints
from nephila.kernel import messages as m
from nephila.kernel.bus.base import Bus, Delivery, Receipt
from nephila.kernel.clock import Clock
from nephila.kernel.errors import PermanentError
from nephila.kernel.topics import JOBS, OUTLINKS, PAGES, RECORDS
from nephila.native import page_pass, partition_of, sniff_encoding
from nephila.parser.charset import Sniff, encoding_of, encoding_of_text
from nephila.parser.config import ParserConfig
from nephila.parser.directives import nofollow
from nephila.parser.kinds import HEAD_BYTES, Kind, kind_of
from nephila.parser.listing import outlinks, resolved, rows_hash
from nephila.parser.meta import to_json
from nephila.parser.passes import PageCall, PagePass
from nephila.parser.relevance import Relevance
from nephila.parser.slices import Slicing
from nephila.parser.sources import Form, form_of, read
from nephila.parser.text import plain_text, text_hash

log = logging.getLogger(__name__)

GROUP: Final = "parser"
MAX_LANG_CHARS: Final = 35
"""The longest language tag that RFC 5646 asks anyone to accept."""

_DEFAULT_JOB: Final = m.CrawlJob()


def build(config: ParserConfig, bus: Bus, clock: Clock) -> Parser:
    """The service with the native core that is installed."""
    return Parser(config, bus, clock, page_pass, sniff_encoding)


class Parser:
    """Turns pages into records and outlinks."""

    def __init__(self, config: ParserConfig, bus: Bus, clock: Clock, page_pass: PageCall, sniff: Sniff) -> None:
        self.config = config
        self.pages = 0
        self.failed = 0
        self._bus = bus
        self._clock = clock
        self._page_pass = page_pass
        self._sniff = sniff
        self._jobs: dict[str, m.CrawlJob] = {}
        self._slicing = Slicing(clock)
        self._relevance: dict[str, Relevance] = {}
        """Of the jobs that look for something."""

    async def start(self) -> None:
        """Subscribe; jobs first, so that a page never meets its job's defaults."""
        self._bus.subscribe(JOBS, GROUP, self._on_job, credits=self.config.window)
        self._bus.subscribe(PAGES, GROUP, self._on_page, credits=self.config.window, on_dead=self._on_dead)

    async def drain(self, grace_s: float) -> None:
        """A page is parsed and published within the call that delivers it; lists under way are done while there is
        time, else their pages stay unacked."""
        if grace_s > 0:
            self._slicing.finish()

    async def close(self) -> None:
        """Leave what is under way."""
        self._slicing.drop()

    def _on_job(self, delivery: Delivery) -> None:
        job: m.CrawlJob = delivery.message
        self._jobs[job.uid] = job
        self._relevance.pop(job.uid, None)
        if job.strategy == m.Strategy.BEST_FIRST and job.keywords:
            self._relevance[job.uid] = Relevance(job.keywords)
        delivery.ack()

    def _on_page(self, delivery: Delivery) -> None:
        page: m.Page = delivery.message
        failpoints.reach_with("parse", page.url)
        job = self._jobs.get(page.job, _DEFAULT_JOB)
        try:
            body = page.body if type(page.body) is bytes else bytes(page.body)
            form = None if page.not_modified else form_of(page.content_type, page.url, body)
            if form is not None:
                self._slicing.begin(self._whole_list(delivery, page, job, body, form), len(body))
                return
            links, record = self._parse(page, job, body)
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # A panic of the native core is no Exception; for the bus it is one message that will never succeed.
            raise PermanentError(f"{type(error).__name__}: {error}") from error
        self.pages += 1
        # The body ends here: a page that waits for its receipts holds its text and links only.
        delivery.message = None
        publish, partition = self._bus.publish, delivery.partition
        receipts = [publish(OUTLINKS, partition, one) for one in links]
        receipts.append(publish(RECORDS, partition, record))
        delivery.ack_after(receipts)

    def _on_dead(self, page: m.Page, error: BaseException) -> Iterable[Receipt]:
        """The URL of a page that cannot be parsed ends as failed(dead_letter), with what is known of it."""
        self.failed += 1
        record = _record(page)
        record.outcome = m.Outcome.FAILED
        record.reason = "dead_letter"
        # An error may quote what could not be decoded; the row must be storable all the same.
        text = f"{type(error).__name__}: {error}".encode("utf-8", "replace").decode()
        record.meta = to_json({"error": text}, [], self.config.max_meta_chars, 1)
        # The bus does not say on which partition the page came; the fingerprint does.
        return (self._bus.publish(RECORDS, partition_of(page.url_key, self.config.partitions), record),)

    def _parse(self, page: m.Page, job: m.CrawlJob, body: bytes) -> tuple[Sequence[m.Outlinks], m.Record]:
        record = _record(page)
        if page.not_modified:
            record.reason = "not_modified"
            record.not_modified = True
            return (), record
        record.size_bytes = len(body)
        record.sha256 = hashlib.sha256(body).digest()
        kind, sniffed = kind_of(page.content_type, body[:HEAD_BYTES])
        if kind is Kind.HTML:
            return self._html(page, job, record, body, sniffed)
        entries = {"x_robots_tag": page.robots_tag, "sniffed_type": sniffed}
        if kind is Kind.TEXT:
            encoding = encoding_of_text(body, page.charset, page.content_type or sniffed)
            record.text = plain_text(body, encoding, self.config.max_text_bytes)
            record.text_hash = text_hash(record.text)
            entries["encoding"] = encoding
        record.meta = to_json(entries, [], self.config.max_meta_chars, self.config.max_meta_entries)
        return (), record

    def _whole_list(self, delivery: Delivery, page: m.Page, job: m.CrawlJob, body: bytes, form: Form) -> Iterator[None]:
        """A sitemap or feed from delivery to ack, in slices. Errors end it as those of any page."""
        publish, partition = self._bus.publish, delivery.partition
        receipts: list[Receipt] = []
        try:
            record = _record(page)
            for links in self._list(page, job, record, body, form):
                if links is None or receipts:
                    yield
                if links is not None:
                    receipts.append(publish(OUTLINKS, partition, links))
            self.pages += 1
        except Exception as error:
            # In a turn of its own there is no bus to hand it to.
            log.exception("parser: a list could not be read")
            receipts += self._on_dead(page, error)
        else:
            receipts.append(publish(RECORDS, partition, record))
        delivery.message = None
        delivery.ack_after(receipts)

    def _list(
        self, page: m.Page, job: m.CrawlJob, record: m.Record, body: bytes, form: Form
    ) -> Iterator[m.Outlinks | None]:
        """A row without text, and the links in messages that the scheduler takes at once; None between slices."""
        config = self.config
        record.size_bytes = len(body)
        record.sha256 = hashlib.sha256(body).digest()
        listing = yield from read(form, body, page.url, page.charset, config, self._clock.now())
        rows = yield from resolved(page.url, listing.entries)
        record.text_hash = rows_hash(rows)
        record.title = listing.title[: config.max_title_chars]
        entries = {"list": listing.form, "links": str(len(rows)), "problem": listing.problem}
        entries["x_robots_tag"] = page.robots_tag
        record.meta = to_json(entries, [], config.max_meta_chars, config.max_meta_entries)
        if job.keep_links and rows:
            (record.links,) = outlinks(page, listing, rows, len(rows))
        if not (page.robots_tag and self._says_nofollow(job, "", page.robots_tag)):
            yield from outlinks(page, listing, rows)

    def _html(
        self, page: m.Page, job: m.CrawlJob, record: m.Record, body: bytes, sniffed: str
    ) -> tuple[Sequence[m.Outlinks], m.Record]:
        config = self.config
        encoding = encoding_of(body, page.charset, self._sniff)
        found = self._page_pass(
            body, page.url, encoding, max_links=config.max_links, max_text_bytes=config.max_text_bytes
        )
        title = found.title
        robots = found.robots
        record.title = title if len(title) <= config.max_title_chars else title[: config.max_title_chars]
        record.lang = found.lang[:MAX_LANG_CHARS]
        main = found.main_text
        # A page whose subject nobody can tell - a front page of links, a form - keeps what there is.
        record.text = found.text if config.full_text or not main else main
        record.text_hash = text_hash(main or record.text)
        record.meta = to_json(
            {
                "encoding": encoding,
                "description": found.description,
                "canonical": found.canonical,
                "robots": robots,
                "x_robots_tag": page.robots_tag,
                "refresh": found.refresh,
                "sniffed_type": sniffed,
            },
            found.meta,
            config.max_meta_chars,
            config.max_meta_entries,
        )
        if not found.link_count:
            return (), record
        links = _outlinks(page, found)
        if (relevance := self._relevance.get(page.job)) is not None:
            links.priorities = relevance.priorities(title, record.text, links)
        if job.keep_links:
            record.links = links
        if (robots or page.robots_tag) and self._says_nofollow(job, robots, page.robots_tag):
            return (), record
        return (links,), record

    def _says_nofollow(self, job: m.CrawlJob, robots: str, robots_tag: str) -> bool:
        if job.politeness is not None and job.politeness.ignore_robots:
            return False
        token = self.config.robots_agent
        return nofollow(robots, token) or nofollow(robots_tag, token)


def _record(page: m.Page) -> m.Record:
    """A stored row with all that the fetch says; what the body says is filled in after."""
    return m.Record(
        job=page.job,
        url_key=page.url_key,
        url=page.url,
        fetch_no=page.fetch_no,
        attempt=page.attempt,
        outcome=m.Outcome.STORED,
        status=page.status,
        depth=page.depth,
        content_type=page.content_type,
        fetched_at=page.fetched_at,
        etag=page.etag,
        last_modified=page.last_modified,
    )


def _outlinks(page: m.Page, found: PagePass) -> m.Outlinks:
    """The packed buffers as the native core made them; nothing is unpacked here."""
    return m.Outlinks(
        job=page.job,
        parent_key=page.url_key,
        parent_url=page.url,
        depth=page.depth + 1,
        fingerprints=found.fingerprints,
        urls=found.link_urls,
        url_ends=found.link_ends,
        host_spans=found.host_spans,
        anchors=found.anchors,
        anchor_ends=found.anchor_ends,
        flags=found.link_flags,
    )
