"""Record and outlinks of a page, from what was read of it. No I/O.

Invariant: links are passed on only if the page, its header and its job allow it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nephila.kernel import messages as m
from nephila.kernel.documents.job_schema import NEAR_COPIES, JobSpec, MainTextName, Parse
from nephila.kernel.fragment_routes import ROUTE
from nephila.kernel.page_facts.facts import COMMENTS
from nephila.kernel.runtime.clock import Clock
from nephila.native import PagePass, recoded, simhash
from nephila.native.refresh import refresh_target
from nephila.parser.config import ParserConfig
from nephila.parser.documents.content import DocumentContent
from nephila.parser.in_progress import PageInProgress
from nephila.parser.links.directives import nofollow
from nephila.parser.links.extra_links import REQUISITE
from nephila.parser.links.link_list import (
    KIND_REFRESH,
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
from nephila.parser.links.requisites import requisite_links
from nephila.parser.lists.detection import read
from nephila.parser.page.charset import Classify
from nephila.parser.page.language import language_of
from nephila.parser.page.meta import to_json
from nephila.parser.page.text import spelled_text, text_hash

# A name of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
_STORED: Final = m.Outcome.STORED
MAX_LANG_CHARS: Final = 35
"""The longest language tag that RFC 5646 requires software to accept."""

FETCH_S = "fetch_s"
"""Entry of the metadata: seconds that the fetch took. It comes first, so it is read without the rest."""


def reads_main_text(job: JobSpec, config: ParserConfig) -> bool:
    """Whether the main text of the job's pages is used: in rows, for the place and the priority of links, to find
    near-copies. Without it `Record.text_hash` is of all visible text."""
    parse = job.parse
    stored = parse.main_text != "none" or config.full_text or job.links
    return stored or job.strategy == "best-first" or parse.near_copies != "store"


class RecordBuilder:
    """Builds records and outlinks. Its only state between pages are the keywords of jobs."""

    def __init__(self, config: ParserConfig, clock: Clock, classify: Classify) -> None:
        self._config = config
        self._clock = clock
        self._classify = classify
        self._relevance: dict[str, Relevance] = {}
        """Keywords by job, for best-first jobs that have some."""

    def update_job(self, uid: str, job: JobSpec) -> None:
        self._relevance.pop(uid, None)
        if job.strategy == "best-first" and job.keywords:
            self._relevance[uid] = Relevance(job.keywords)

    def from_pass(self, p: PageInProgress, passed: PagePass) -> None:
        """Fill in record and links from a page pass."""
        config, page, job, record = self._config, p.page, p.job, p.record
        p.found, p.depth = passed, passed.depth
        title, robots = passed.title, passed.robots
        record.title = title if len(title) <= config.max_title_chars else title[: config.max_title_chars]
        # A page without main text - a front page of links, a form - keeps all its text.
        main_text = job.parse.main_text
        text = passed.main_text or passed.text
        record.lang = (passed.lang or language_of(text))[:MAX_LANG_CHARS]
        record.text_hash = passed.text_hash
        set_simhash(record, job, text)
        if main_text == "all" or config.full_text:
            record.text = passed.text
            record.structure = recoded(passed.structure, text, passed.text) if passed.main_text else passed.structure
        elif main_text != "none":
            record.text, record.structure = text, passed.structure
        record.meta = to_json(
            {
                FETCH_S: _fetch_seconds(page),
                "encoding": p.encoding,
                "description": passed.description,
                "canonical": passed.canonical,
                "robots": robots,
                "x_robots_tag": page.robots_tag,
                "refresh": _refresh_target(page) or passed.refresh,
                "sniffed_type": p.sniffed,
                "links_left_out": str(passed.links_left_out or ""),
                COMMENTS: self._comments(comments, main_text) if (comments := passed.comments) else "",
            },
            passed.meta,
            config.max_meta_chars,
            config.max_meta_entries,
        )
        p.follow = self._may_follow(page, job, robots)
        if passed.link_count:
            self._own_links(p, title, text)
        if page.refresh:
            _add_refresh(p)

    def _comments(self, comments: bytes, main_text: MainTextName) -> str:
        """The comments of an article, unless its text has them."""
        if main_text != "density" or self._config.full_text:
            return ""
        return comments.decode()[: self._config.max_comments_chars]

    def _own_links(self, p: PageInProgress, title: str, text: bytes) -> None:
        """The packed buffers of the native core as a message; nothing is unpacked."""
        page, passed, parse = p.page, p.found, p.job.parse
        links = m.Outlinks(
            job=page.job,
            parent_key=page.url_key,
            parent_url=page.url,
            depth=page.depth + 1,
            parent_priority=page.priority,
            context=link_context(page),
            fingerprints=passed.fingerprints,
            urls=passed.link_urls,
            url_ends=passed.link_ends,
            host_spans=passed.host_spans,
            anchors=passed.anchors,
            anchor_ends=passed.anchor_ends,
            flags=passed.link_flags,
        )
        if (relevance := self._relevance.get(page.job)) is not None:
            links.priorities = relevance.priorities(title, text, links)
        if p.job.links:
            p.record.links = links
        if parse.nofollow == "skip":
            links = without_nofollow(links)
        if p.follow and links.flags:
            p.links = (links,)

    def add_extra_links(self, p: PageInProgress, more: list[tuple[int, list[UnresolvedLink]]]) -> None:
        """Add links to a page's own. Requisites come first: a picture that is also linked is archived whole."""
        parse = p.job.parse
        requisites = [entry for flag, entries in more if flag == REQUISITE for entry in entries]
        others = [group for group in more if group[0] != REQUISITE]
        p.links = [
            *requisite_links(p.page, requisites, parse.requisites),
            *p.links,
            *self._from_extra_links(p.page, parse, p.found, others),
        ]

    def _from_extra_links(
        self, page: m.Page, parse: Parse, passed: PagePass, more: list[tuple[int, list[UnresolvedLink]]]
    ) -> Iterator[m.Outlinks]:
        """Extra links of the requested kinds, without those that the page pass has found."""
        fingerprints, relevance = passed.fingerprints, self._relevance.get(page.job)
        keys = {fingerprints[at : at + 16] for at in range(0, len(fingerprints), 16)}
        for flag, entries in more:
            if flag & 1 and parse.nofollow == "skip":
                continue
            found_rows = run_to_end(resolve(page.url, entries, routes=ROUTE in parse.follow))
            rows = [row for row in found_rows if row.fingerprint not in keys]
            if rows:
                keys.update(row.fingerprint for row in rows)
                links = pack(page, rows, page.depth + 1, m.LinkSource.UNSPECIFIED, flag)
                if relevance is not None:
                    links.priorities = relevance.priorities(passed.title, passed.main_text or passed.text, links)
                yield links

    def from_document(self, p: PageInProgress, content: DocumentContent) -> None:
        """Fill in record and links from a document."""
        config, page, job, record = self._config, p.page, p.job, p.record
        record.title = content.title[: config.max_title_chars]
        record.text, record.structure = content.text, content.structure
        record.text_hash = text_hash(content.text)
        set_simhash(record, job, content.text)
        record.lang = (content.lang or language_of(content.text))[:MAX_LANG_CHARS]
        entries = {FETCH_S: _fetch_seconds(page), "encoding": p.encoding, "sniffed_type": p.sniffed}
        entries |= {"x_robots_tag": page.robots_tag, "author": content.author, "problem": content.problem}
        entries |= {"published": content.published, "modified": content.modified, **content.facts}
        record.meta = to_json(entries, [], config.max_meta_chars, config.max_meta_entries)
        rows = run_to_end(resolve(page.url, content.entries())) if content.links else []
        depth = page.depth + 1
        if job.links and rows:
            record.links = pack(page, rows, depth, m.LinkSource.UNSPECIFIED)
        p.follow = self._may_follow(page, job, "")
        if p.follow:
            starts = range(0, len(rows), LINKS_PER_MESSAGE)
            p.links = [pack(page, rows[at : at + LINKS_PER_MESSAGE], depth, m.LinkSource.UNSPECIFIED) for at in starts]
        if page.refresh:
            _add_refresh(p)

    def from_list(self, p: PageInProgress) -> Iterator[m.Outlinks | None]:
        """A sitemap or feed: fills in a record without text and yields messages of at most LINKS_PER_MESSAGE links;
        None between slices."""
        config, page, job, record = self._config, p.page, p.job, p.record
        assert p.form is not None
        listing = yield from read(p.form, p.body, page.url, page.charset, config, self._clock.now(), self._classify)
        rows = yield from resolve(page.url, listing.entries)
        record.text_hash = hash_of_links(rows)
        record.title = spelled_text(listing.title)[: config.max_title_chars]
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


def _refresh_target(page: m.Page) -> str:
    """The URL of the header Refresh as written: of several ones the first with a URL, as the HTML standard has it."""
    return next(filter(None, map(refresh_target, page.refresh.split("\n"))), "") if page.refresh else ""


def _add_refresh(p: PageInProgress) -> None:
    """Follow the header Refresh as `<meta http-equiv=refresh>` is followed; its base is the URL of the page."""
    page, target = p.page, _refresh_target(p.page)
    rows = run_to_end(resolve(page.url, [UnresolvedLink(target)])) if target and p.follow else []
    if rows:
        p.links = [*p.links, pack(page, rows, page.depth + 1, m.LinkSource.UNSPECIFIED, KIND_REFRESH)]


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
        outcome=_STORED,
        status=page.status,
        depth=page.depth,
        content_type=page.content_type,
        fetched_at=page.fetched_at,
        etag=page.etag,
        last_modified=page.last_modified,
        context=page.context,
        rendered=page.rendered,
        final_url=page.final_url,
        captures=sorted({capture.kind for capture in page.captures}) if page.captures else [],
    )


def set_simhash(record: m.Record, job: JobSpec, text: bytes) -> None:
    """Set the simhash of the text and what the job does with near-copies, if it compares texts: the hash of 80 KB of
    text costs a fifth of the page."""
    wish = NEAR_COPIES[job.parse.near_copies]
    if wish and (text_simhash := simhash(text)):
        record.simhash = text_simhash.to_bytes(8, "big")
        record.near_copies = wish
