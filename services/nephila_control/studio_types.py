"""Requests and answers of the rule studio. Its state is a `Draft`, which each request brings along."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta
from nephila.kernel.runtime.errors import UsageError
from nephila_rules.studio.draft import Draft, Step
from nephila_rules.studio.seen import Offer, Row, Suggestion

from nephila_control.requests import Request, Url
from nephila_control.screen_types import JobFilter, PageLimit, Search

Document = Annotated[
    dict[str, Any], Meta(description="A draft as `open` and `step` answer it; its form is that of their answer.")
]
Verdict = Literal["created", "changed", "unchanged"]


class ListStudioPages(Request):
    """Pages whose bodies are stored."""

    search: Search = ""
    """Part of the URL; letters in any case."""
    limit: PageLimit = 50


class StudioPages(msgspec.Struct, kw_only=True):
    """Pages that the studio can open."""

    urls: list[str]
    total: int
    """Pages found; `urls` has the first of them."""
    complete: bool
    """False: files are still being read; the same request later finds more."""


class OpenStudioPage(Request):
    """Begin a rule with a page, or change one that exists."""

    url: Url = ""
    """Empty: the first stored page of the rule."""
    rule: Annotated[str, Meta(max_length=253)] = ""
    """Name of the rule to change; empty begins a new one."""
    job: JobFilter = ""
    """Job whose links are explained."""
    source: Literal["stored", "web", "rendered"] = "stored"
    """The stored body, or the page fetched now, as it is or as a browser has it: through robots.txt and the egress
    guard, kept in memory."""


class StudioDraft(msgspec.Struct, kw_only=True):
    """A draft after a step."""

    draft: Draft


class StudioStep(Request):
    """Change a draft with the help of the pages."""

    draft: Document
    step: Step
    node: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    """The element that was clicked."""


class RenderStudioPage(Request):
    """Fetch the page of a draft again by a browser that takes its steps, through robots.txt and the egress guard."""

    draft: Document


class OfDraft(Request):
    """One draft."""

    draft: Document


class StudioFrameOf(Request):
    """The page of a draft."""

    draft: Document
    links: bool = False
    """True adds the reason why each link is followed or not."""
    styled: bool = False
    """The page as it looks, without its scripts."""


class StudioFrame(msgspec.Struct, kw_only=True):
    """The page as HTML without script, address or form of the page."""

    html: str
    """Plain: what is inside <body>; a text of element N is a link to `pick/N`. Styled: the document, in which element N
    has the attribute data-nephila="N", and file N of the page the address `../file/PAGE/N`."""
    whole: bool
    """False if the page is larger than the frame."""


class GetStudioFile(Request):
    """A style sheet, picture or font that a shown page names."""

    page: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
    """As in the addresses of `studio_frame`."""
    number: Annotated[int, Meta(ge=0, le=1_000_000)]


class StudioFile(msgspec.Struct, kw_only=True):
    """A file of a shown page. A style sheet names further files by their numbers; SVG is rewritten."""

    content_type: str
    body: bytes
    """Base64 in JSON."""


class StudioField(msgspec.Struct, kw_only=True):
    """A field on the pages of the draft."""

    name: str
    here: int
    """Values on the page that is shown."""
    filled: int
    """Pages with a value, of the `pages` of the view."""


class UrlSample(msgspec.Struct, kw_only=True):
    """URLs with their number."""

    total: int
    urls: list[str]
    """First URLs."""


class PatternOffer(msgspec.Struct, kw_only=True):
    """A URL pattern, and the stored pages that it matches."""

    kind: Literal["page", "pages", "folder", "site"]
    """From the narrowest to the widest."""
    pattern: str
    matches: int


class StudioView(msgspec.Struct, kw_only=True):
    """What there is to see of a draft."""

    title: str
    """Title of the page."""
    fetched_at: float
    """When the page was fetched, seconds since 1970 UTC; 0: not known."""
    bytes: int
    offers: list[Offer]
    """Selectors of the active field: structured data, CSS, XPath."""
    fields: list[StudioField]
    rows: list[Row]
    """The page that is shown, then the other pages."""
    pages: int
    """Pages of the table."""
    boxes: int
    """Items on the page where the rule has each."""
    patterns: list[PatternOffer]
    matching: UrlSample
    """Stored pages that the rule is for."""
    others: UrlSample
    """Stored pages of the same host that it is not for."""
    steps_done: int = 0
    """Steps of the browser that the shown page has seen; fewer than the draft has: render it again."""
    problem: str = ""
    """One line says why the rule cannot be used."""
    suggestion: Suggestion | None = None
    """Fields that the page offers by itself; the step `suggested` adds them. Null for a draft with fields."""


class RuleFile(msgspec.Struct, kw_only=True):
    """A file beside a rule."""

    name: str
    text: str


class CommitRule(Request):
    """Commit the rule of a draft with its tests."""

    draft: Document
    message: Annotated[str, Meta(max_length=2000, pattern=r"^[^\x00]*$")] = ""
    """An empty message becomes one with the name of the rule."""


class ExtractStored(Request):
    """Run the rule of a draft on the stored pages."""

    draft: Document


class ExtractedField(msgspec.Struct, kw_only=True):
    """Changes of one field over all items."""

    name: str
    filled: int
    """Items in which the field has a value now."""
    gained: int
    lost: int
    changed: int


class StoredExtraction(msgspec.Struct, kw_only=True):
    """What an extraction from stored pages wrote."""

    rule: str
    pages: int
    """Stored pages that the rule matches."""
    items: int
    fields: list[ExtractedField]


class RuleCommitted(msgspec.Struct, kw_only=True):
    """A commit in the working copy of the rules."""

    commit: str
    """Id of the commit; empty if the files were the same."""
    folder: str
    """Folder of the rule below the directory of rules."""


class StudioRule(msgspec.Struct, kw_only=True):
    """The rule of a draft."""

    text: str
    """In the form of `nephila rules fmt`; also a ParseRule resource for kubectl."""
    document: dict[str, Any]
    verdict: Verdict
    """Effect of an apply."""
    diff: list[str]
    """Lines of a unified diff to the version in effect; empty for a new rule."""
    files: list[RuleFile]
    """rule.yaml, pages and their items, as `nephila rules test` reads them."""
    working_copy: str
    """The directory of git that rules are committed to; empty: none is configured."""


def draft_of(document: dict[str, Any]) -> Draft:
    """The draft of a request. Raises `UsageError`."""
    try:
        return msgspec.convert(document, Draft)
    except msgspec.ValidationError as error:
        raise UsageError(f"draft: {error}") from None


def document_of(draft: Draft) -> dict[str, Any]:
    """A draft for a request."""
    return cast("dict[str, Any]", msgspec.to_builtins(draft))
