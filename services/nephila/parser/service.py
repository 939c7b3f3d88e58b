"""IN: pages, jobs, rules, verdicts. OUT: outlinks, then records; statistics of rules; dead letters.

A page is parsed in the bus' delivery call: kind, encoding, page pass, SHA-256, two messages. A sitemap or feed is read
instead of the page pass and may give many messages of links; a long one is read in slices over several turns of the
loop. PDFs, very long pages and unbounded rules run in a child process.

Invariants: outlinks are published before the record, so that a crawl never looks finished while links are in flight; a
page that cannot be parsed ends as failed(dead_letter) and does not stop the next; the only state between pages are
jobs, rules and pages in progress.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

import msgspec

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Bus, Delivery, Receipt
from nephila.kernel.documents.job_document import keeps_routes, spec_of
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime import failpoints
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import PermanentError
from nephila.kernel.runtime.histogram import FAST_S, Histogram
from nephila.kernel.runtime.memory_budget import MemoryBudget, container_budget
from nephila.kernel.topics import JOBS, OUTLINKS, PAGES, RECORDS, RULES
from nephila.native import page_pass, partition_of, sniff_encoding, to_utf8
from nephila.parser.config import ParserConfig
from nephila.parser.documents.content import Content
from nephila.parser.documents.pdf_task import PDF, pdf_payload
from nephila.parser.keywords.scheme_records import SchemeRecords
from nephila.parser.links.extra_links import kinds_of
from nephila.parser.lists.cooperative import CooperativeTasks
from nephila.parser.lists.detection import ListForm, form_of
from nephila.parser.page import trafilatura_text
from nephila.parser.page.body_kind import HEAD_BYTES, BodyKind, kind_of
from nephila.parser.page.charset import BackgroundClassifier, ClassifierNotLoadedError, Sniff
from nephila.parser.page.meta import note, to_json
from nephila.parser.page.oversize import PAGE, payload_of
from nephila.parser.page.page_pass import PageCall, PageFacts, PagePass
from nephila.parser.page_to_record import Links, RecordBuilder, record_of
from nephila.parser.rule_execution.executor import RuleExecutor
from nephila.parser.rule_execution.to_messages import facts_of
from nephila.parser.rule_health.collector import RuleStatsCollector
from nephila.parser.rule_health.judge import RuleJudge
from nephila.parser.rules.document import Document
from nephila.parser.sandbox import ChildError, Sandbox
from nephila.parser.sandbox.child_queue import ChildProcessQueue, SpooledBody
from nephila.parser.sandbox.task import UNAVAILABLE

log = logging.getLogger(__name__)

GROUP: Final = "parser"
_DEFAULT_JOB: Final = JobSpec()


def build(
    config: ParserConfig, bus: Bus, clock: Clock, *, with_judge: bool = True, budget: MemoryBudget | None = None
) -> Parser:
    """The service with the installed native core. `with_judge`: this process judges the health of the rules of its
    partitions; False: another process does. `budget`: the memory of this process; None: it makes its own."""
    judge = RuleJudge(bus, clock) if with_judge else None
    budget = budget or container_budget(clock)
    return Parser(config, bus, clock, page_pass, sniff_encoding, Sandbox(), judge, budget)


def _note_problem(page: m.Page, record: m.Record, name: str, error: Exception) -> None:
    """A part of a page failed in a child process: the log and the row have the reason, and the page continues."""
    log.warning("parser: %s: %s", ascii(page.url)[1:-1][:500], ascii(str(error))[1:-1][:200])
    note(record, name, str(error))


class Parser:
    """Turns pages into records and outlinks."""

    def __init__(
        self,
        config: ParserConfig,
        bus: Bus,
        clock: Clock,
        page_pass: PageCall,
        sniff: Sniff,
        sandbox: Sandbox,
        judge: RuleJudge | None = None,
        budget: MemoryBudget | None = None,
    ) -> None:
        self.config = config
        self.pages = 0
        self.failed = 0
        self.parse_s = Histogram(FAST_S)
        """Time of the event loop for a page: parsing in place or handing over to a child process, and publishing."""
        self._bus = bus
        self._clock = clock
        self._classifier = BackgroundClassifier()
        self._builder = RecordBuilder(config, clock, page_pass, sniff, self._classifier)
        self._jobs: dict[str, JobSpec] = {}
        self._schemes = SchemeRecords()
        self._uses_trafilatura: set[str] = set()
        """Jobs whose main text is extracted by trafilatura."""
        self._lists = CooperativeTasks(clock)
        self._child_queue = ChildProcessQueue(sandbox, budget=budget)
        self.rule_health = RuleStatsCollector(bus, clock, config.partitions)
        self.judge = judge
        self.rules = RuleExecutor(clock, self._child_queue, health=self.rule_health, scripts=config.rule_scripts)

    @property
    def in_children(self) -> int:
        """Pages that wait for a child process or are read by one."""
        return len(self._child_queue)

    @property
    def children_replaced(self) -> int:
        """Child processes that were killed."""
        return self._child_queue.sandbox.replaced

    async def start(self) -> None:
        """Subscribe to rules, verdicts and jobs before pages, so that a page is never parsed with default job
        settings."""
        if self.judge is not None:
            self.judge.start()
        self.rule_health.start()
        self._bus.subscribe(RULES, GROUP, self._on_rule, credits=self.config.window)
        self._bus.subscribe(JOBS, GROUP, self._on_job, credits=self.config.window)
        self._bus.subscribe(PAGES, GROUP, self._on_page, credits=self.config.window, on_dead=self._on_dead)

    async def drain(self, grace_s: float) -> None:
        """Finish lists and pages in child processes within `grace_s` seconds; pages that are not finished stay unacked.
        All other pages are published within their delivery call."""
        if grace_s > 0:
            self._lists.finish()
        await self._child_queue.drain(grace_s)
        self.rule_health.flush()
        if self.judge is not None:
            self.judge.save()

    async def close(self) -> None:
        """Abandon all pages in progress."""
        self._lists.drop()
        self.rule_health.close()
        await self._child_queue.close()

    def _on_rule(self, delivery: Delivery) -> None:
        self.rules.registry.update_rule(delivery.message)
        delivery.ack()

    def _on_job(self, delivery: Delivery) -> None:
        job: m.CrawlJob = delivery.message
        spec = self._jobs[job.uid] = spec_of(job)
        self._schemes.update_job(job)
        self.rules.registry.update_job(job)
        self._builder.update_job(job.uid, spec)
        self._set_main_text(job, spec)
        delivery.ack()

    def _set_main_text(self, job: m.CrawlJob, spec: JobSpec) -> None:
        self._uses_trafilatura.discard(job.uid)
        if job.deleted or spec.parse.main_text != trafilatura_text.LIBRARY:
            return
        if trafilatura_text.is_installed():
            self._uses_trafilatura.add(job.uid)
        else:
            log.error("parser: job %s: %s; it stores the main text by density", job.uid, trafilatura_text.MISSING)

    def _on_page(self, delivery: Delivery) -> None:
        began = self._clock.monotonic()
        try:
            self._parse(delivery)
        finally:
            self.parse_s.observe(self._clock.monotonic() - began)

    def _parse(self, delivery: Delivery) -> None:
        page: m.Page = delivery.message
        failpoints.reach_with("parse", page.url)
        job = self._jobs.get(page.job, _DEFAULT_JOB)
        try:
            body = page.body if type(page.body) is bytes else bytes(page.body)
            if page.context is not None and page.context.requisite:
                self._publish(delivery, *self._builder.from_requisite(page, job, body))
                return
            form = None if page.not_modified else form_of(page.content_type, page.url, body)
            if form is not None:
                self._lists.begin(self._read_list(delivery, page, job, body, form), len(body))
                return
            kind, sniffed = kind_of(page.content_type, body[:HEAD_BYTES])
            if not page.not_modified and self._is_for_child(kind, len(body)):
                spooled = self._child_queue.spool(body)
                # Replaced by a copy without the body: a raw sink may still read the original page object.
                delivery.message = page = msgspec.structs.replace(page, body=b"")
                self._child_queue.start(self._read_in_child(delivery, page, job, spooled, kind, sniffed))
                return
            links, record, facts, left = self._builder.parse(page, job, body, kind, sniffed)
            by_trafilatura = kind is BodyKind.HTML and page.job in self._uses_trafilatura
            if facts is not None and (by_trafilatura or left is not None):
                spooled = self._child_queue.spool(body, digest=False)
                delivery.message = page = msgspec.structs.replace(page, body=b"")
                if left is None:
                    work = self._replace_text(delivery, page, links, record, facts, spooled)
                else:
                    work = self._read_extra_links(delivery, page, job, links, record, facts, spooled, left)
                self._child_queue.start(work)
                return
        except ClassifierNotLoadedError:
            self._child_queue.start(self._parse_after_loading(delivery))
            return
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # A panic of the native core is no Exception. The message can never succeed.
            raise PermanentError(f"{type(error).__name__}: {error}") from error
        self._apply_rules(delivery, page, links, record, facts, body)

    async def _parse_after_loading(self, delivery: Delivery) -> None:
        """Load the classifier of encodings, then parse a page that needs it."""
        page: m.Page = delivery.message
        try:
            await self._classifier.load()
            self._parse(delivery)
        except Exception as error:
            delivery.ack_after(self._dead_letter(page, delivery.partition, error))

    def _apply_rules(
        self, delivery: Delivery, page: m.Page, links: Links, record: m.Record, facts: PageFacts | None, body: bytes
    ) -> None:
        """Apply the matching rule, if the job has rules, then publish."""
        if facts is None or not self.rules.registry.has_rules(page.job):
            self._publish(delivery, links, record)
            return
        routes = keeps_routes(self._jobs.get(page.job, _DEFAULT_JOB))
        document = Document(body, page.url, facts.encoding, page.content_type, facts_of(record), routes=routes)
        delivery.message = None
        self.rules.read(page, record, links, document, facts, partial(self._publish, delivery, record=record))

    def _apply_rules_in_task(
        self, delivery: Delivery, page: m.Page, links: Links, record: m.Record, facts: PageFacts | None, body: bytes
    ) -> None:
        """The same outside of a delivery call, where the bus does not handle errors."""
        try:
            self._apply_rules(delivery, page, links, record, facts, body)
        except Exception as error:
            delivery.ack_after(self._dead_letter(page, delivery.partition, error))

    def _publish(self, delivery: Delivery, links: Links, record: m.Record) -> None:
        self.pages += 1
        if record.context is not None:
            self._schemes.complete(record, links)
        if not record.depth and record.outcome is m.Outcome.STORED and self._is_of_site(record.job):
            # How much a list of a directory has: shown with its verdict.
            pages = (one for one in links if one.source is not m.LinkSource.REQUISITE)
            note(record, "links", str(sum(len(one.fingerprints) // 16 for one in pages)))
        if record.rendered:
            note(record, "rendered", ", ".join(("document", *record.captures)))
        # Frees the body: a page that waits for its receipts holds only its text and links.
        delivery.message = None
        publish, partition = self._bus.publish, delivery.partition
        receipts = [publish(OUTLINKS, partition, one) for one in links]
        receipts.append(publish(RECORDS, partition, record))
        delivery.ack_after(receipts)

    def _is_of_site(self, uid: str) -> bool:
        job = self._jobs.get(uid)
        return job is not None and job.site is not None

    async def _read_text(
        self, delivery: Delivery, page: m.Page, links: Links, record: m.Record, facts: PageFacts, body: bytes
    ) -> None:
        """Replace the main text if the job asks for it, then apply the rules."""
        if page.job in self._uses_trafilatura:
            spooled = self._child_queue.spool(body, digest=False)
            await self._replace_text(delivery, page, links, record, facts, spooled)
        else:
            self._apply_rules_in_task(delivery, page, links, record, facts, body)

    async def _replace_text(
        self, delivery: Delivery, page: m.Page, links: Links, record: m.Record, facts: PageFacts, spooled: SpooledBody
    ) -> None:
        """Replace the main text by trafilatura's. If that fails, the page keeps its own text."""
        kept = b""

        def payload(body: bytes) -> bytes:
            nonlocal kept
            if self.rules.registry.has_rules(page.job):
                kept = body
            return trafilatura_text.payload_of(to_utf8(body, facts.encoding), page.url, self.config.max_text_bytes)

        try:
            record.text = await self._child_queue.run(trafilatura_text.TRAFILATURA, spooled, payload) or record.text
        except Exception as error:
            _note_problem(page, record, "text_problem", error)
        self._apply_rules_in_task(delivery, page, links, record, facts, kept)

    async def _read_extra_links(
        self,
        delivery: Delivery,
        page: m.Page,
        job: JobSpec,
        links: Links,
        record: m.Record,
        facts: PageFacts,
        spooled: SpooledBody,
        found: PagePass,
    ) -> None:
        """Extract extra links of a page whose tree is too costly for the loop, then continue as for any page."""
        links, body = await self._with_extra_links(page, job, links, record, facts, spooled, found)
        await self._read_text(delivery, page, links, record, facts, body)

    async def _with_extra_links(
        self,
        page: m.Page,
        job: JobSpec,
        links: Links,
        record: m.Record,
        facts: PageFacts,
        spooled: SpooledBody,
        found: PagePass,
    ) -> tuple[Links, bytes]:
        """The links, with extra links from a child process, and the body. If the child fails, the row has the
        reason."""
        from nephila.parser.links.extra_links_child import EXTRA_LINKS, payload_of

        kinds, kept = kinds_of(job.parse, facts.follow, page.rendered), b""

        def payload(body: bytes) -> bytes:
            nonlocal kept
            kept = body
            return payload_of(body, facts.encoding, found.base, kinds)

        try:
            entries = await self._child_queue.run(EXTRA_LINKS, spooled, payload)
            links = self._builder.with_extra_links(page, job, links, found, entries)
        except Exception as error:
            _note_problem(page, record, "links_problem", error)
        return links, kept

    # ---- failed pages

    def _on_dead(self, page: m.Page, error: BaseException) -> Iterable[Receipt]:
        """End the URL of a page that cannot be parsed as failed(dead_letter)."""
        self.failed += 1
        record = record_of(page)
        record.outcome = m.Outcome.FAILED
        record.reason = Reason.DEAD_LETTER
        # The error may quote undecodable text; the row must be storable.
        text = f"{type(error).__name__}: {error}".encode("utf-8", "replace").decode()
        record.meta = to_json({"error": text}, [], self.config.max_meta_chars, 1)
        # The bus does not pass the partition of the page; it follows from the fingerprint.
        return (self._bus.publish(RECORDS, partition_of(page.url_key, self.config.partitions), record),)

    def _dead_letter(self, page: m.Page, partition: int, error: Exception) -> list[Receipt]:
        """Publish the dead letter of a page outside of a delivery call, as the bus would inside."""
        attempts = error.attempts if isinstance(error, ChildError) else 1
        log.error("parser: %s: %s", page.url_key.hex(), ascii(f"{type(error).__name__}: {error}")[1:-1][:500])
        return [self._bus.dead_letter(PAGES, GROUP, partition, page, error, attempts), *self._on_dead(page, error)]

    # ---- lists, PDFs, long pages

    def _read_list(self, delivery: Delivery, page: m.Page, job: JobSpec, body: bytes, form: ListForm) -> Iterator[None]:
        """A sitemap or feed from delivery to ack, in slices. Errors make a dead letter."""
        publish, partition = self._bus.publish, delivery.partition
        receipts: list[Receipt] = []
        try:
            record = record_of(page)
            for links in self._builder.from_list(page, job, record, body, form):
                if links is None or receipts:
                    yield
                if links is not None:
                    receipts.append(publish(OUTLINKS, partition, links))
            self.pages += 1
        except ClassifierNotLoadedError:
            # Raised by the first slice, before any message is published.
            self._child_queue.start(self._parse_after_loading(delivery))
            return
        except Exception as error:
            # In a later turn of the loop no bus handles the error.
            receipts += self._dead_letter(page, partition, error)
        else:
            receipts.append(publish(RECORDS, partition, record))
        delivery.message = None
        delivery.ack_after(receipts)

    def _is_for_child(self, kind: BodyKind, size_bytes: int) -> bool:
        return kind is BodyKind.PDF or (kind is BodyKind.HTML and size_bytes > self.config.max_inline_bytes)

    async def _read_in_child(
        self, delivery: Delivery, page: m.Page, job: JobSpec, spooled: SpooledBody, kind: BodyKind, sniffed: str
    ) -> None:
        """A PDF or a very long page from delivery to ack. A page that fails in two child processes is a dead letter."""
        partition = delivery.partition
        try:
            record = record_of(page)
            record.size_bytes, record.sha256 = spooled.size_bytes, spooled.sha256
            if kind is BodyKind.PDF:
                content = await self._pdf(spooled)
                links = self._builder.from_document(page, job, record, content, {"sniffed_type": sniffed})
                facts, body = None, b""
            else:
                links, facts, body = await self._long_page(page, job, record, spooled, sniffed)
        except Exception as error:
            delivery.ack_after(self._dead_letter(page, partition, error))
        else:
            self._apply_rules_in_task(delivery, page, links, record, facts, body)

    async def _pdf(self, spooled: SpooledBody) -> Content:
        config = self.config
        try:
            return await self._child_queue.run(
                PDF, spooled, lambda body: pdf_payload(body, config.max_text_bytes, config.max_links)
            )
        except ChildError as broken:
            if broken.reason != UNAVAILABLE:
                raise
            return Content(problem=f"not read: {broken.detail}")

    async def _long_page(
        self, page: m.Page, job: JobSpec, record: m.Record, spooled: SpooledBody, sniffed: str
    ) -> tuple[Links, PageFacts, bytes]:
        config = self.config
        head = spooled.head(config.max_inline_bytes)
        try:
            encoding = self._builder.encoding_of(page, head)
        except ClassifierNotLoadedError:
            await self._classifier.load()
            encoding = self._builder.encoding_of(page, head)
        kept = b""

        def payload(body: bytes) -> bytes:
            nonlocal kept
            if self.rules.registry.has_rules(page.job) or kinds_of(job.parse, True, page.rendered):
                kept = body
            return payload_of(body, page.url, encoding, config.max_links, config.max_text_bytes, config.robots_agent)

        found = await self._child_queue.run(PAGE, spooled, payload)
        links, facts = self._builder.from_pass(page, job, record, found, encoding, sniffed)
        if kinds_of(job.parse, facts.follow, page.rendered):
            again = self._child_queue.spool(kept, digest=False)
            links, kept = await self._with_extra_links(page, job, links, record, facts, again, found)
        return links, facts, kept
