"""The operations of the rule studio, and stored bodies: pages are found here, a child process works on drafts.

A draft comes with each request. Kept between two of them: the last pages fetched from the web, in memory; the index of
stored bodies; the child process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace
from nephila.kernel.messages import ParseRule
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.seeds import url_errors
from nephila.native import parse_url
from nephila.storage.rows import CONTENT_TYPE, FETCHED_AT, SHA256, URL
from nephila_rules import working_copy
from nephila_rules.apply import extract_stored
from nephila_rules.fixtures import files_of
from nephila_rules.induction.rule_text import canonical
from nephila_rules.runtime import load
from nephila_rules.runtime.selectors import compiled
from nephila_rules.stored_bodies import Place, StoredBodies
from nephila_rules.stored_pages import StoredPage
from nephila_rules.studio import rule
from nephila_rules.studio.browser_steps import browser_of
from nephila_rules.studio.draft import Draft
from nephila_rules.studio.reopened import reopened
from nephila_rules.studio.styled.pieces import Pieces
from nephila_rules.studio.work import PageBody, StudioProcess, Work, body_of
from nephila_stores.formats.markdown_file import markdown_text, row_markdown

from nephila_control import capability_types, job_types, requests, screen_types
from nephila_control import studio_types as types
from nephila_control.api import Control, NotFound
from nephila_control.backend import Backend
from nephila_control.capabilities import capabilities
from nephila_control.part import OperationPart, Shared
from nephila_control.rule_difference import rule_difference
from nephila_control.stored_rows import row_of_url
from nephila_control.studio_files import StudioFiles

ROWS_ELSEWHERE: Final = (
    "items of stored pages are written to nephila.db of a directory, and the rows of this program are in a database; "
    "pages that are fetched from now on are read by the rule once it is applied"
)
OTHERS: Final = 20
"""Other pages that a rule is tried on."""
FIXTURES: Final = 3
"""Pages that are stored beside a rule."""
MAX_READY_BYTES: Final = 32 << 20
"""Bodies that were read and stay in memory: each step looks at the same pages."""
LOOKED_AT: Final = 20_000
"""URLs that a pattern is tried on."""
MAX_FETCHED: Final = 32
RENDERINGS: Final = 2
"""Pages rendered at once: each is a browser of its own."""
MAX_FETCHED_BYTES: Final = 64 << 20
LISTED: Final = 8
"""URLs of a sample."""
LINKS_EXPLAINED: Final = 200
Fetched = tuple[str, bytes]
"""URL, and how it was rendered (`Draft.rendering`)."""


class ReadyPage(NamedTuple):
    """A page with the message that the child process gets for it."""

    page: StoredPage
    body: PageBody


class StudioOperations(OperationPart):
    def __init__(self, backend: Backend, shared: Shared, whole: Control) -> None:
        super().__init__(backend, shared, whole)
        self._extracting = asyncio.Lock()
        self._process = StudioProcess()
        self._bodies = StoredBodies(backend.rows if isinstance(backend.rows, Path) else None)
        self._fetched: OrderedDict[Fetched, StoredPage] = OrderedDict()
        self._rendering = 0
        self._files = StudioFiles(backend.single_fetches, self._process, backend.clock)
        self._ready: OrderedDict[Place, ReadyPage] = OrderedDict()

    async def get_capabilities(self, request: requests.Empty) -> capability_types.Capabilities:
        return await asyncio.to_thread(self._capabilities)

    def _capabilities(self) -> capability_types.Capabilities:
        has_bodies, has_working_copy = bool(self._bodies.urls()[0]), bool(self._working_copy())
        entries = capabilities(self._backend, has_bodies=has_bodies, has_working_copy=has_working_copy)
        return capability_types.Capabilities(capabilities=entries)

    # ---- pages

    async def list_studio_pages(self, request: types.ListStudioPages) -> types.StudioPages:
        urls, complete = await asyncio.to_thread(self._urls)
        matches = [url for url in urls if request.search.lower() in url.lower()]
        return types.StudioPages(urls=matches[: request.limit], total=len(matches), complete=complete)

    async def get_body(self, request: screen_types.GetBody) -> screen_types.Body:
        with url_errors(request.url):
            url = parse_url(request.url).href
        return await asyncio.to_thread(self._body, request, url)

    def _body(self, request: screen_types.GetBody, url: str) -> screen_types.Body:
        if request.form == "markdown":
            return self._markdown(request, url)
        page = next((page for name in dict.fromkeys((request.url, url)) if (page := self._bodies.page(name))), None)
        if page is None:
            raise NotFound(
                f"no body of {request.url[:200]!a} is stored here: crawl with --keep-raw or --format sqlite,warc"
            )
        return _part(request, page.url, page.content_type, page.fetched_at, page.document.source)

    def _markdown(self, request: screen_types.GetBody, url: str) -> screen_types.Body:
        rows = self._backend.rows
        for name in dict.fromkeys((request.url, url)):
            row = row_of_url(rows, name)
            if row is not None and row[SHA256]:
                at = datetime.fromisoformat(row[FETCHED_AT]).timestamp() if row[FETCHED_AT] else 0.0
                text = row_markdown(row) or markdown_text(row, "")
                return _part(request, row[URL], row[CONTENT_TYPE], at, text)
        raise NotFound(f"no page {request.url[:200]!a} is stored here")

    async def open_studio_page(self, request: types.OpenStudioPage) -> types.StudioDraft:
        document = self._rule_named(request.rule) if request.rule else None
        named = request.url
        if document is not None and not named:
            named = await asyncio.to_thread(self._first_page, document)
        with url_errors(named):
            url = parse_url(named).href
        if request.source != "stored":
            page = await self._fetch(Draft(url, rendered=request.source == "rendered"))
        else:
            page = (await asyncio.to_thread(self._page, named, url)).page
        if document is not None:
            draft = reopened(document, page.url)
        else:
            offered = {offer.kind: offer.pattern for offer in rule.patterns(page.url, [])}
            draft = Draft(page.url, name=rule.name_of(page.url), pattern=offered.get("pages", offered["page"]))
        return types.StudioDraft(draft=replace(draft, job=request.job, rendered=request.source == "rendered"))

    def _rule_named(self, name: str) -> load.RuleDocument:
        current = self._backend.rules.get(name)
        if current is None or current.deleted:
            raise NotFound(f"no rule {name[:100]!r} is in effect here")
        return load.from_text(current.document)

    def _first_page(self, document: load.RuleDocument) -> str:
        url = next((url for url in islice(self._urls()[0], LOOKED_AT) if document.rule.matches(url)), "")
        if not url:
            raise UserError(f"no stored page is for the rule {document.name!r}; name the URL of a page")
        return url

    async def render_studio_page(self, request: types.RenderStudioPage) -> types.StudioDraft:
        draft = types.draft_of(request.draft)
        with url_errors(draft.url):
            rendered = replace(draft, url=parse_url(draft.url).href, rendered=True)
        before: ReadyPage | None = None
        with contextlib.suppress(NotFound):  # it is not in memory any more
            before = await asyncio.to_thread(self._shown, draft)
        page = await self._fetch(rendered)
        changed: Draft | None = replace(rendered, url=page.url)
        if before is not None and page.url == draft.url:
            work = Work("moved", rendered, [body_of(page), before.body])
            changed = (await asyncio.to_thread(self._process.call, work)).draft
        return types.StudioDraft(draft=changed or rendered)

    async def _fetch(self, draft: Draft) -> StoredPage:
        """Fetches the page of the draft, plain or rendered, and keeps it in memory."""
        if not draft.rendered:
            page = await self._backend.fetch(draft.url)
        elif self._rendering >= RENDERINGS:
            raise UserError(f"{RENDERINGS} pages are being rendered, the most at once; try it again in some seconds")
        else:
            browser = browser_of(draft)
            self._rendering += 1
            try:
                page = await self._backend.fetch(draft.url, browser)
            finally:
                self._rendering -= 1
        self._keep(page, draft.rendering)
        return page

    def _keep(self, page: StoredPage, rendering: bytes) -> None:
        self._fetched.pop((page.url, rendering), None)
        self._fetched[page.url, rendering] = page
        while len(self._fetched) > MAX_FETCHED or (
            len(self._fetched) > 1 and sum(len(fetched.body) for fetched in self._fetched.values()) > MAX_FETCHED_BYTES
        ):
            self._fetched.popitem(last=False)

    def _urls(self) -> tuple[list[str], bool]:
        urls, complete = self._bodies.urls()
        fetched = dict.fromkeys(url for url, _ in list(self._fetched))  # another thread may add one
        return [*fetched, *(url for url in urls if url not in fetched)], complete

    def _shown(self, draft: Draft) -> ReadyPage:
        """Returns the page of a draft; a rendered one after as many of its steps as possible. Raises `NotFound`."""
        if not draft.rendered:
            return self._page(draft.url)
        rendering = self._rendered(draft.url, draft)
        if rendering is None:
            raise NotFound(f"the rendered page {draft.url[:200]!a} is not in memory any more; render it again")
        return ReadyPage(rendering[0], body_of(rendering[0]))

    def _rendered(self, url: str, draft: Draft) -> tuple[StoredPage, int] | None:
        """Returns the page with the number of steps that it has seen."""
        for count in range(len(draft.steps), -1, -1):
            page = self._fetched.get((url, replace(draft, steps=draft.steps[:count]).rendering))
            if page is not None:
                return page, count
        return None

    def _page(self, *urls: str) -> ReadyPage:
        for url in urls:
            if (ready := self._ready_page(url)) is not None:
                return ready
        raise NotFound(
            f"the body of {urls[0][:200]!a} is not stored here; open it from the web, or crawl with --keep-raw or "
            "--format sqlite,warc"
        )

    def _ready_page(self, url: str, draft: Draft | None = None) -> ReadyPage | None:
        """Prefers the rendering of the draft over the stored page."""
        rendered = self._rendered(url, draft) if draft is not None and draft.rendered else None
        fetched = rendered[0] if rendered is not None else self._fetched.get((url, b""))
        if fetched is not None:
            return ReadyPage(fetched, body_of(fetched))
        key = self._bodies.place(url)
        ready = self._ready.get(key) if key is not None else None
        if ready is not None or key is None:
            return ready
        page = self._bodies.page(url)
        if page is None:
            return None
        ready = self._ready[key] = ReadyPage(page, body_of(page))
        with contextlib.suppress(KeyError):  # another thread may drop the same one
            while sum(len(entry.page.body) for entry in list(self._ready.values())) > MAX_READY_BYTES:
                self._ready.popitem(last=False)
        return ready

    def _bodies_of(self, draft: Draft) -> list[ReadyPage]:
        """Returns the page of the draft, the pages with picks, then others that the pattern matches."""
        current = self._shown(draft)
        picks = (pick for field in draft.fields for pick in field.picks)
        named = dict.fromkeys(pick.url for pick in picks if pick.url != current.page.url)
        others = self._matching(draft.pattern, self._urls()[0])
        bodies = [current]
        for url in dict.fromkeys((*named, *others)):
            if len(bodies) > max(OTHERS, len(named)):
                break
            ready = self._ready_page(url, draft) if url != current.page.url else None
            if ready is not None:
                bodies.append(ready)
        return bodies

    def _matching(self, pattern: str, urls: Iterable[str]) -> list[str]:
        try:
            expression = compiled("regex", pattern or ".")
        except ValueError:
            return []
        return [url for url in islice(urls, LOOKED_AT) if expression.search(url)]

    # ---- the draft

    async def studio_step(self, request: types.StudioStep) -> types.StudioDraft:
        draft = types.draft_of(request.draft)

        def work() -> Draft | None:
            return self._process.call(Work("step", draft, self._payload(draft), request.step, request.node)).draft

        changed = await asyncio.to_thread(work)
        if changed is None:
            raise UserError("the step gave no draft")
        return types.StudioDraft(draft=changed)

    def _payload(self, draft: Draft) -> list[PageBody]:
        return [ready.body for ready in self._bodies_of(draft)]

    async def studio_frame(self, request: types.StudioFrameOf) -> types.StudioFrame:
        draft = types.draft_of(request.draft)
        body = (await asyncio.to_thread(self._shown, draft)).body
        notes = await self._notes(draft, body) if request.links else {}
        if request.styled:
            return await self._styled(draft, body, notes)
        result = await asyncio.to_thread(self._process.call, Work("frame", draft, [body], notes=notes))
        return types.StudioFrame(html=result.html, whole=result.whole)

    async def _styled(self, draft: Draft, body: PageBody, notes: dict[int, tuple[str, bool]]) -> types.StudioFrame:
        result = await asyncio.to_thread(self._process.call, Work("styled", draft, [body], notes=notes))
        pieces = result.pieces or Pieces()
        return types.StudioFrame(html=self._files.listed(body.url, body.body, pieces), whole=result.whole)

    async def studio_file(self, request: types.GetStudioFile) -> types.StudioFile:
        return await self._files.file(request.page, request.number)

    async def _notes(self, draft: Draft, body: PageBody) -> dict[int, tuple[str, bool]]:
        """Maps each link to the reason why the job of the draft follows it or not."""
        links = (await asyncio.to_thread(self._process.call, Work("links", draft, [body]))).links
        notes: dict[str, tuple[str, bool]] = {"": ("no address that can be crawled", False)}
        for url in dict.fromkeys(link.url for link in links if link.url):
            if len(notes) > LINKS_EXPLAINED:
                break
            notes[url] = await self._note(url, draft.job)
        return {link.node: notes[link.url] for link in links if link.url in notes}

    async def _note(self, url: str, job: str) -> tuple[str, bool]:
        try:
            explanation = (await self.explain(job_types.ExplainUrl(url=url, job=job))).explanation
        except UserError as error:
            return str(error)[:300], False
        if not explanation.scope.admitted:
            return f"out of scope: {explanation.scope.rule}"[:300], False
        if explanation.robots is not None and not explanation.robots.allowed:
            return f"robots.txt: {explanation.robots.rule}"[:300], False
        return f"followed: {explanation.scope.rule}"[:300], True

    async def studio_view(self, request: types.OfDraft) -> types.StudioView:
        return await asyncio.to_thread(self._view, types.draft_of(request.draft))

    def _view(self, draft: Draft) -> types.StudioView:
        pages = self._bodies_of(draft)
        view = self._process.call(Work("view", draft, [ready.body for ready in pages])).view
        if view is None:
            raise UserError("the work gave nothing to see")
        urls = self._urls()[0]
        matching = self._matching(draft.pattern, urls)
        host, own = urlsplit(draft.url).netloc, set(matching)
        others = [url for url in urls[:LOOKED_AT] if url not in own and urlsplit(url).netloc == host]
        named = [pick.url for field in draft.fields for pick in field.picks]
        fields = [
            types.StudioField(
                name=field.name,
                here=seen.here,
                filled=sum(any(item.get(field.name) for item in row.items) for row in view.rows),
            )
            for field, seen in zip(draft.fields, view.fields, strict=True)
        ]
        return types.StudioView(
            title=view.title,
            fetched_at=pages[0].page.fetched_at,
            bytes=len(pages[0].page.body),
            offers=view.offers,
            fields=fields,
            rows=view.rows,
            pages=len(view.rows),
            boxes=view.boxes,
            patterns=[
                types.PatternOffer(kind=row.kind, pattern=row.pattern, matches=len(self._matching(row.pattern, urls)))  # type: ignore[arg-type]
                for row in rule.patterns(draft.url, named)
            ],
            matching=_sample(matching),
            others=_sample(others),
            steps_done=self._steps_done(draft),
            problem=_problem(draft),
            suggestion=view.suggestion,
        )

    def _steps_done(self, draft: Draft) -> int:
        rendering = self._rendered(draft.url, draft) if draft.rendered else None
        return rendering[1] if rendering is not None else 0

    # ---- the rule

    async def studio_rule(self, request: types.OfDraft) -> types.StudioRule:
        return await asyncio.to_thread(self._rule, types.draft_of(request.draft))

    def _rule(self, draft: Draft) -> types.StudioRule:
        content = rule.document_of(draft)
        document = load.from_json(content)
        text = canonical(content)
        current = self._backend.rules.get(document.name)
        proposed = ParseRule(document.name, document.text, document.rule.version)
        seen = [ready.page for ready in self._bodies_of(draft) if document.rule.matches(ready.page.url)][:FIXTURES]
        files = [types.RuleFile(name=name, text=content) for name, content in files_of(text, document, seen)]
        verdict: types.Verdict = "created" if current is None else "unchanged" if current == proposed else "changed"
        difference = rule_difference(current, proposed) if current is not None else []
        return types.StudioRule(
            text=text, document=content, verdict=verdict, diff=difference, files=files,
            working_copy=self._working_copy(),
        )  # fmt: skip

    def _working_copy(self) -> str:
        directory = self._backend.rules_directory
        return str(directory) if directory is not None and working_copy.is_working_copy(directory) else ""

    async def extract_stored(self, request: types.ExtractStored) -> types.StoredExtraction:
        directory = self._backend.rows
        if not isinstance(directory, Path):
            raise UserError(ROWS_ELSEWHERE)
        if self._extracting.locked():
            raise UserError("another extraction from stored pages is under way; wait for its end")
        document = load.from_json(rule.document_of(types.draft_of(request.draft)))
        async with self._extracting:
            comparison = await asyncio.to_thread(extract_stored, directory, document)
        if not comparison.pages:
            raise UserError(
                f"no stored page is for the rule {document.name!r}: the crawl keeps bodies with --keep-raw or --format "
                "sqlite,warc, or the URL pattern of the rule is for other pages"
            )
        fields = [
            types.ExtractedField(
                name=name, filled=change.after, gained=change.gained, lost=change.lost, changed=change.changed
            )
            for name, change in comparison.fields.items()
        ]
        return types.StoredExtraction(
            rule=document.name, pages=comparison.pages, items=comparison.items_after, fields=fields
        )

    async def studio_commit(self, request: types.CommitRule) -> types.RuleCommitted:
        draft_rule = await self.studio_rule(types.OfDraft(draft=request.draft))
        if not draft_rule.working_copy:
            raise UserError(
                "rules are not committed here: start nephila up with --rules DIR in a working copy of git, or set "
                "api.rules_directory"
            )
        name = draft_rule.document["metadata"]["name"]
        message = request.message.strip() or f"Rule {name}, made in the studio"
        files = [(file.name, file.text) for file in draft_rule.files]
        made = await asyncio.to_thread(working_copy.commit, Path(draft_rule.working_copy), name, files, message)
        return types.RuleCommitted(commit=made.id, folder=made.folder)


def _part(
    request: screen_types.GetBody, url: str, content_type: str, fetched_at: float, text: str
) -> screen_types.Body:
    part = text[request.start : request.start + request.limit]
    return screen_types.Body(url=url, content_type=content_type, fetched_at=fetched_at, text=part, chars=len(text))


def _sample(urls: Sequence[str]) -> types.UrlSample:
    return types.UrlSample(total=len(urls), urls=list(urls[:LISTED]))


def _problem(draft: Draft) -> str:
    try:
        load.from_json(rule.document_of(draft))
    except UsageError as error:
        return str(error) if draft.fields or draft.next_page.source else ""
    return ""
