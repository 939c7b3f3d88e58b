"""A rule that is being made, as one immutable value: the whole state of the studio.

Invariant: a draft names pages by their URLs and elements by their numbers (`numbering`); it holds no content of a page
but selectors. Two drafts with the same content are equal, so a draft in a URL is a link to what a person saw.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from nephila.kernel.documents.browser_schema import Step as BrowserStep

MAX_FIELDS = 50
MAX_PICKS = 40
MAX_STEPS = 20
Mode = Literal["new", "more", "not", "here", "next", "step_click", "step_more", "step_wait"]
"""What the next click on an element does: begin a field; add a value to the active field, which makes it a list; say
that this is not it; say where the active field is on this page; mark the link to the next page; add a step of the
browser for the element: click it, click it again and again, wait for it."""
Step = Literal[Mode, "wider", "items", "page", "learn", "suggested"]
"""What changes a draft with the help of the pages: a click (`Mode`); take the element around the last one; one item per
box around the values of the active field; the page is the item again; choose the selector again; add the fields that
the page offers by itself."""
Text = Annotated[str, Meta(max_length=4000, pattern=r"^[^\x00]*$")]
PageUrl = Annotated[str, Meta(max_length=20_000, pattern=r"^[^\x00-\x20]*$")]
Number = Annotated[int, Meta(ge=0, le=10_000_000)]
FieldType = Literal["text", "number", "integer", "price", "date", "url", "bool", "json"]


class Pick(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An element that a person pointed at."""

    url: PageUrl
    """Of the page."""
    node: Number
    attr: Text = ""
    """The attribute with the value; empty: the text."""
    wrong: bool = False
    """The field must not take this."""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The selection of a field's value: the keys of a field of a ParseRule with these names."""

    source: Literal["", "css", "xpath", "jsonld", "itemprop", "meta", "page", "constant"] = ""
    expression: Text = ""
    attr: Text = ""
    regex: Text = ""
    path: Literal["", "jsonpath", "jmespath"] = ""
    query: Text = ""


class DraftField(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A field of the rule."""

    name: Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
    take: Source = Source()
    """Empty: no selector gives the picked values."""
    type: FieldType = "text"
    many: bool = False
    required: bool = False
    picks: Annotated[tuple[Pick, ...], Meta(max_length=MAX_PICKS)] = ()


class Draft(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    url: PageUrl
    """Of the page that is shown."""
    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    """Whose links are explained; empty: no job's."""
    name: Annotated[str, Meta(max_length=253, pattern=r"^[^\x00-\x1f]*$")] = ""
    """Of the rule."""
    pattern: Text = ""
    """RE2: the URLs of the rule."""
    fields: Annotated[tuple[DraftField, ...], Meta(max_length=MAX_FIELDS)] = ()
    each: Text = ""
    """CSS of the box of one item; empty: the page is the item."""
    next_page: Source = Source()
    """The link to the next page of a list."""
    active: Annotated[int, Meta(ge=-1, le=MAX_FIELDS)] = -1
    """The field that is worked on; -1: none."""
    mode: Mode = "new"
    rendered: bool = False
    """The page is shown as a browser had it after `steps`, or after as many of the first of them as it has done."""
    plain: bool = False
    """The page is shown as its texts, without its styles and pictures."""
    steps: Annotated[tuple[BrowserStep, ...], Meta(max_length=MAX_STEPS)] = ()
    """What a browser does with each page of the rule."""

    @property
    def rendering(self) -> bytes:
        """A value that is equal for drafts whose pages are fetched in the same way."""
        return msgspec.json.encode(self.steps) if self.rendered else b""

    @property
    def field(self) -> DraftField | None:
        """The active field."""
        return self.fields[self.active] if 0 <= self.active < len(self.fields) else None

    def with_field(self, number: int, changed: DraftField) -> Draft:
        """The draft with another field in this place."""
        fields = (*self.fields[:number], changed, *self.fields[number + 1 :])
        return msgspec.structs.replace(self, fields=fields)
