"""The CrawlScheme document and the search part of a Platform, as structs; both are kept in the job that crawls them.

A group holds keywords by their part (region, person, event, any name): parts are joined by AND, groups by OR. The
planner makes searches of them, the parser matches pages with them.
"""

import codecs
import re
from datetime import date
from string import Formatter
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from nephila.kernel.documents.field_types import ApiVersion, Interval, Metadata, Name, Text
from nephila.kernel.documents.struct_reader import ONE_OR_MORE, Section

PARAMETERS: Final = ("keyword", "page", "size", "order", "from", "to")
"""Names in braces that a search template may have."""


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError("is no date like 2026-01-31") from None


def _encoding(text: str) -> str:
    try:
        return codecs.lookup(text).name
    except LookupError:
        raise ValueError("is no encoding like utf-8, gbk, big5, shift_jis") from None


def _date_format(text: str) -> str:
    if not re.search("%[a-zA-Z]", text):
        raise ValueError("has no part of a date, as %Y-%m-%d has")
    return text


def parameters_of(template: str) -> list[str]:
    """Names in braces of a template; {{ and }} are braces. Raises ValueError."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"is no template: {error}") from None
    names = [name for _, name, _, _ in parts if name is not None]
    for _, name, form, conversion in parts:
        if name is not None and (name not in PARAMETERS or form or conversion):
            raise ValueError(f"has {{{name}}}, which is none of {', '.join(f'{{{key}}}' for key in PARAMETERS)}")
    return names


def _template(text: str) -> str:
    parameters_of(text)
    if not re.match("https?://[^/{}]+(/|$)", text):
        raise ValueError("does not begin with http(s):// and a host without parameters")
    return text


def _form_value(text: str) -> str:
    parameters_of(text)
    return text


Day = Annotated[str, Meta(extra={"what": "a date like 2026-01-31", "check": _day})]
Template = Annotated[
    str,
    Meta(min_length=1, max_length=4000, extra={"what": "a URL with {keyword}", "check": _template}),
]
FormValue = Annotated[str, Meta(max_length=1000, extra={"prose": True, "check": _form_value})]
FormName = Annotated[str, Meta(min_length=1, max_length=200, extra={"what": "the name of a field"})]
Encoding = Annotated[str, Meta(max_length=40, extra={"what": "an encoding", "check": _encoding})]
DateFormat = Annotated[str, Meta(max_length=100, extra={"what": "a format like %Y-%m-%d", "check": _date_format})]
Keywords = Annotated[list[Text], Meta(min_length=1, max_length=10_000, extra_json_schema=ONE_OR_MORE)]


class Part(Section):
    """Keywords of one part of a group, as its regions; a page has one of them."""

    any: Keywords
    """The keywords, each a word or a phrase."""
    optional: bool = False
    """A page may lack all of them."""


Group = Annotated[dict[Name, Part], Meta(min_length=1, max_length=20)]


class PlatformUse(Section):
    """A platform that a scheme searches."""

    SHORT = True
    name: Name
    """Name of a Platform."""
    groups: Annotated[list[Name], Meta(max_length=10_000)] = field(default_factory=list)
    """Groups that are searched there. Left out: all."""


class Dates(Section, rename={"first": "from", "last": "to", "step": "step"}):
    """Dates of the searches."""

    first: Day
    """The first day."""
    last: Day = ""
    """The last day. Left out: the first."""
    step: Interval = "1d"
    """Days of one search; one search follows the other, the oldest first."""

    def __post_init__(self) -> None:
        if self.last and self.last < self.first:
            raise ValueError(f"it ends on {self.last}, before {self.first}", "to")
        if not re.fullmatch(r"[1-9]\d{0,3}d", self.step):
            raise ValueError(f"{self.step} is no number of days like 1d or 7d", "step")


class SchemeSpec(Section):
    """Which keywords are searched where."""

    platforms: Annotated[list[PlatformUse], Meta(min_length=1, max_length=1000)]
    """Platforms that are searched."""
    groups: Annotated[dict[Name, Group], Meta(min_length=1, max_length=10_000)]
    """Groups of keywords by name: a page belongs to the scheme if it matches one of them."""
    exclude: Annotated[list[Text], Meta(max_length=1000)] = field(default_factory=list)
    """A page with one of these keywords does not belong to the scheme."""
    dates: Dates | None = None
    """Dates for platforms whose template has {from} or {to}."""

    def __post_init__(self) -> None:
        for use in self.platforms:
            for name in use.groups:
                if name not in self.groups:
                    raise ValueError(
                        f"{use.name} names the group {name!r}, which is none of {_some(self.groups)}", "platforms"
                    )


def _some(names: object) -> str:
    words = list(names)  # type: ignore[call-overload]
    return ", ".join(words[:10]) + (" …" if len(words) > 10 else "")


class CrawlScheme(Section):
    """A keyword scheme: what is searched on which platforms. Generated by tools/schemas.py; do not edit."""

    api_version: ApiVersion
    """Version of the format."""
    kind: Literal["CrawlScheme"]
    """Kind of the document."""
    metadata: Metadata
    """The name of the scheme."""
    spec: SchemeSpec
    """The whole desired state."""


class Search(Section):
    """How a platform is searched."""

    url: Template
    """URL with {keyword}, {page}, {size}, {order}, {from} and {to}."""
    method: Literal["GET", "POST"] = "GET"
    """POST sends `form`."""
    form: Annotated[dict[FormName, FormValue], Meta(max_length=100)] = field(default_factory=dict)
    """Fields of the form, with the same parameters."""
    encoding: Encoding = "utf-8"
    """Encoding of the keywords in URL and form, as gbk."""
    joiner: Annotated[str, Meta(max_length=10, extra={"prose": True})] = " "
    """Text between the keywords of one search."""
    first_page: Annotated[int, Meta(ge=0, le=10**6)] = 1
    """Value of {page} on the first page."""
    step: Annotated[int, Meta(ge=1, le=10**6)] = 1
    """Difference of {page} between two pages, as 20 where it counts entries."""
    size: Annotated[int, Meta(ge=1, le=10_000)] = 20
    """Value of {size}."""
    order: Annotated[str, Meta(max_length=100)] = ""
    """Value of {order}."""
    date_format: DateFormat = "%Y-%m-%d"
    """Form of {from} and {to}."""
    limit: Annotated[int, Meta(ge=0, le=10**6)] = 0
    """Most pages of one search. A template with {page} needs it."""

    def __post_init__(self) -> None:
        names = [*parameters_of(self.url), *(name for text in self.form.values() for name in parameters_of(text))]
        if "keyword" not in names:
            raise ValueError("it has no {keyword}: every search would be the same", "url")
        if self.form and self.method == "GET":
            raise ValueError("a form needs method: POST", "form")
        if "page" in names and not self.limit:
            raise ValueError("it has {page} and no limit; write limit: 50 for at most 50 pages of a search", "url")
        if "order" in names and not self.order:
            raise ValueError("it has {order} and no order", "url")


class NamedScheme(Section):
    """A scheme in a job."""

    name: Name
    """Its name."""
    spec: SchemeSpec
    """What it searches."""


class NamedPlatform(Section):
    """A platform in a job."""

    name: Name
    """Its name."""
    search: Search
    """How it is searched."""


class Schemes(Section):
    """Keyword schemes of a job, as `nephila schemes apply` writes them."""

    schemes: Annotated[list[NamedScheme], Meta(max_length=10_000)] = field(default_factory=list)
    """The schemes."""
    platforms: Annotated[list[NamedPlatform], Meta(max_length=1000)] = field(default_factory=list)
    """Their platforms."""
    incomplete: bool = False
    """The searches of the last change are not all queued yet."""
