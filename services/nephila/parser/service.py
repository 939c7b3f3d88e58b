"""IN: pages, jobs, rules, verdicts. OUT: outlinks, then records; statistics of rules; dead letters.

A page passes the steps of `steps.py`, most often within the bus' delivery call, and ends here: as its messages or as a
dead letter. Its ack waits for the receipts of either.

Invariants: outlinks are published before the record, so that a crawl never looks finished while links are in flight; a
page that cannot be parsed ends as failed(dead_letter) and does not stop the next; the only state between pages are
jobs, rules and pages in progress.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Bus, Delivery, Receipt
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.pages.read_pages import ReadPages
from nephila.kernel.process.memory_budget import MemoryBudget, container_budget
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime import failpoints
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import PermanentError
from nephila.kernel.runtime.histogram import FAST_S, Histogram
from nephila.kernel.topics import JOBS, OUTLINKS, PAGES, RECORDS, RULES
from nephila.native import page_pass, partition_of, sniff_encoding
from nephila.parser.config import ParserConfig
from nephila.parser.documents.read import TEXTS
from nephila.parser.in_progress import HTML, PageCall, PageInProgress, PageKind, Work
from nephila.parser.lists.cooperative import CooperativeTasks
from nephila.parser.lists.detection import form_of
from nephila.parser.page.body_kind import HEAD_BYTES, BodyKind, kind_of
from nephila.parser.page.charset import BackgroundClassifier, ClassifierNotLoadedError, Sniff
from nephila.parser.page.meta import note, to_json
from nephila.parser.page_to_record import reads_main_text, record_of
from nephila.parser.rule_engine import NoRules, RuleJudge, make_engine, make_judge
from nephila.parser.sandbox import ChildError, Sandbox
from nephila.parser.sandbox.child_queue import ChildProcessQueue
from nephila.parser.steps import STEPS, PageSteps, Slices, StepRow

log = logging.getLogger(__name__)

GROUP: Final = "parser"
_DEFAULT_JOB: Final = JobSpec()
_HTML_BODY: Final = BodyKind.HTML
_KINDS: Final[Mapping[BodyKind, PageKind]] = {
    **dict.fromkeys(BodyKind, PageKind.FILE),
    **dict.fromkeys(TEXTS, PageKind.TEXT),
    BodyKind.HTML: PageKind.HTML,
    BodyKind.PDF: PageKind.PDF,
    BodyKind.OFFICE: PageKind.OFFICE,
}


def build(
    config: ParserConfig,
    bus: Bus,
    clock: Clock,
    *,
    with_judge: bool = True,
    rules: bool = True,
    budget: MemoryBudget | None = None,
    read_pages: ReadPages | None = None,
) -> Parser:
    """The service with the installed native core. `with_judge`: this process judges the health of the rules of its
    partitions; False: another process does. `rules`: False where no job can have rules. `budget`: the memory of this
    process; None: it makes its own. `read_pages`: of the downloader in this process."""
    judge = make_judge(bus, clock) if with_judge else None
    budget = budget or container_budget(clock)
    return Parser(config, bus, clock, page_pass, sniff_encoding, Sandbox(), judge, budget, read_pages, rules=rules)


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
        read_pages: ReadPages | None = None,
        *,
        rules: bool = True,
    ) -> None:
        self.config = config
        self.pages = 0
        self.failed = 0
        self.parse_s = Histogram(FAST_S)
        """Time of the event loop for a page: parsing in place or handing over to a child process, and publishing."""
        self._bus = bus
        self._read_pages = ReadPages(config) if read_pages is None else read_pages
        self._clock = clock
        self._child_queue = ChildProcessQueue(sandbox, budget=budget)
        self.judge = judge
        self.rules = make_engine(bus, clock, self._child_queue, config) if rules else NoRules()
        self._classifier = BackgroundClassifier()
        self._steps = PageSteps(config, clock, page_pass, sniff, self._classifier, self._child_queue, self.rules)
        self._lists = CooperativeTasks(clock)
        self._jobs: dict[str, JobSpec] = {}
        self._selected: dict[tuple[str, PageKind, bool], tuple[StepRow, ...]] = {}
        """Steps by job, kind of page, and whether it was rendered."""

    @property
    def work(self) -> tuple[int, int]:
        """Pages parsed since the start; no bytes are received here."""
        return self.pages, 0

    @property
    def in_children(self) -> int:
        """Pages that wait for a child process or are read by one."""
        return len(self._child_queue)

    @property
    def children_replaced(self) -> int:
        return self._child_queue.sandbox.replaced

    async def start(self) -> None:
        """Subscribe to rules, verdicts and jobs before pages, so that a page is never parsed with default job
        settings."""
        if self.judge is not None:
            self.judge.start()
        self.rules.start()
        self._bus.subscribe(RULES, GROUP, self._on_rule, credits=self.config.window)
        self._bus.subscribe(JOBS, GROUP, self._on_job, credits=self.config.window)
        self._bus.subscribe(PAGES, GROUP, self._on_page, credits=self.config.window, on_dead=self._on_dead)

    async def drain(self, grace_s: float) -> None:
        """Finish lists and pages in child processes within `grace_s` seconds; pages that are not finished stay unacked.
        All other pages are published within their delivery call."""
        if grace_s > 0:
            self._lists.finish()
        await self._child_queue.drain(grace_s)
        if grace_s > 0:
            # A list that waited for the classifier of encodings has begun by now.
            self._lists.finish()
        self.rules.flush()
        if self.judge is not None:
            self.judge.save()

    async def close(self) -> None:
        """Abandon all pages in progress."""
        self._lists.drop()
        self.rules.close()
        await self._child_queue.close()

    def _on_rule(self, delivery: Delivery) -> None:
        self.rules.update_rule(delivery.message)
        delivery.ack()

    def _on_job(self, delivery: Delivery) -> None:
        job: m.CrawlJob = delivery.message
        spec = self._jobs[job.uid] = spec_of(job)
        self._read_pages.set_main_text(job.uid, job.deleted or reads_main_text(spec, self.config))
        self._selected.clear()
        self._steps.update_job(job)
        delivery.ack()

    # ---- the way of a page

    def _on_page(self, delivery: Delivery) -> None:
        began = self._clock.monotonic()
        page: m.Page = delivery.message
        failpoints.reach_with("parse", page.url)
        try:
            job = self._jobs.get(page.job, _DEFAULT_JOB)
            body = page.body if type(page.body) is bytes else bytes(page.body)
            p = PageInProgress(delivery, page, job, body, record_of(page))
            p.read = self._read_pages.take(body, page.url, page.charset)
            p.main_text = self._read_pages.wants_main_text(page.job)
            p.kind = self._kind_of(p)
            p.steps = self._selected.get((page.job, p.kind, page.rendered)) or self._select(p)
            self._run(p)
        finally:
            self.parse_s.observe(self._clock.monotonic() - began)

    def _kind_of(self, p: PageInProgress) -> PageKind:
        page, body = p.page, p.body
        if page.context is not None and page.context.requisite:
            return PageKind.REQUISITE
        if page.not_modified:
            return PageKind.NOT_MODIFIED
        if p.read is not None and p.read.certain:
            p.body_kind = _HTML_BODY
            return HTML
        p.form = form_of(page.content_type, page.url, body)
        if p.form is not None:
            return PageKind.LIST
        p.body_kind, p.sniffed = kind_of(page.content_type, body[:HEAD_BYTES])
        kind = _KINDS[p.body_kind]
        return PageKind.LONG_HTML if kind is HTML and len(body) > self.config.max_inline_bytes else kind

    def _select(self, p: PageInProgress) -> tuple[StepRow, ...]:
        """Select the steps of pages like this one, until a job changes."""
        kind, job, rendered = p.kind, p.job, p.page.rendered
        steps = (step for step in STEPS if kind in step.kinds)
        selected = tuple(row for row in steps if row.wanted is None or row.wanted(self.config, job, rendered))
        self._selected[p.page.job, kind, rendered] = selected
        return selected

    def _run(self, p: PageInProgress) -> None:
        """Run the steps from `p.at` on, until one waits or the page ends."""
        try:
            for step in p.steps[p.at :]:
                answer = step.run(self._steps, p)
                if answer is not None:
                    self._wait_for(p, answer)
                    return
                p.at += 1
        except ClassifierNotLoadedError:
            self._child_queue.start(self._after(p, self._classifier.load, 0))
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # A panic of the native core is no Exception. The message can never succeed.
            raise PermanentError(f"{type(error).__name__}: {error}") from error
        else:
            self._publish(p)

    def _wait_for(self, p: PageInProgress, answer: Work | Slices) -> None:
        if isinstance(answer, Iterator):
            self._lists.begin(self._slices(p, answer), len(p.body))
        else:
            self._child_queue.start(self._after(p, answer))

    # Outside of the delivery call no bus handles an error.

    async def _after(self, p: PageInProgress, work: Work, done: int = 1) -> None:
        """Wait for `work`, then continue; `done`: steps that it finishes, 0 or 1. If a step with a `problem` fails, the
        page lacks only what the step would have added."""
        problem = p.steps[p.at].problem
        try:
            try:
                await work()
            except Exception as error:
                if not problem:
                    raise
                log.warning("parser: %s: %s", ascii(p.page.url)[1:-1][:500], ascii(str(error))[1:-1][:200])
                note(p.record, problem, str(error))
            p.at += done
            self._run(p)
        except Exception as error:
            self._fail(p, error)

    def _slices(self, p: PageInProgress, slices: Slices) -> Iterator[None]:
        """Publish the links of a list as they are read, then continue."""
        try:
            for links in slices:
                if links is None or p.receipts:
                    yield
                if links is not None:
                    p.receipts.append(self._bus.publish(OUTLINKS, p.delivery.partition, links))
            p.at += 1
            self._run(p)
        except ClassifierNotLoadedError:
            # Raised by the first slice, which `_run` begins.
            raise
        except Exception as error:
            self._fail(p, error)

    # ---- ends of a page

    def _publish(self, p: PageInProgress) -> None:
        """Publish the links, then the record; ack."""
        self.pages += 1
        delivery, receipts, publish = p.delivery, p.receipts, self._bus.publish
        partition = delivery.partition
        # Frees the body: a page that waits for its receipts holds only its text and links.
        delivery.message = None
        for links in p.links:
            receipts.append(publish(OUTLINKS, partition, links))
        receipts.append(publish(RECORDS, partition, p.record))
        delivery.ack_after(receipts)

    def _fail(self, p: PageInProgress, error: Exception) -> None:
        """End a page as a dead letter outside of its delivery call, as the bus does inside."""
        page, partition = p.page, p.delivery.partition
        attempts = error.attempts if isinstance(error, ChildError) else 1
        log.error("parser: %s: %s", page.url_key.hex(), ascii(f"{type(error).__name__}: {error}")[1:-1][:500])
        letter = self._bus.dead_letter(PAGES, GROUP, partition, page, error, attempts)
        p.delivery.ack_after([*p.receipts, letter, *self._on_dead(page, error)])

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
