"""The steps of a page between delivery and ack, in one readable table: `STEPS`.

A step does its work in this process and answers None. Where the body makes its cost unbounded, it answers a call that
lets a child process do the work; a list of links is answered in slices. `service.py` waits for either, then continues.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from nephila.kernel import messages as m
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.pages.requisites import MAX_LEVEL, level_of, note_of
from nephila.kernel.pages.shells import SHELL, SHELL_LINKS, is_shell
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.extensions import extension
from nephila.native import PassOptions, recoded, to_utf8
from nephila.parser.config import ParserConfig
from nephila.parser.documents.content import DocumentContent
from nephila.parser.documents.pdf_task import PDF, pdf_payload
from nephila.parser.documents.read import read_document
from nephila.parser.in_progress import HTML, NO_PASS, TEXT, PageCall, PageInProgress, PageKind, Work
from nephila.parser.links.extra_links import extra_links_of, kinds_of, tree_of
from nephila.parser.links.requisites import requisite_links, requisites_of_style
from nephila.parser.page import trafilatura_text
from nephila.parser.page.body_kind import BodyKind
from nephila.parser.page.charset import Classify, Sniff, encoding_of, encoding_of_text
from nephila.parser.page.comparison import hash_of_fields, hash_of_text, ignores, text_without
from nephila.parser.page.html_tree import MAX_BYTES, MAX_DEPTH, tree_fits
from nephila.parser.page.meta import note
from nephila.parser.page.oversize import PAGE, payload_of
from nephila.parser.page_to_record import RecordBuilder
from nephila.parser.rule_engine import RuleEngine
from nephila.parser.sandbox import ChildError, Task
from nephila.parser.sandbox.child_queue import ChildProcessQueue
from nephila.parser.sandbox.task import UNAVAILABLE
from nephila.parser.scheme_port import SchemeRecords

log = logging.getLogger(__name__)

Out = TypeVar("Out")
Slices = Iterator[m.Outlinks | None]
"""Messages of links; None between slices."""
Answer = Work | Slices | None

STYLE: Final = "text/css"
COMPARISON: Final = "changes_problem"
"""Entry of the metadata: why `changes.ignore` was not applied as a whole."""
JSON_LINKS: Final = "json"
"""Value of `parse.follow` with which URLs in JSON are followed."""


class PageSteps:
    """The steps. Their only state between pages are keywords, schemes and rules of jobs."""

    def __init__(
        self,
        config: ParserConfig,
        clock: Clock,
        page_pass: PageCall,
        sniff: Sniff,
        classify: Classify,
        child_queue: ChildProcessQueue,
        rules: RuleEngine,
    ) -> None:
        self.config = config
        self.rules = rules
        self.schemes: SchemeRecords | None = None
        self.builder = RecordBuilder(config, clock, classify)
        self._page_pass = page_pass
        self._pass_options = config.pass_options
        self._sniff = sniff
        self._classify = classify
        self._child_queue = child_queue

    def update_job(self, job: m.CrawlJob) -> None:
        """A job is new, has changed or is deleted."""
        spec = spec_of(job)
        if self.schemes is None and spec.schemes is not None and not job.deleted:
            self.schemes = extension("scheme-records")()
        if self.schemes is not None:
            self.schemes.update_job(job)
        self.rules.update_job(job)
        self.builder.update_job(job.uid, spec)
        if not job.deleted and trafilatura_text.lacks_library(spec):
            log.error("parser: job %s: %s; it stores the main text by density", job.uid, trafilatura_text.MISSING)

    def _in_child(
        self, p: PageInProgress, task: Task[Out], payload: Callable[[bytes], bytes], use: Callable[[Out], None]
    ) -> Work:
        """A call that lets `use` have the answer of a child to what `payload` makes of the body. The body is in the
        queue until a child is free."""
        spooled = self._child_queue.spool(p.take_body())
        body_is_needed = any(step.problem for step in p.steps[p.at + 1 :])

        def request(body: bytes) -> bytes:
            if body_is_needed:
                p.body = body
            return payload(body)

        async def work() -> None:
            use(await self._child_queue.run(task, spooled, request))

        return work

    def requisite(self, p: PageInProgress) -> Answer:
        """Row of a requisite, and the requisites that a style names."""
        page, record = p.page, p.record
        record.outcome, record.reason, record.meta = m.Outcome.DROPPED, Reason.REQUISITE, note_of(page.context)
        limit = p.job.parse.requisites
        if page.content_type == STYLE and level_of(page.context) < MAX_LEVEL and limit:
            p.links = requisite_links(page, requisites_of_style(p.body, limit), limit)
        return None

    def not_modified(self, p: PageInProgress) -> Answer:
        """Row that keeps the stored copy."""
        p.record.reason = Reason.NOT_MODIFIED
        p.record.not_modified = True
        return None

    def size_and_digest(self, p: PageInProgress) -> Answer:
        """Length and SHA-256 of the body."""
        p.record.size_bytes = len(p.body)
        p.record.sha256 = hashlib.sha256(p.body).digest() if p.read is None else p.read.sha256
        return None

    def link_list(self, p: PageInProgress) -> Answer:
        """Links with their dates, in slices."""
        return self.builder.from_list(p)

    def encoding(self, p: PageInProgress) -> Answer:
        """Encoding; of long HTML by its start."""
        page, kind, read = p.page, p.kind, p.read
        if read is not None and read.certain:
            p.encoding = read.encoding
        elif kind is TEXT:
            p.encoding = encoding_of_text(p.body, page.charset, page.content_type or p.sniffed, self._classify)
        else:
            start = p.body if kind is HTML else p.body[: self.config.max_inline_bytes]
            p.encoding = encoding_of(start, page.charset, self._sniff_of(p), self._classify)
        return None

    def _sniff_of(self, p: PageInProgress) -> Sniff:
        """As a page thread has sniffed the whole body, and as this process does any part of it."""
        read, whole, sniff = p.read, p.body, self._sniff
        if read is None:
            return sniff
        return lambda body, charset: read.encoding if body is whole else sniff(body, charset)

    def page_pass(self, p: PageInProgress) -> Answer:
        """Title, metadata, text and links."""
        url, encoding, read = p.page.url, p.encoding, p.read
        if p.kind is HTML:
            passed = None
            if read is not None and read.encoding == encoding and read.main_text is p.main_text:
                passed = read.take()
            if passed is None:
                passed = self._page_pass(p.body, url, encoding, self._options(p))
            self.builder.from_pass(p, passed)
            return None
        use, options = partial(self.builder.from_pass, p), self._options(p)
        return self._in_child(p, PAGE, lambda body: payload_of(body, url, encoding, options), use)

    def _options(self, p: PageInProgress) -> PassOptions:
        return replace(self._pass_options, main_text=p.main_text)

    def pdf(self, p: PageInProgress) -> Answer:
        """Text, Markdown, metadata and links of a PDF; without a library the row has the reason."""
        limits, use = (self.config.max_text_bytes, self.config.max_links), partial(self.builder.from_document, p)
        read = self._in_child(p, PDF, lambda body: pdf_payload(body, *limits), use)

        async def work() -> None:
            try:
                await read()
            except ChildError as broken:
                if broken.reason != UNAVAILABLE:
                    raise
                use(DocumentContent(problem=f"not read: {broken.detail}"))

        return work

    def office(self, p: PageInProgress) -> Answer:
        """Metadata of an office file, then text and links by a child."""
        from nephila.parser.documents.office.metadata import read_office
        from nephila.parser.documents.office.task import OFFICE, office_kind, office_payload, with_text

        metadata = read_office(p.body)
        kind, limits = office_kind(p.body, metadata), (self.config.max_text_bytes, self.config.max_links)
        self.builder.from_document(p, metadata)
        if not kind:
            return None

        def use(document: DocumentContent) -> None:
            self.builder.from_document(p, with_text(metadata, document))

        return self._in_child(p, OFFICE, lambda body: office_payload(body, kind, *limits), use)

    def document(self, p: PageInProgress) -> Answer:
        """Text, metadata and links of other documents; each reader bounds itself."""
        config, parse, media_type = self.config, p.job.parse, p.page.content_type
        content = read_document(p.body_kind, media_type, p.body, p.encoding, config.max_text_bytes, config.max_links)
        if p.body_kind is BodyKind.JSON and JSON_LINKS not in parse.follow:
            content.links = []
        self.builder.from_document(p, content)
        return None

    def shell(self, p: PageInProgress) -> Answer:
        """Note on a page that scripts fill in."""
        if p.found.link_count <= SHELL_LINKS and is_shell(p.found.text, p.body):
            note(p.record, SHELL, "few words, and scripts: its content may need --render auto")
        return None

    def extra_links(self, p: PageInProgress) -> Answer:
        """Further kinds of links."""
        passed, encoding, kinds = p.found, p.encoding, kinds_of(p.job.parse, p.follow, p.page.rendered)
        if not kinds:
            return None
        if tree_fits(len(p.body), p.depth):
            self.builder.add_extra_links(p, extra_links_of(tree_of(p.body, encoding), passed.base, kinds, encoding))
            return None
        from nephila.parser.links import extra_links_child as child

        of_page = partial(child.payload_of, encoding=encoding, base=passed.base, kinds=kinds)
        return self._in_child(p, child.EXTRA_LINKS, of_page, partial(self.builder.add_extra_links, p))

    def main_text(self, p: PageInProgress) -> Answer:
        """Main text by trafilatura, if it finds one."""
        url, encoding, limit, lib = p.page.url, p.encoding, self.config.max_text_bytes, trafilatura_text
        p.found = NO_PASS

        def use(text: bytes) -> None:
            if text:
                p.record.structure = recoded(p.record.structure, bytes(p.record.text), text)
                p.record.text = text

        return self._in_child(p, lib.TRAFILATURA, lambda body: lib.payload_of(to_utf8(body, encoding), url, limit), use)

    def items(self, p: PageInProgress) -> Answer:
        """Items and links by the rule that matches the page."""
        if p.kind is PageKind.LIST:
            p.encoding = encoding_of_text(p.body, p.page.charset, p.page.content_type or p.sniffed, self._classify)
            if p.body.startswith(GZIP) and self.rules.applies_to(p.page):
                note(p.record, "rule_problems", "rules do not read a compressed list: fetch it without .gz")
                return None
        if p.kind is TEXT:
            p.depth = self._depth_of(p)
        p.found = NO_PASS
        return self.rules.read(p)

    def _depth_of(self, p: PageInProgress) -> int:
        """Greatest nesting depth of a document that is no HTML page: a rule may still ask for its tree."""
        body, tags = p.body, p.body.count(b"<")
        if tags <= MAX_DEPTH or len(body) > MAX_BYTES:
            return tags
        return self._page_pass(body, p.page.url, p.encoding, _NOTHING).depth

    def comparison(self, p: PageInProgress) -> Answer:
        """Hash of what is compared with the stored copy, without what the job ignores."""
        ignore, record = p.job.changes.ignore, p.record
        if ignore.only_fields and record.items:
            record.text_hash = hash_of_fields(record.items, ignore.only_fields)
            return None
        text, is_html = bytes(record.text), p.kind in _HTML
        if is_html and (ignore.selectors or not text):
            if p.kind is not HTML or not p.body or not tree_fits(len(p.body), p.depth):
                note(record, COMPARISON, f"selectors of changes.ignore are not applied: {_COSTLY_TREE}")
            else:
                options, url = self._options(p), p.page.url
                text = text_without(
                    p.body,
                    p.encoding,
                    ignore.selectors,
                    lambda body: self._page_pass(body, url, "utf-8", options),
                    p.job.parse.main_text == "all" or self.config.full_text,
                )
        if text or is_html:
            record.text_hash = hash_of_text(text, ignore.expressions)
        return None

    def scheme_item(self, p: PageInProgress) -> Answer:
        """Item of a page of a keyword scheme."""
        if self.schemes is not None:
            self.schemes.complete(p.record, p.links)
        return None

    def number_of_links(self, p: PageInProgress) -> Answer:
        """Number of links on a list of a directory, for its verdict."""
        if not p.record.depth and p.record.outcome is m.Outcome.STORED:
            pages = (links for links in p.links if links.source is not m.LinkSource.REQUISITE)
            note(p.record, "links", str(sum(len(links.fingerprints) // 16 for links in pages)))
        return None

    def captures(self, p: PageInProgress) -> Answer:
        """The responses that the browser captured."""
        note(p.record, "rendered", ", ".join(("document", *p.record.captures)))
        return None


Wanted = Callable[[ParserConfig, JobSpec, bool], bool]


class StepRow(NamedTuple):
    run: Callable[[PageSteps, PageInProgress], Answer]
    kinds: frozenset[PageKind]
    """Pages that take the step,"""
    only: str = ""
    """where a condition holds: for people,"""
    wanted: Wanted | None = None
    """and for the program: of settings, a job, and whether its page was rendered; None: always."""
    child: str = ""
    """When a child process does the work, for people; empty: never."""
    problem: str = ""
    """Entry of the metadata with the reason why the child failed; the page continues. The body is kept for such a step
    while another child has it. Empty: the page is a dead letter."""


def _has_extra_links(_: ParserConfig, job: JobSpec, rendered: bool) -> bool:
    return bool(kinds_of(job.parse, True, rendered))


def _uses_trafilatura(_: ParserConfig, job: JobSpec, rendered: bool) -> bool:
    return job.parse.main_text == trafilatura_text.LIBRARY and trafilatura_text.is_installed()


GZIP: Final = b"\x1f\x8b"
_NOTHING: Final = PassOptions(0, 0, main_text=False, agent="")
_ANY: Final = frozenset(PageKind)
_LIST: Final = frozenset((PageKind.LIST,))
_FREE: Final = frozenset((PageKind.REQUISITE, PageKind.NOT_MODIFIED))
_FETCHED: Final = _ANY - _FREE
_INLINE: Final = frozenset((PageKind.HTML,))
_HTML: Final = frozenset((PageKind.HTML, PageKind.LONG_HTML))
_DECODED: Final = _HTML | {PageKind.TEXT}
_COSTLY_TREE: Final = "above 256 KiB or 120 levels"
_COSTLY_RULE: Final = f"not bounded, slow, XML, or a page {_COSTLY_TREE}"

STEPS: Final[tuple[StepRow, ...]] = (
    StepRow(PageSteps.requisite, frozenset((PageKind.REQUISITE,))),
    StepRow(PageSteps.not_modified, frozenset((PageKind.NOT_MODIFIED,))),
    StepRow(PageSteps.size_and_digest, _FETCHED),
    StepRow(PageSteps.link_list, _LIST),
    StepRow(PageSteps.encoding, _DECODED),
    StepRow(PageSteps.page_pass, _HTML, child="above `max_inline_bytes`"),
    StepRow(PageSteps.pdf, frozenset((PageKind.PDF,)), child="always"),
    StepRow(PageSteps.office, frozenset((PageKind.OFFICE,)), child="always", problem="text_problem"),
    StepRow(PageSteps.document, frozenset((PageKind.TEXT, PageKind.FILE))),
    StepRow(PageSteps.shell, _INLINE, "rendered: no", lambda _, __, rendered: not rendered),
    StepRow(PageSteps.extra_links, _HTML, "`follow`, `requisites`", _has_extra_links, _COSTLY_TREE, "links_problem"),
    StepRow(PageSteps.main_text, _INLINE, "`mainText: trafilatura`", _uses_trafilatura, "always", "text_problem"),
    StepRow(
        PageSteps.items, _DECODED | _LIST, "`rules`", lambda _, job, *__: bool(job.rules), _COSTLY_RULE, "rule_problems"
    ),
    StepRow(
        PageSteps.comparison,
        _FETCHED - _LIST,
        "`changes.ignore`",
        lambda _, job, *__: ignores(job.changes.ignore),
        problem=COMPARISON,
    ),
    StepRow(PageSteps.scheme_item, _ANY - _LIST, "`schemes`", lambda _, job, *__: job.schemes is not None),
    StepRow(PageSteps.number_of_links, _ANY - _LIST, "`site`", lambda _, job, *__: job.site is not None),
    StepRow(PageSteps.captures, _ANY - _LIST, "rendered: yes", lambda _, __, rendered: rendered),
)
"""All steps in their order. README.md has them as a table (tests/rules/execution/test_parser_steps.py)."""
