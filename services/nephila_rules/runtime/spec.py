"""A rule as the program uses it: values of a document that was read, with every expression compiled on first use.

Invariants: immutable; its properties (`bounded`, `shape`) hold for any page. It depends on neither YAML nor pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.documents.struct_reader import Section
from nephila.kernel.pages.item_parts import MISSING, part_rule

from nephila_rules.runtime import rule_schema as schema
from nephila_rules.runtime.selectors import Shape, compiled, css_shape, is_bounded

_NODES: Final = ("css", "xpath")
_DATA: Final = ("jsonld", "jsonpath", "jmespath")
_SIMPLE_KEYS: Final = frozenset(("css", "all", "join", "type", "default", "required"))


class Selection(msgspec.Struct, frozen=True):
    """The selection of a field, an item or a link: its start, and what is done to each value."""

    source: str = ""
    """One of `table.SOURCES`, or "" for what the surroundings are."""
    expression: str = ""
    attr: str = ""
    html: str = ""
    regex: str = ""
    path: str = ""
    """jsonpath or jmespath, "" for neither."""
    query: str = ""
    js: str = ""
    py: str = ""
    """file:function."""

    @property
    def bounded(self) -> bool:
        """Whether it costs little on every page of bounded size and depth."""
        if self.js or self.py or self.source == "xpath":
            return False
        if self.source == "css" and not is_bounded("css", self.expression):
            return False
        return not self.path or is_bounded(self.path, self.query)


class ItemField(msgspec.Struct, frozen=True):
    """One field of an item."""

    name: str
    selection: Selection
    many: bool
    """A list of all values, or of objects."""
    join: str | None
    type: str
    options: Mapping[str, Any]
    """decimal, currency, format, dayFirst."""
    exists: bool
    trim: bool
    replace: tuple[tuple[str, str], ...]
    default: str | None
    required: bool
    fields: tuple[ItemField, ...]
    is_simple_text: bool
    """The text of elements by CSS and nothing else: most fields are, and there is a short way for them."""
    is_simple_attribute: bool
    """An attribute of elements by CSS, of any type: there is a short way for these as well."""

    @property
    def bounded(self) -> bool:
        return self.selection.bounded and all(inner.bounded for inner in self.fields)


class LinkSelection(msgspec.Struct, frozen=True):
    """Which links are followed, and the depth and priority they are given."""

    selection: Selection
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    depth: int
    priority: int
    stage: str = ""


class Counter(msgspec.Struct, frozen=True):
    """Pagination by a parameter that counts."""

    param: str
    start: int
    step: int
    most: int


class Stop(msgspec.Struct, frozen=True):
    """The end of a list."""

    limit: int = 0
    """Most pages; 0 = no limit."""
    field: str = ""
    """Date field of the items; an item before `date`, or older than `age_s`, ends the list."""
    date: str = ""
    age_s: float = 0.0
    at_known: bool = True
    """A list that is fetched again ends at the first page without a new link."""


NO_STOP: Final = Stop()


class SecondPage(msgspec.Struct, frozen=True):
    """A second page that completes an item."""

    name: str
    selection: Selection
    """The link to it."""
    rule: Rule
    """What reads it: it has the URLs and fields that are said, the version, priority and links of the rule."""


class Rule(msgspec.Struct, frozen=True):
    name: str
    version: int
    priority: int
    urls: tuple[str, ...]
    not_urls: tuple[str, ...]
    content: Mapping[str, str]
    each: Selection | None
    fields: tuple[ItemField, ...]
    outlinks: tuple[LinkSelection, ...] | None
    """None: all links of the page go on."""
    pages: LinkSelection | None
    counter: Counter | None
    bounded: bool
    """May run in the parser's process, on a page of bounded size and depth."""
    shape: Shape
    """The worst of its CSS selectors; a group's elements are gone through again for each that it stands in."""
    scripts: bool
    """It has JavaScript."""
    functions: tuple[str, ...] = ()
    """The Python functions that it calls, as file:function, each once."""
    follow_ups: tuple[SecondPage, ...] = ()
    stage: str = ""
    platform: str = ""
    stop: Stop = NO_STOP

    @property
    def page_rules(self) -> Iterator[Rule]:
        """Itself, and before it what reads its second pages."""
        for follow_up in self.follow_ups:
            yield follow_up.rule
        yield self

    def matches(self, url: str) -> bool:
        """Whether the rule matches, by the URL alone. O(patterns); `match.RuleSet` does it for many rules."""
        if not any(compiled("regex", pattern).search(url) for pattern in self.urls):
            return False
        return not any(compiled("regex", pattern).search(url) for pattern in self.not_urls)


def leaves(fields: tuple[ItemField, ...], prefix: str = "") -> Iterator[tuple[str, ItemField]]:
    """Every field with its path, groups before what is in them."""
    for field in fields:
        yield prefix + field.name, field
        yield from leaves(field.fields, f"{prefix}{field.name}.")


def build(name: str, version: int, spec: schema.RuleSpec) -> Rule:
    """The rule of a spec. Raises ValueError for selectors that cannot be used where they stand."""
    each = selection_of(spec.each) if spec.each else None
    fields = _fields(spec.fields)
    outlinks = tuple(_links(entry) for entry in spec.outlinks) if spec.outlinks is not None else None
    pagination = spec.pagination
    counter = pages = None
    if pagination and pagination.param:
        counter = Counter(
            pagination.param,
            1 if pagination.start is None else pagination.start,
            pagination.step or 1,
            pagination.max or 1000,
        )
    elif pagination:
        pages = LinkSelection(selection_of(pagination), (), (), 0, 0)
    _check_scopes(fields, each, "spec.fields")
    follow_ups = tuple(
        _follow_up(key, follow_up, name, version, spec) for key, follow_up in (spec.follow_ups or {}).items()
    )
    _check_follow_ups(follow_ups, fields, each)
    selections = [
        *([each] if each else []),
        *[links.selection for links in outlinks or ()],
        *([pages.selection] if pages else []),
    ]
    selections += [follow_up.selection for follow_up in follow_ups]
    content = msgspec.to_builtins(spec.match.content)
    return Rule(
        name=name,
        version=version,
        priority=spec.priority,
        urls=tuple(spec.match.url),
        not_urls=tuple(spec.match.exclude),
        content=content,
        each=each,
        fields=fields,
        outlinks=outlinks,
        pages=pages,
        counter=counter,
        bounded=all(selection.bounded for selection in selections)
        and all(field.bounded for field in fields)
        and ("css" not in content or is_bounded("css", content["css"])),
        shape=_shape(fields, each, selections, content),
        scripts=any(field.selection.js for _, field in leaves(fields)),
        functions=tuple(dict.fromkeys(field.selection.py for _, field in leaves(fields) if field.selection.py)),
        follow_ups=follow_ups,
        stage=spec.match.stage,
        platform=spec.match.platform,
        stop=_stop(pagination) if pagination else NO_STOP,
    )


def _stop(pagination: schema.Pagination) -> Stop:
    until = pagination.until
    limit, at_known = pagination.limit or 0, pagination.known == "stop"
    if until is None:
        return Stop(limit, at_known=at_known)
    return Stop(limit, until.field, until.date, seconds(until.age or "0"), at_known)


def _follow_up(key: str, follow_up: schema.FollowUp, name: str, version: int, spec: schema.RuleSpec) -> SecondPage:
    reader = schema.RuleSpec(
        match=schema.Match(url=follow_up.url), priority=spec.priority, outlinks=spec.outlinks, fields=follow_up.fields
    )
    return SecondPage(key, selection_of(follow_up), build(part_rule(name, key), version, reader))


def _check_follow_ups(
    follow_ups: tuple[SecondPage, ...], fields: tuple[ItemField, ...], each: Selection | None
) -> None:
    """Their links stand where items do, and no two of them make the same field."""
    if any(field.name == MISSING for follow_up in follow_ups for field in follow_up.rule.fields) or MISSING in {
        f.name for f in fields
    }:
        raise ValueError(f"a field cannot be called {MISSING!r}: this name is reserved")
    if follow_ups and not fields:
        raise ValueError("spec.followUps complete items, and without fields there are none")
    owner = dict.fromkeys((field.name for field in fields), "spec.fields")
    for follow_up in follow_ups:
        path = f"spec.followUps.{follow_up.name}"
        _check_source(follow_up.selection.source, _scope_of(each, "") if each is not None else "", path)
        for field in follow_up.rule.fields:
            other = owner.setdefault(field.name, path)
            if other != path:
                raise ValueError(
                    f"{path}.fields: {field.name!r} is also a field of {other}; an item needs distinct names"
                )


def _shape(
    fields: tuple[ItemField, ...], each: Selection | None, selections: list[Selection], content: Mapping[str, str]
) -> Shape:
    shapes = [css_shape(selection.expression) for selection in selections if selection.source == "css"]
    shapes += [css_shape(content["css"])] if "css" in content else []
    shapes += _shapes(fields, int(each is not None and each.source == "css"))
    return Shape(max((shape.up for shape in shapes), default=0), any(shape.counts for shape in shapes))


def _shapes(fields: tuple[ItemField, ...], within: int) -> Iterator[Shape]:
    for field in fields:
        is_css = field.selection.source == "css"
        if is_css:
            own = css_shape(field.selection.expression)
            yield Shape(own.up + within, own.counts)
        yield from _shapes(field.fields, within + is_css)


def selection_of(section: Section) -> Selection:
    """The selection that a section describes."""

    def given(key: str) -> str:
        return getattr(section, key, None) or ""

    source = next((key for key in schema.SOURCES if getattr(section, key, None) not in (None, "")), "")
    path = next((key for key in ("jsonpath", "jmespath") if given(key)), "")
    return Selection(
        source=source,
        expression=given(source),
        attr=given("attr"),
        html=given("html"),
        regex=given("regex"),
        path=path,
        query=given(path),
        js=given("js"),
        py=given("py"),
    )


def _fields(fields: Mapping[str, schema.Field] | None) -> tuple[ItemField, ...]:
    return tuple(_field(name, spec) for name, spec in (fields or {}).items())


def _field(name: str, spec: schema.Field) -> ItemField:
    inner = _fields(spec.fields)
    selection = selection_of(spec)
    options = {"decimal": spec.decimal, "currency": spec.currency, "format": spec.format, "dayFirst": spec.day_first}
    kind = spec.type or "text"
    return ItemField(
        name=name,
        selection=selection,
        many=(bool(inner) if spec.all is None else spec.all) or spec.join is not None,
        join=spec.join,
        type=kind,
        options={key: value for key, value in options.items() if key in spec.given},
        exists=spec.exists,
        trim=spec.trim is not False,
        replace=tuple((replace.pattern, replace.instead) for replace in spec.replace),
        default=spec.default,
        required=spec.required,
        fields=inner,
        is_simple_attribute=bool(selection.attr and not inner)
        and selection == Selection("css", selection.expression, selection.attr)
        and not spec.exists,
        is_simple_text=selection == Selection("css", selection.expression)
        and spec.given <= _SIMPLE_KEYS
        and kind == "text",
    )


def _links(links: schema.Links) -> LinkSelection:
    return LinkSelection(
        selection_of(links), tuple(links.include), tuple(links.exclude), links.depth, links.priority, links.stage
    )


def _scope_of(selection: Selection, outer: str) -> str:
    """What values of a selection are: elements of the tree of css or of xpath, or data."""
    if selection.path or selection.source in _DATA:
        return "data"
    if selection.source in _NODES:
        return "text" if selection.attr or selection.html or selection.regex else selection.source
    return "text" if selection.source or selection.regex else outer


def _check_scopes(fields: tuple[ItemField, ...], each: Selection | None, path: str) -> None:
    """Inside elements that css selected only css can go on, and likewise xpath: they are two trees. In data, paths."""
    scope = _scope_of(each, "") if each is not None else ""
    for field in fields:
        _check_scope(field, scope, f"{path}.{field.name}")


def _check_scope(field: ItemField, scope: str, path: str) -> None:
    _check_source(field.selection.source, scope, path)
    inner = _scope_of(field.selection, scope)
    for member in field.fields:
        _check_scope(member, inner, f"{path}.{member.name}")


def _check_source(source: str, scope: str, path: str) -> None:
    if source in _NODES and scope and source != scope:
        inside = {"css": "elements selected by css", "xpath": "elements selected by xpath"}.get(
            scope, "values, not elements"
        )
        other = f"; use {scope} here as well" if scope in _NODES else "; use jsonpath"
        raise ValueError(f"{path}: {source!r} cannot be used inside {inside}{other}")
