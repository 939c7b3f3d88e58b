"""The ParseRule document as structs: keys, types, limits, defaults and one text about each key.

Invariants: no other module lists the keys; docs/parserule.schema.json is generated from these structs; an expression
that was read does not fail for its syntax later. How a document becomes a rule: `load` and `spec`.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field
from nephila.kernel.documents.browser_schema import Steps
from nephila.kernel.documents.field_types import ApiVersion, Count, Expression, Interval, Metadata, Name, Text
from nephila.kernel.documents.struct_reader import ONE_OR_MORE, Section
from nephila.kernel.page_facts.iso_dates import fault_of_format

from nephila_rules.runtime import selectors
from nephila_rules.runtime.replacement import fault

SOURCES: Final = ("css", "xpath", "jsonld", "itemprop", "meta", "page", "constant")
"""Keys of where a value begins; at most one of them is given. The next steps, in this order: attr or html, regex,
jsonpath or jmespath, js or py."""
_LEAF_ONLY: Final = (
    *("attr", "html", "join", "type", "decimal", "currency", "format", "dayFirst", "exists", "trim", "replace"),
    *("default", "js", "py"),
)


def _selector(language: str, text: str) -> str:
    if reason := selectors.fault(language, text):
        raise ValueError(f"cannot be used: {reason}")
    return text


def _date_format(text: str) -> str:
    if reason := fault_of_format(text):
        raise ValueError(f"fits no date: {reason}")
    return text


def _language(name: str) -> dict[str, Any]:
    return {"what": f"an expression ({name})", "check": partial(_selector, name)}


CssSelector = Annotated[str, Meta(min_length=1, max_length=2000, extra=_language("css"))]
XPath = Annotated[str, Meta(min_length=1, max_length=2000, extra=_language("xpath"))]
JsonPath = Annotated[str, Meta(min_length=1, max_length=2000, extra=_language("jsonpath"))]
JmesPath = Annotated[str, Meta(min_length=1, max_length=2000, extra=_language("jmespath"))]
Expressions = Annotated[list[Expression], Meta(min_length=1, max_length=1000, extra_json_schema=ONE_OR_MORE)]
Prose = Annotated[str, Meta(max_length=10_000, extra={"prose": True})]
"""Any text, with line ends; it may be empty."""
DateFormat = Annotated[
    str,
    Meta(min_length=1, max_length=100, extra={"what": "a format of dates, like %d.%m.%Y", "check": _date_format}),
]
DateFormats = Annotated[list[DateFormat], Meta(min_length=1, max_length=20, extra_json_schema=ONE_OR_MORE)]
Currency = Annotated[str, Meta(pattern="^[A-Z]{3}$", extra={"what": "a currency like EUR"})]
FieldName = Annotated[
    str, Meta(pattern="^[A-Za-z_][A-Za-z0-9_]{0,63}$", extra={"what": "a name of letters, digits and '_'"})
]
FunctionRef = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z][A-Za-z0-9_]{0,63}:[A-Za-z][A-Za-z0-9_]{0,63}$",
        extra={"what": "a file and a function in it, like prices:euros for euros in prices.py"},
    ),
]
"""No dot and no leading underscore: the text names a file of one directory, and never a package or an attribute."""


def _exclusive(section: Section, *keys: str) -> list[str]:
    """The given ones of some keys. Raises ValueError for two of them."""
    present = [key for key in keys if getattr(section, key)]
    if len(present) > 1:
        raise ValueError(f"give only one of {present[0]!r} and {present[1]!r}")
    return present


def _one_link(section: Section, *keys: str) -> None:
    if not _exclusive(section, *keys):
        raise ValueError(f"give exactly one of {', '.join(keys)}")


class Replace(Section):
    """Text in the place of each match."""

    pattern: Expression
    """RE2; every match is replaced."""
    instead: Annotated[str, Meta(max_length=1000, extra={"prose": True})] = field(name="with", default="")
    r"""The text in its place, \1 for a group. Left out: nothing."""

    def __post_init__(self) -> None:
        if reason := fault(self.pattern, self.instead):
            raise ValueError(reason)


Replacements = Annotated[list[Replace], Meta(min_length=1, max_length=50, extra_json_schema=ONE_OR_MORE)]


class Each(Section):
    """How the items of a page are selected."""

    SHORT = True
    css: CssSelector = ""
    """Elements, by a CSS selector."""
    xpath: XPath = ""
    """Elements or values, by XPath 1.0."""
    jsonld: Annotated[str, Meta(min_length=1, max_length=100)] = ""
    """Objects of this @type in the page's JSON-LD; * for all."""
    regex: Expression = ""
    """RE2 on each value: the first group, or all of the match; alone: on the page's source."""
    jsonpath: JsonPath = ""
    """JSONPath (RFC 9535) on each value; alone: on the document's JSON."""
    jmespath: JmesPath = ""
    """JMESPath on each value; alone: on the document's JSON."""

    def __post_init__(self) -> None:
        _exclusive(self, "css", "xpath", "jsonld")
        _exclusive(self, "jsonpath", "jmespath")


class Field(Section):
    """One field of an item: a CSS selector, or a map."""

    SHORT = True
    css: CssSelector = ""
    """Elements, by a CSS selector."""
    xpath: XPath = ""
    """Elements or values, by XPath 1.0."""
    jsonld: Annotated[str, Meta(min_length=1, max_length=100)] = ""
    """Objects of this @type in the page's JSON-LD; * for all."""
    itemprop: Annotated[str, Meta(min_length=1, max_length=100)] = ""
    """Values of this microdata property."""
    meta: Text = ""
    """Content of <meta> elements of this name or property (og:title, description, …)."""
    page: (
        Literal[
            "url", "title", "lang", "text", "content_type", "fetched_at", "encoding",
            "published", "modified", "authors", "section", "image", "description",
            "languages", "comments",
        ]
        | None
    ) = None  # fmt: skip
    """A fact about the page itself."""
    constant: Prose | None = None
    """Always this text."""
    attr: Text = ""
    """An attribute of each element, instead of its text."""
    html: Literal["inner", "outer"] | None = None
    """The markup of each element, instead of its text."""
    regex: Expression = ""
    """RE2 on each value: the first group, or all of the match; alone: on the page's source."""
    jsonpath: JsonPath = ""
    """JSONPath (RFC 9535) on each value; alone: on the document's JSON."""
    jmespath: JmesPath = ""
    """JMESPath on each value; alone: on the document's JSON."""
    js: Annotated[str, Meta(max_length=20_000, extra={"prose": True})] = ""
    """A JavaScript function (value, page) => value; only where scripts are switched on."""
    py: FunctionRef = ""
    """A Python function (value, page) -> value in a file of the operator's directory: prices:euros is euros in
    prices.py; only where that directory is named."""
    all: bool | None = None
    """A list of all values; false: the first. Left out: true for a field with fields, else false."""
    join: Annotated[str, Meta(max_length=100, extra={"prose": True})] | None = None
    """All values as one text with this between them."""
    type: Literal["text", "number", "integer", "price", "date", "url", "bool", "json"] | None = None
    """The type of each value. Left out: text."""
    decimal: Literal[".", ","] | None = None
    """The decimal sign of numbers. Left out: by the look of each number."""
    currency: Currency = ""
    """The currency of prices that name none."""
    format: DateFormats = field(default_factory=list)
    """Formats of dates, as in strptime: %d.%m.%Y."""
    day_first: bool | None = None
    """03/04/2026 is the third of April. Left out: such a text is no date."""
    exists: bool = False
    """The value is true or false: whether something was selected."""
    trim: bool | None = None
    """White space is collapsed and cut at both ends. Left out: true."""
    replace: Replacements = field(default_factory=list)
    """Replacements in each text, one after the other."""
    default: Prose | None = None
    """The value where nothing was selected, of the field's type."""
    required: bool = False
    """An item without this field is dropped."""
    fields: Fields | None = None
    """Fields inside each selected value: the values are objects."""

    def __post_init__(self) -> None:
        present = self.given
        if len(sources := [key for key in SOURCES if key in present]) > 1:
            raise ValueError(f"give only one of {sources[0]!r} and {sources[1]!r}: a field has one source")
        _exclusive(self, "jsonpath", "jmespath")
        _exclusive(self, "attr", "html")
        _exclusive(self, "js", "py")
        if present & {"attr", "html"} and sources and sources[0] not in ("css", "xpath"):
            raise ValueError(f"'attr' and 'html' are of an element, and {sources[0]!r} selects none")
        if self.fields and (leaf := next((key for key in _LEAF_ONLY if key in present), "")):
            raise ValueError(f"{leaf!r} is for a field with a value, and this one has fields of its own")
        if self.decimal and self.type not in ("number", "integer", "price"):
            raise ValueError("'decimal' needs type number, integer or price")
        if self.currency and self.type != "price":
            raise ValueError("'currency' needs type price")
        if present & {"format", "dayFirst"} and self.type != "date":
            raise ValueError("'format' and 'dayFirst' need type date")
        if self.exists and self.type not in (None, "bool"):
            raise ValueError("'exists' gives true or false and has no other type")

    @property
    def given(self) -> set[str]:
        """The keys that the document states."""
        pairs = zip(self.__struct_encode_fields__, self.__struct_defaults__, self.__struct_fields__, strict=True)
        return {key for key, default, name in pairs if (value := getattr(self, name)) != default and value != []}


Fields = Annotated[dict[FieldName, Field], Meta(min_length=1, max_length=200)]


class Content(Section):
    """Conditions on the content of a page, in addition to its URL; all of them must hold."""

    css: CssSelector = ""
    """An element that this CSS selector selects."""
    text: Expression = ""
    """RE2, searched in the page's source."""
    content_type: Expression = ""
    """RE2, searched in the media type."""


class Match(Section):
    """Which pages the rule reads."""

    url: Expressions
    """RE2, searched in the full URL; one of them has to match."""
    exclude: Expressions = field(default_factory=list)
    """RE2, searched in the full URL; none may match."""
    content: Content = field(default_factory=Content)
    """What the page has to contain as well; all of it."""
    stage: Name = ""
    """Only pages of this stage of a crawl in several steps, as navigation or content."""
    platform: Name = ""
    """Only pages of this platform of a keyword scheme."""


class Links(Section):
    """Which links of a page are followed."""

    SHORT = True
    css: CssSelector = ""
    """Elements whose address is followed. Without css, xpath and jsonpath: all links."""
    xpath: XPath = ""
    """The same, by XPath; attributes and texts are addresses themselves."""
    jsonpath: JsonPath = ""
    """Addresses in a JSON document."""
    attr: Text = ""
    """The attribute with the address. Left out: href, or src."""
    include: Expressions = field(default_factory=list)
    """RE2, searched in the full URL; one has to match."""
    exclude: Expressions = field(default_factory=list)
    """RE2, searched in the full URL; none may match."""
    depth: Annotated[int, Meta(ge=0, le=1000)] = 1
    """Added to the page's depth."""
    priority: Annotated[int, Meta(ge=0, le=255)] = 0
    """Priority for best-first."""
    stage: Name = ""
    """Stage of the linked pages, as content. Left out: that of the page."""
    render: Annotated[Literal["never"], Meta(extra={"later": ("auto", "always")})] = "never"
    """Which pages a browser renders."""

    def __post_init__(self) -> None:
        _exclusive(self, "css", "xpath", "jsonpath")


class Until(Section):
    """Which date ends a list whose newest entries come first."""

    field: FieldName
    """A field of the items, of type date."""
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$", extra={"what": "a date like 2026-01-31"})] = ""
    """The list ends with an item before this date."""
    age: Interval | None = None
    """The list ends with an item that was older than this when the page was fetched."""

    def __post_init__(self) -> None:
        _one_link(self, "date", "age")


class Pagination(Section):
    """Links to further pages of a list; they have the depth of the page itself."""

    SHORT = True
    css: CssSelector = ""
    """Elements that lead to the next pages."""
    xpath: XPath = ""
    """The same, by XPath."""
    jsonpath: JsonPath = ""
    """Addresses of next pages in a JSON document."""
    attr: Text = ""
    """The attribute with the address. Left out: href."""
    param: Annotated[str, Meta(min_length=1, max_length=100)] = ""
    """Query parameter that counts: the next page follows a page that had items."""
    start: Count | None = None
    """Value of the parameter on a first page without it. Left out: 1."""
    step: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    """Difference between two pages. Left out: 1."""
    max: Annotated[int, Meta(ge=1, le=10**9)] | None = None
    """Last value. Left out: 1000."""
    limit: Annotated[int, Meta(ge=1, le=10**6)] | None = None
    """Most pages of a list."""
    until: Until | None = None
    """The date that ends a list."""
    known: Literal["stop", "continue"] = "stop"
    """When a list is fetched again: stop at the first page without a new link, or continue."""

    def __post_init__(self) -> None:
        _one_link(self, "css", "xpath", "jsonpath", "param")
        alone = [key for key in ("start", "step", "max") if getattr(self, key) is not None]
        if alone and not self.param:
            raise ValueError(f"{alone[0]!r} needs 'param'")


class FollowUp(Section, kw_only=True):
    """A second page that completes an item."""

    css: CssSelector = ""
    """The element with the link to the second page, inside the item where the rule has each."""
    xpath: XPath = ""
    """The same, by XPath."""
    jsonpath: JsonPath = ""
    """Its address in a JSON document."""
    attr: Text = ""
    """The attribute with the address. Left out: href, or src."""
    url: Expressions
    """RE2, searched in the full URL: the second pages."""
    fields: Fields
    """Fields that the second page adds to the item."""

    def __post_init__(self) -> None:
        _one_link(self, "css", "xpath", "jsonpath")


class RuleSpec(Section):
    """The whole desired state of a rule."""

    match: Match
    """Which pages the rule reads."""
    priority: Annotated[int, Meta(ge=-1000, le=1000)] = 0
    """Of several rules for a page the highest priority counts, then the first name."""
    version: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    """Written to every item. Left out: a hash of the rule."""
    each: Each | None = None
    """How items are selected. Left out: the page is the item."""
    fields: Fields | None = None
    """Fields of an item. Left out: the rule is about links."""
    follow_ups: Annotated[dict[FieldName, FollowUp], Meta(min_length=1, max_length=10)] | None = None
    """Second pages that complete the items; the job's scope decides about them as about any link."""
    outlinks: Annotated[list[Links], Meta(max_length=50, extra_json_schema=ONE_OR_MORE)] | None = None
    """Which links are followed; the first entry that accepts a link counts. Left out: all links."""
    pagination: Pagination | None = None
    """Links to further pages of a list."""
    steps: Steps = field(default_factory=list)
    """Actions of a browser before the page is read, in jobs that render pages. They apply to pages that match by their
    URL."""

    def __post_init__(self) -> None:
        if self.fields is None and self.outlinks is None and self.pagination is None:
            raise ValueError("it has neither fields nor outlinks nor pagination: the rule would do nothing")
        until = self.pagination.until if self.pagination is not None else None
        if until is not None and ((named := (self.fields or {}).get(until.field)) is None or named.type != "date"):
            raise ValueError(f"until names {until.field!r}, which is no field of type date", "pagination")


class ParseRule(Section):
    """What is taken from the pages of a site. Generated by tools/schemas.py; do not edit."""

    api_version: ApiVersion
    """Version of the format."""
    kind: Literal["ParseRule"]
    """Kind of the document."""
    metadata: Metadata
    """The name of the rule."""
    spec: RuleSpec
    """The whole desired state."""
