"""The section `browser` of a CrawlJob and the `steps` of a ParseRule: what a browser does with a page.

Everything is declarative and bounded: a page runs no code of the document. One struct serves the documents, their JSON
Schema and the downloader, which reads the sections again from JSON.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from nephila.kernel.documents.field_types import DURATION_SCHEMA, Duration, check_duration, seconds
from nephila.kernel.documents.struct_reader import Section

MAX_STEP_S: Final = 60.0
"""Longest time of one wait: a page has a minute by default."""
ACTIONS: Final = ("click", "type", "select", "scroll", "wait", "pause", "more")
"""Keys of what a step does; exactly one of them is given."""
CaptureKind = Literal["xhr", "screenshot", "pdf"]


def check_selector(text: str) -> str:
    """The selector; raises `ValueError` for text that is no CSS selector."""
    from selectolax.lexbor import LexborHTMLParser

    try:
        LexborHTMLParser("<p>").css(text)
    except Exception:
        raise ValueError("is no CSS selector") from None
    return text


def _short(text: str) -> str:
    if seconds(check_duration(text)) > MAX_STEP_S:
        raise ValueError(f"is longer than {MAX_STEP_S:g}s")
    return text


Selector = Annotated[
    str, Meta(min_length=1, max_length=2000, extra={"what": "a CSS selector", "check": check_selector})
]
Short = Annotated[
    str,
    Meta(
        extra={"what": "a duration like 500ms, 60s at most", "check": _short},
        extra_json_schema=DURATION_SCHEMA,
    ),
]
Prose = Annotated[str, Meta(max_length=10_000, extra={"prose": True})]


class Step(Section):
    """One action in the page; exactly one of click, type, select, scroll, wait, pause and more is given."""

    click: Selector = ""
    """Clicks the first element that this CSS selector selects."""
    type: Selector = ""
    """Writes `text` into the first element of this CSS selector."""
    select: Selector = ""
    """Selects the option `value` of the first <select> of this CSS selector."""
    scroll: Annotated[int, Meta(ge=0, le=100)] = 0
    """Scrolls to the end of the page so many times, while the page grows."""
    wait: Selector = ""
    """Waits until an element of this CSS selector is there."""
    pause: Short = ""
    """Waits for this time."""
    more: Selector = ""
    """Clicks this element again and again until it is gone, or nothing new comes, `max` times at most."""
    text: Prose = ""
    """For type: what is written."""
    value: Annotated[str, Meta(max_length=1000)] = ""
    """For select: the value or the label of the option."""
    max: Annotated[int, Meta(ge=1, le=1000)] = 20
    """For more: clicks at most."""
    timeout: Short = "5s"
    """Longest wait for the element."""
    optional: bool = False
    """A page without the element is read as it is. Left out: the page fails with the reason step."""

    def __post_init__(self) -> None:
        actions = [key for key in ACTIONS if getattr(self, key)]
        if len(actions) != 1:
            raise ValueError(f"give exactly one of {', '.join(ACTIONS)}")
        if self.text and not self.type:
            raise ValueError("'text' needs 'type'", "text")
        if self.value and not self.select:
            raise ValueError("'value' needs 'select'", "value")

    @property
    def action(self) -> str:
        return next(key for key in ACTIONS if getattr(self, key))


class LoginStep(Step):
    """One action in the page of a login, as in `browser.steps`; `type` may write a field of the login."""

    field: Annotated[str, Meta(max_length=200)] = ""
    """For type: the name in `fields` whose value is written."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.field and (self.text or not self.type):
            raise ValueError("'field' needs 'type', without 'text'", "field")


Steps = Annotated[list[Step], Meta(max_length=50)]


class Wait(Section):
    """When a page counts as complete; all that is given has to hold."""

    until: Literal["idle", "load", "dom"] = "idle"
    """idle (no request for half a second, after load), load, or dom (the HTML is parsed)."""
    selector: Selector = ""
    """An element of this CSS selector is there; without it the page fails with the reason step."""
    time: Short = "0"
    """A further time."""
    timeout: Short = "10s"
    """Longest wait for idle and selector. A page that is never idle is read then."""


class Budget(Section):
    """Limits of the browser-seconds of the job. When one is reached, further pages fail with the reason
    browser_budget."""

    job: Duration = "0"
    """Seconds for all pages; 0 = no limit."""
    host: Duration = "0"
    """Seconds for the pages of one host; 0 = no limit."""


class Browser(Section):
    """How pages are rendered, where `render` is auto or always."""

    wait: Wait = field(default_factory=Wait)
    """When a page counts as complete."""
    steps: Steps = field(default_factory=list)
    """Actions in each page; a rule with steps of its own replaces them for the pages that it reads."""
    capture: Annotated[list[CaptureKind], Meta(max_length=3)] = field(default_factory=list)
    """Stored in addition to the document: xhr (JSON that scripts fetched), screenshot (PNG), pdf."""
    budget: Budget = field(default_factory=Budget)
    """Limits of the browser-seconds of the job."""
