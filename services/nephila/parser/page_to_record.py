"""Record and outlinks of a page, for every kind of document. No I/O.

Invariants: work without a known bound (PDF, page pass of a very long page) is done elsewhere and only its result is
used here; links are passed on only if the page, its header and its job allow it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

from nephila.kernel import messages as m
from nephila.kernel.documents.job_schema import NEAR_COPIES, JobSpec, Parse
from nephila.kernel.fragment_routes import ROUTE
from nephila.kernel.reasons.table import Reason
from nephila.kernel.requisites import MAX_LEVEL, level_of, note_of
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.shells import SHELL, SHELL_LINKS, is_shell
from nephila.native import simhash
from nephila.parser.config import ParserConfig
from nephila.parser.documents.content import Content
from nephila.parser.documents.read import TEXTS, read_document
from nephila.parser.links.directives import nofollow
from nephila.parser.links.extra_links import REQUISITE, extra_links_of, kinds_of, tree_of
from nephila.parser.links.link_list import (
    LINKS_PER_MESSAGE,
    UnresolvedLink,
    hash_of_links,
    link_context,
    list_messages,
    pack,
    resolve,
    run_to_end,
    without_nofollow,
)
from nephila.parser.links.relevance import Relevance
from nephila.parser.links.requisites import requisite_links, requisites_of_style
from nephila.parser.lists.detection import ListForm, read
from nephila.parser.markdown import page_markdown
from nephila.parser.page.body_kind import BodyKind
from nephila.parser.page.charset import Classify, Sniff, classify, encoding_of, encoding_of_text
from nephila.parser.page.html_tree import MAX_BYTES, MAX_DEPTH, tree_fits
from nephila.parser.page.meta import note, to_json
from nephila.parser.page.page_pass import PageCall, PageFacts, PagePass
from nephila.parser.page.text import text_hash

STYLE: Final = "text/css"
JSON_LINKS: Final = "json"
"""Value of `parse.follow` with which URLs in JSON are followed."""
MAX_LANG_CHARS: Final = 35
"""The longest language tag that RFC 5646 requires software to accept."""

FETCH_S = "fetch_s"
"""Entry of the metadata: seconds that the fetch took. It comes first, so it is read without the rest."""
Links = Sequence[m.Outlinks]


class RecordBuilder:
    """Builds records and outlinks. Its only state between pages are the keywords of jobs."""

    def __init__(
        self, config: ParserConfig, clock: Clock, page_pass: PageCall, sniff: Sniff, classify: Classify = classify
    ) -> None:
        self._config = config
        self._clock = clock
        self._page_pass = page_pass
        self._sniff = sniff
        self._classify = classify
        self._relevance: dict[str, Relevance] = {}
        """Keywords by job, for best-first jobs that have some."""

    def update_job(self, uid: str, job: JobSpec) -> None:
        """Apply a new or changed job."""
        self._relevance.pop(uid, None)
        if job.strategy == "best-first" and job.keywords:
            self._relevance[uid] = Relevance(job.keywords)

    def parse(
        self, page: m.Page, job: JobSpec, body: bytes, kind: BodyKind, sniffed: str
    ) -> tuple[Links, m.Record, PageFacts | None, PagePass | None]:
        """Record and links of a page that is parsed in this process. O(bytes).

        `PageFacts` is for rules; None: no rule can read the page. The page pass is returned if a child process has yet
        to extract the extra links.
        """
        record = record_of(page)
        if page.not_modified:
            record.reason = Reason.NOT_MODIFIED
            record.not_modified = True
            return (), record, None, None
        set_size_and_digest(record, body)
        config = self._config
        if kind is BodyKind.HTML:
            encoding = self.encoding_of(page, body)
            found = self._page_pass(
                body,
                page.url,
                encoding,
                max_links=config.max_links,
                max_text_bytes=config.max_text_bytes,
                agent=config.robots_agent,
            )
            links, facts = self.from_pass(page, job, record, found, encoding, sniffed)
            if found.link_count <= SHELL_LINKS and not page.rendered and is_shell(found.text, body):
                note(record, SHELL, "few words, and scripts: its content may need --render auto")
            if config.markdown:
                record.markdown = page_markdown(body, encoding, found)
            kinds = kinds_of(job.parse, facts.follow, page.rendered)
            if not kinds:
                return links, record, facts, None
            if not tree_fits(len(body), found.depth):
                return links, record, facts, found
            entries = extra_links_of(tree_of(body, encoding), found.base, kinds)
            return self.with_extra_links(page, job, links, found, entries), record, facts, None
        encoding = (
            encoding_of_text(body, page.charset, page.content_type or sniffed, self._classify) if kind in TEXTS else ""
        )
        content = read_document(kind, page.content_type, body, encoding, config.max_text_bytes, config.max_links)
        if kind is BodyKind.JSON and JSON_LINKS not in job.parse.follow:
            content.links = []
        links = self.from_document(page, job, record, content, {"encoding": encoding, "sniffed_type": sniffed})
        follow = self._may_follow(page, job, "")
        if not encoding:
            return links, record, None, None
        return (
            links,
            record,
            PageFacts(encoding, self._depth_of(page, body, encoding) if job.rules else 0, follow),
            None,
        )

    def _depth_of(self, page: m.Page, body: bytes, encoding: str) -> int:
        """Greatest nesting depth of a document that is no HTML page: a rule may still ask for its tree."""
        tags = body.count(b"<")
        if tags <= MAX_DEPTH or len(body) > MAX_BYTES:
            return tags
        found = self._page_pass(body, page.url, encoding, max_links=0, max_text_bytes=0, agent="")
        return found.depth

    def encoding_of(self, page: m.Page, body: bytes) -> str:
        """WHATWG name of the encoding of an HTML page; `body` may be its start."""
        return encoding_of(body, page.charset, self._sniff, self._classify)

    def from_pass(
        self, page: m.Page, job: JobSpec, record: m.Record, found: PagePass, encoding: str, sniffed: str
    ) -> tuple[Links, PageFacts]:
        """Fill in a record from a page pass; returns the outlinks."""
        config = self._config
        title = found.title
        robots = found.robots
        record.title = title if len(title) <= config.max_title_chars else title[: config.max_title_chars]
        record.lang = found.lang[:MAX_LANG_CHARS]
        main = found.main_text
        # A page without main text - a front page of links, a form - keeps all its text.
        wanted = job.parse.main_text
        text = main or found.text
        record.text_hash = text_hash(text)
        set_simhash(record, job, text)
        if wanted == "all" or config.full_text:
            record.text = found.text
        elif wanted != "none":
            record.text = text
        record.meta = to_json(
            {
                FETCH_S: _fetch_seconds(page),
                "encoding": encoding,
                "description": found.description,
                "canonical": found.canonical,
                "robots": robots,
                "x_robots_tag": page.robots_tag,
                "refresh": found.refresh,
                "sniffed_type": sniffed,
                "links_left_out": str(found.links_left_out or ""),
            },
            found.meta,
            config.max_meta_chars,
            config.max_meta_entries,
        )
        follow = self._may_follow(page, job, robots)
        facts = PageFacts(encoding, found.depth, follow)
        if not found.link_count:
            return (), facts
        links = _outlinks(page, found)
        if (relevance := self._relevance.get(page.job)) is not None:
            links.priorities = relevance.priorities(title, text, links)
        if job.links:
            record.links = links
        if job.parse.nofollow == "skip":
            links = without_nofollow(links)
        return (links,) if follow and links.flags else (), facts

    def with_extra_links(
        self,
        page: m.Page,
        job: JobSpec,
        links: Links,
        found: PagePass,
        more: list[tuple[int, list[UnresolvedLink]]],
    ) -> Links:
        """All links of a page. Requisites come first: a picture that is also linked is archived whole."""
        parse = job.parse
        requisites = [entry for flag, entries in more if flag == REQUISITE for entry in entries]
        others = [one for one in more if one[0] != REQUISITE]
        return [
            *requisite_links(page, requisites, parse.requisites),
            *links,
            *self._from_extra_links(page, parse, found, others),
        ]

    def from_requisite(self, page: m.Page, job: JobSpec, body: bytes) -> tuple[Links, m.Record]:
        """The row of a requisite, and the requisites of a style."""
        record = record_of(page)
        record.outcome, record.reason, record.meta = m.Outcome.DROPPED, Reason.REQUISITE, note_of(page.context)
        limit = job.parse.requisites
        if page.content_type != STYLE or level_of(page.context) >= MAX_LEVEL or not limit:
            return (), record
        return requisite_links(page, requisites_of_style(body, limit), limit), record

    def _from_extra_links(
        self, page: m.Page, parse: Parse, found: PagePass, more: list[tuple[int, list[UnresolvedLink]]]
    ) -> Iterator[m.Outlinks]:
        """Extra links of the requested kinds, without those that the page pass has found."""
        known, relevance = found.fingerprints, self._relevance.get(page.job)
        keys = {known[at : at + 16] for at in range(0, len(known), 16)}
        for flag, entries in more:
            if flag & 1 and parse.nofollow == "skip":
                continue
            found_rows = run_to_end(resolve(page.url, entries, routes=ROUTE in parse.follow))
            rows = [row for row in found_rows if row.fingerprint not in keys]
            if rows:
                keys.update(row.fingerprint for row in rows)
                links = pack(page, rows, page.depth + 1, m.LinkSource.UNSPECIFIED, flag)
                if relevance is not None:
                    links.priorities = relevance.priorities(found.title, found.main_text or found.text, links)
                yield links

    def from_document(
        self, page: m.Page, job: JobSpec, record: m.Record, content: Content, entries: dict[str, str]
    ) -> Links:
        """Fill in a record from a document; returns the outlinks."""
        config = self._config
        record.title = content.title[: config.max_title_chars]
        record.text = content.text
        record.text_hash = text_hash(content.text)
        set_simhash(record, job, content.text)
        record.lang = content.lang[:MAX_LANG_CHARS]
        entries |= {"x_robots_tag": page.robots_tag, "author": content.author, "problem": content.problem}
        entries |= {"published": content.published, "modified": content.modified, **content.facts}
        record.meta = to_json(
            {FETCH_S: _fetch_seconds(page), **entries}, [], config.max_meta_chars, config.max_meta_entries
        )
        rows = run_to_end(resolve(page.url, content.entries())) if content.links else []
        depth = page.depth + 1
        if job.links and rows:
            record.links = pack(page, rows, depth, m.LinkSource.UNSPECIFIED)
        if not self._may_follow(page, job, ""):
            return ()
        starts = range(0, len(rows), LINKS_PER_MESSAGE)
        return [pack(page, rows[at : at + LINKS_PER_MESSAGE], depth, m.LinkSource.UNSPECIFIED) for at in starts]

    def from_list(
        self, page: m.Page, job: JobSpec, record: m.Record, body: bytes, form: ListForm
    ) -> Iterator[m.Outlinks | None]:
        """A sitemap or feed: fills in a record without text and yields messages of at most LINKS_PER_MESSAGE links;
        None between slices."""
        config = self._config
        set_size_and_digest(record, body)
        listing = yield from read(form, body, page.url, page.charset, config, self._clock.now(), self._classify)
        rows = yield from resolve(page.url, listing.entries)
        record.text_hash = hash_of_links(rows)
        record.title = listing.title[: config.max_title_chars]
        entries = {"list": listing.form, "links": str(len(rows)), "problem": listing.problem}
        entries["x_robots_tag"] = page.robots_tag
        entries |= {name: str(len(urls)) for name in ("images", "videos") if (urls := getattr(listing, name))}
        record.meta = to_json(entries, [], config.max_meta_chars, config.max_meta_entries)
        if job.links and rows:
            (record.links,) = list_messages(page, listing, rows, len(rows))
        if self._may_follow(page, job, ""):
            yield from list_messages(page, listing, rows)

    def _may_follow(self, page: m.Page, job: JobSpec, robots: str) -> bool:
        """Whether the links of a page may be followed; `robots`: the directives of its <meta>."""
        if not robots and not page.robots_tag:
            return True
        if not job.politeness.respect_robots:
            return True
        token = self._config.robots_agent
        return not (nofollow(robots, token) or nofollow(page.robots_tag, token))


def _fetch_seconds(page: m.Page) -> str:
    return f"{page.took_s:.3f}" if page.took_s else ""


def record_of(page: m.Page) -> m.Record:
    """A stored row with the facts of the fetch; the facts of the body are filled in later."""
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
        context=page.context,
        rendered=page.rendered,
        captures=sorted({capture.kind for capture in page.captures}) if page.captures else [],
    )


def set_size_and_digest(record: m.Record, body: bytes) -> None:
    """Set length and digest of the body."""
    record.size_bytes = len(body)
    record.sha256 = hashlib.sha256(body).digest()


def set_simhash(record: m.Record, job: JobSpec, text: bytes) -> None:
    """Set the simhash of the text and what the job does with near-copies, if it compares texts: the hash of 80 KB of
    text costs a fifth of the page."""
    wish = NEAR_COPIES[job.parse.near_copies]
    if wish and (found := simhash(text)):
        record.simhash = found.to_bytes(8, "big")
        record.near_copies = wish


def _outlinks(page: m.Page, found: PagePass) -> m.Outlinks:
    """The packed buffers of the native core as a message; nothing is unpacked."""
    return m.Outlinks(
        job=page.job,
        parent_key=page.url_key,
        parent_url=page.url,
        depth=page.depth + 1,
        parent_priority=page.priority,
        context=link_context(page),
        fingerprints=found.fingerprints,
        urls=found.link_urls,
        url_ends=found.link_ends,
        host_spans=found.host_spans,
        anchors=found.anchors,
        anchor_ends=found.anchor_ends,
        flags=found.link_flags,
    )
