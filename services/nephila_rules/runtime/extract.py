"""A rule applied to a document: items, links and problems, as plain values that can cross a process boundary.

Pure: no clock, no bus. Invariants: an item without a required field is dropped and reported; number and size of the
results of a page are bounded; equal bytes give equal results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final
from zlib import crc32

import msgspec
from nephila.kernel.fragment_routes import FORM, form_of, parse_routed
from nephila.kernel.pages.item_parts import MISSING, NO_LINK, NOT_READ, NOT_YET, missing_parts
from nephila.native import UrlError, parse_url, quoted
from nephila.parser.page.html_tree import css_first

from nephila_rules.runtime.document import Document
from nephila_rules.runtime.json_values import storable
from nephila_rules.runtime.select import Element, Script, attributes, select, value_or_text
from nephila_rules.runtime.selectors import compiled
from nephila_rules.runtime.spec import ItemField, LinkSelection, Rule, Selection
from nephila_rules.runtime.values import simple_texts, value_of

MAX_ITEMS: Final = 10_000
MAX_PROBLEMS: Final = 20
MAX_LINKS: Final = 10_000
MAX_ITEM_BYTES: Final = 1 << 20
"""Bytes of the JSON of one item; a larger item is dropped."""
MAX_BYTES: Final = 8 << 20
"""Bytes of the JSON of all items of a page."""
MAX_COUNTED: Final = 100
"""Fields that are counted for rule health."""
TOO_MANY: Final = f"the page has more than {MAX_LINKS:,} such links"
_LOOKED_AT: Final = 100
_LONG_CHARS: Final = 2_000
_DIGITS: Final = frozenset("0123456789")
_digit: Final = re.compile(r"\d").search
_MAX_TRIED: Final = 50
"""Further values that are tried if the first one is not of the field's type."""


class RuleLink(msgspec.Struct, array_like=True, frozen=True):
    """A link that a rule selects; `depth` is added to the page's."""

    href: str
    depth: int
    priority: int
    anchor: str
    stage: str = ""
    """Stage of the linked page; empty: that of the page."""


class FieldCount(msgspec.Struct, array_like=True):
    """Counts of one field on one page, and features of its first value."""

    tried: int = 0
    filled: int = 0
    """Values from the page, not from a default."""
    refused: int = 0
    """Empty because the found value is not of the field's type."""
    length: int = 0
    """Characters of the first value."""
    digits: bool = False
    hash: int = 0
    """CRC-32 of the first value."""


class Extraction(msgspec.Struct, array_like=True):
    """Result of a rule on a page."""

    items: list[bytes] = msgspec.field(default_factory=list)
    """JSON of each."""
    links: list[RuleLink] | None = None
    """Links to follow; None: all links of the page."""
    next_pages: list[RuleLink] = msgspec.field(default_factory=list)
    """Links of the pagination, in addition."""
    problems: list[str] = msgspec.field(default_factory=list)
    """Values that were not usable, with reasons; the first few."""
    missing: list[str] = msgspec.field(default_factory=list)
    """Paths of fields that were empty at least once."""
    counts: dict[str, FieldCount] = msgspec.field(default_factory=dict)
    """Path of a field → its counts."""
    second_pages: list[RuleLink] = msgspec.field(default_factory=list)
    """Links to second pages, which complete the items."""


class TimeLimitError(Exception):
    """A rule exceeded its time limit; its partial result is discarded."""


TimeCheck = Callable[[], None]
"""Called between two steps; raises `TimeLimitError` at the time limit."""


class _Missing(Exception):
    """A required field has no value."""


def _no_time_limit() -> None:
    """No limit: the caller can kill the process."""


def extract(
    rule: Rule, document: Document, script: Script | None = None, *, check_time: TimeCheck = _no_time_limit
) -> Extraction:
    """Items and links of a document. O(document) for bounded rules, but for expressions that look at all that follows
    for each of many matches, and groups of many elements: who cannot kill this gives a `check_time`. Raises what that
    does.
    """
    run = _Run(rule, document, script, check_time)
    if rule.fields:
        run.items()
    if rule.outlinks is not None:
        run.found.links = run.links(rule.outlinks)
    if rule.pages is not None:
        run.found.next_pages = run.links((rule.pages,))
    elif rule.counter is not None and (run.found.items if rule.fields else run.found.links):
        run.found.next_pages = run.next_page()
    return run.found


class _Run:
    def __init__(self, rule: Rule, document: Document, script: Script | None, check_time: TimeCheck) -> None:
        self.found = Extraction()
        self._check_time = check_time
        self._rule = rule
        self._document = document
        self._script = script
        self._base_url: str | None = None
        self._refused = False
        """Something in the field at hand is not of its type."""
        self._defaulted = False
        self._second: dict[str, RuleLink] = {}

    # ---- items

    def items(self) -> None:
        """Every item of the page, as JSON."""
        rule, size = self._rule, 0
        scopes: list[Any] = [None]
        if rule.each is not None:
            scopes = list(self._selected(rule.each, None, "each"))
            if len(scopes) >= MAX_ITEMS:
                self._problem("each", f"more than {MAX_ITEMS:,} items; the rest is left out")
        for scope in scopes[:MAX_ITEMS]:
            try:
                item = self._object(rule.fields, scope, "")
            except _Missing:
                continue
            if rule.follow_ups:
                self._begin_parts(item, scope)
            data = _encode(item)
            size += len(data)
            if len(data) > MAX_ITEM_BYTES or size > MAX_BYTES:
                self._problem("item", f"larger than {MAX_ITEM_BYTES >> 20} MiB; it is left out")
                size -= len(data)
                continue
            self.found.items.append(data)
        self.found.second_pages = list(self._second.values())

    def _begin_parts(self, item: dict[str, Any], scope: Any) -> None:
        """What second pages will add to an item: empty fields, the mark, and the links to them."""
        missing: dict[str, tuple[str, str]] = {}
        for follow_up in self._rule.follow_ups:
            for field in follow_up.rule.fields:
                item[field.name] = [] if field.many and field.join is None else None
            values = self._selected(follow_up.selection, scope, f"followUps.{follow_up.name}", first=True)
            href = next(filter(None, (self._href(value) for value in values)), "")
            if not href or len(self._second) >= MAX_LINKS:
                missing[follow_up.name] = (href, NO_LINK if not href else TOO_MANY)
            elif not follow_up.rule.matches(href):
                missing[follow_up.name] = (href, NOT_READ)
            else:
                missing[follow_up.name] = (href, NOT_YET)
                self._second.setdefault(href, RuleLink(href, 1, 0, ""))
        item[MISSING] = missing_parts(missing)

    def _object(self, fields: tuple[ItemField, ...], scope: Any, prefix: str) -> dict[str, Any]:
        item: dict[str, Any] = {}
        for field in fields:
            self._check_time()
            path = prefix + field.name
            self._refused = self._defaulted = False
            item[field.name] = value = self._value(field, scope, path)
            if field.fields:
                self._refused = self._defaulted = False
            count = self.found.counts.get(path)
            if count is not None or len(self.found.counts) < MAX_COUNTED:
                self._count(count or self.found.counts.setdefault(path, FieldCount()), value)
            if value is None or value == []:
                self._empty(path)
                if field.required:
                    self._problem(path, "required and without a value; there is no item")
                    raise _Missing
        return item

    def _count(self, count: FieldCount, value: Any) -> None:
        count.tried += 1
        if value is None or value is False or value == [] or self._defaulted:
            count.refused += self._refused
            return
        if not count.filled:
            text = value if type(value) is str else _as_text(value)
            start = text[:_LOOKED_AT]
            count.length, count.hash = len(text), crc32(start.encode("utf-8", "replace"))
            count.digits = not _DIGITS.isdisjoint(start) if start.isascii() else _digit(start) is not None
        count.filled += 1

    def _value(self, field: ItemField, scope: Any, path: str) -> Any:
        if field.is_simple_text and not self._document.is_xml:
            return self._combined(field, simple_texts(field, self._document, scope), path)
        if field.is_simple_attribute and not self._document.is_xml:
            values = attributes(field.selection, self._document, scope, first=not field.many)
            return self._combined(field, self._typed(field, values, path), path)
        raw = self._selected(field.selection, scope, path, first=field.exists or not field.many)
        if field.exists:
            return any(True for _ in raw)
        if field.fields:
            return self._group(field, raw, path)
        return self._combined(field, self._typed(field, raw, path), path)

    def _combined(self, field: ItemField, values: list[Any], path: str) -> Any:
        """One value, a list or a joined text; the default where there is none."""
        if field.join is not None:
            if not values:
                return self._default(field, path)
            return field.join.join([_as_text(value) for value in values])
        if not values:
            default = self._default(field, path)
            return default if not field.many else ([] if default is None else [default])
        return values if field.many else values[0]

    def _group(self, field: ItemField, raw: Iterator[Any], path: str) -> Any:
        objects = []
        for scope in raw if field.many else islice(raw, 1):
            try:
                objects.append(self._object(field.fields, scope, path + "."))
            except _Missing:
                continue
        return objects if field.many else (objects[0] if objects else None)

    def _typed(self, field: ItemField, raw: Iterator[Any], path: str) -> list[Any]:
        values: list[Any] = []
        for number, raw_value in enumerate(raw):
            try:
                if field.type == "url" and isinstance(text := value_or_text(raw_value), str):
                    raw_value = self._document.reference(text)
                value = value_of(field, raw_value, self._base, self._check_time)
            except ValueError as error:
                self._refused = True
                self._problem(path, f"{_short(raw_value)}: {error}")
                if not field.many and number >= _MAX_TRIED:
                    break
                continue
            if value is not None:
                values.append(value)
                if not field.many:
                    break
        return values

    def _default(self, field: ItemField, path: str) -> Any:
        if field.default is None:
            return None
        self._defaulted = True
        try:
            return value_of(field, field.default, self._base)
        except ValueError as error:
            self._problem(path, f"default: {error}")
            return None

    # ---- links

    def links(self, rules: tuple[LinkSelection, ...]) -> list[RuleLink]:
        """Links that some of the rules select, each URL once, with the hints of the first."""
        by_url: dict[str, RuleLink] = {}
        for rule in rules:
            selection = rule.selection if rule.selection.source or rule.selection.path else _ANCHORS
            values = self._selected(selection, None, "outlinks")
            for value in values:
                href = self._href(value)
                if href and href not in by_url and _goes_on(rule, href):
                    anchor = value_or_text(value) if isinstance(value, Element) else ""
                    by_url[href] = RuleLink(href, rule.depth, rule.priority, " ".join(anchor.split())[:200], rule.stage)
                    if len(by_url) >= MAX_LINKS:
                        self._problem("outlinks", f"more than {MAX_LINKS:,} links; the rest is left out")
                        return list(by_url.values())
        return list(by_url.values())

    def next_page(self) -> list[RuleLink]:
        """The URL of the next page where a parameter counts them."""
        counter = self._rule.counter
        assert counter is not None
        from urllib.parse import quote_plus, unquote_plus, urlsplit

        parts = urlsplit(self._document.url)
        # The other parameters stay as they are: their encoding may be that of the site.
        form = form_of(self._document.url) if self._document.routes else None
        query_text = parts.query if form is None else form
        pairs = query_text.split("&") if query_text and query_text.count("&") < 999 else []
        rest: list[str] = []
        now = counter.start
        for pair in pairs:
            name, _, value = pair.partition("=")
            if unquote_plus(name) != counter.param:
                rest.append(pair)
            elif value.isascii() and value.isdecimal() and len(value) < 12:
                now = int(value)
            else:
                now = counter.start
        if now + counter.step > counter.most:
            return []
        query = "&".join([*rest, f"{quote_plus(counter.param)}={now + counter.step}"])
        if form is not None:
            return [RuleLink(parts._replace(fragment=FORM + query).geturl(), 0, 0, "")]
        fragment = parts.fragment if self._document.routes else ""
        return [RuleLink(parts._replace(query=query, fragment=fragment).geturl(), 0, 0, "")]

    def _href(self, value: Any) -> str:
        raw = value
        if isinstance(value, Element):
            raw = value.attr("href") or value.attr("src")
        if not isinstance(raw, str) or not raw.strip():
            return ""
        parse = parse_routed if self._document.routes else parse_url
        try:
            return parse(self._document.reference(raw), self._base() or None).href
        except UrlError:
            return ""

    # ---- common

    def _selected(self, selection: Selection, scope: Any, path: str, *, first: bool = False) -> Iterator[Any]:
        try:
            for value in select(selection, self._document, scope, self._script, first=first):
                self._check_time()
                yield value
        except ValueError as error:
            self._problem(path, str(error))

    def _base(self) -> str:
        """What relative URLs are relative to; of a page with <base> that."""
        if self._base_url is None:
            self._base_url = base_of(self._document)
        return self._base_url

    def _problem(self, path: str, text: str) -> None:
        if len(self.found.problems) < MAX_PROBLEMS:
            self.found.problems.append(f"{path}: {text}"[:500])

    def _empty(self, path: str) -> None:
        if path not in self.found.missing:
            self.found.missing.append(path)


def base_of(document: Document) -> str:
    """The URL that relative ones of a document are resolved against; "" when it has none."""
    own = document.url
    if document.is_json or document.is_xml:
        return own
    node = css_first(document.tree.root, "base[href]")
    try:
        reference = document.reference(node.attributes.get("href") or "") if node is not None else ""
        return parse_url(reference, own or None).href if node is not None else own
    except UrlError:
        return own


def _goes_on(rule: LinkSelection, href: str) -> bool:
    if rule.include and not any(compiled("regex", pattern).search(href) for pattern in rule.include):
        return False
    return not any(compiled("regex", pattern).search(href) for pattern in rule.exclude)


def _encode(item: Any) -> bytes:
    try:
        return msgspec.json.encode(_quoted(item) if type(item) is dict else item)
    except (UnicodeEncodeError, OverflowError, RecursionError, TypeError):
        import json

        text = json.dumps(storable(item), ensure_ascii=True, default=str, allow_nan=False)
        return text.encode()


def _quoted(item: dict[str, Any]) -> dict[str, Any]:
    """An item with its long texts as JSON: made by themselves they take a third of the time."""
    long = [(name, value) for name, value in item.items() if type(value) is str and len(value) > _LONG_CHARS]
    return {**item, **{name: msgspec.Raw(quoted(value)) for name, value in long}} if long else item


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value).decode()


def _short(raw: Any) -> str:
    value = value_or_text(raw)
    text = value if isinstance(value, str) else str(value)
    text = " ".join(text.split())
    return ascii(text if len(text) <= 60 else text[:59] + "…")


_ANCHORS: Final = Selection(source="css", expression="a[href], area[href]")
