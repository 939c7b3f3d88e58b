"""The table of keys of a ParseRule document: what may stand where, and what it means in a line.

Invariant: no other place knows the keys; the published schema (docs/parserule.schema.json) is made from this table. How
a document becomes a rule is said in `load` and `spec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nephila.kernel.documents.job_schema import API_VERSION, NAME
from nephila.kernel.documents.schema_types import Choice, Count, Expression, Flag, Key, Kind, ListOf, Map, Text
from nephila.parser.rules.kinds import (
    MAX_SCRIPT_CHARS,
    Checked,
    DateFormat,
    Later,
    Named,
    OneOrMore,
    Prose,
    Ref,
    Refused,
    Selector,
)
from nephila.parser.rules.replacing import fault

KIND: Final = "ParseRule"
TYPES: Final = ("text", "number", "integer", "price", "date", "url", "bool", "json")
PAGE_FACTS: Final = ("url", "title", "lang", "text", "content_type", "fetched_at", "encoding")
MAX_VERSION: Final = 2**31 - 1
"""Of a version that a rule says itself; those above are hashes."""

SOURCES: Final = ("css", "xpath", "jsonld", "itemprop", "meta", "page", "constant")
"""Where a value may begin; at most one of them. Then, in this order: attr or html, regex, jsonpath or jmespath, js."""
_PATHS: Final = ("jsonpath", "jmespath")


def _check_field(field: Mapping[str, Any]) -> str:
    reason = _sources(field)
    if not reason and "fields" in field:
        taken = [name for name in _LEAF_ONLY if name in field]
        if taken:
            reason = f"{taken[0]!r} is said of a field with a value, and this one has fields of its own"
    if not reason and field.get("type", "text") not in ("number", "integer", "price") and "decimal" in field:
        reason = "'decimal' needs type number, integer or price"
    if not reason and "currency" in field and field.get("type") != "price":
        reason = "'currency' needs type price"
    if not reason and field.keys() & {"format", "dayFirst"} and field.get("type") != "date":
        reason = "'format' and 'dayFirst' need type date"
    if not reason and "exists" in field and field.get("type", "bool") != "bool":
        reason = "'exists' gives true or false and has no other type"
    return reason


def _sources(field: Mapping[str, Any]) -> str:
    said = [name for name in SOURCES if name in field]
    if len(said) > 1:
        return f"{said[0]!r} and {said[1]!r} exclude each other: a value begins at one place"
    if all(name in field for name in _PATHS):
        return "'jsonpath' and 'jmespath' exclude each other"
    if "attr" in field and "html" in field:
        return "'attr' and 'html' exclude each other"
    if field.keys() & {"attr", "html"} and said and said[0] not in ("css", "xpath"):
        return f"'attr' and 'html' are of an element, and {said[0]!r} selects none"
    return ""


def _check_links(links: Mapping[str, Any]) -> str:
    said = [name for name in ("css", "xpath", "jsonpath") if name in links]
    return f"{said[0]!r} and {said[1]!r} exclude each other" if len(said) > 1 else ""


def _check_follow_up(follow_up: Mapping[str, Any]) -> str:
    said = [name for name in ("css", "xpath", "jsonpath") if name in follow_up]
    return "" if len(said) == 1 else "it has to have exactly one of the keys css, xpath, jsonpath: the link"


def _check_pagination(pagination: Mapping[str, Any]) -> str:
    said = [name for name in ("css", "xpath", "jsonpath", "param") if name in pagination]
    if len(said) != 1:
        return "it has to have exactly one of the keys css, xpath, jsonpath, param"
    alone = [name for name in ("start", "step", "max") if name in pagination]
    return f"{alone[0]!r} needs 'param'" if alone and "param" not in pagination else ""


_REPLACE: Final = Checked(
    Map(
        {
            "pattern": Key(Expression(), "RE2; every match is replaced", needed=True),
            "with": Key(Prose(), r"what stands there instead, \1 for a group; nothing"),
        }
    ),
    lambda said: fault(said["pattern"], said.get("with", "")),
)
_FIELD_KEYS: Final[dict[str, Key]] = {
    "css": Key(Selector("css"), "elements, by a CSS selector"),
    "xpath": Key(Selector("xpath"), "elements or values, by XPath 1.0"),
    "jsonld": Key(Text(100), "objects of this @type in the page's JSON-LD; * for all"),
    "itemprop": Key(Text(100), "values of this microdata property"),
    "meta": Key(Text(200), "content of <meta> elements of this name or property (og:title, description, …)"),
    "page": Key(Choice(PAGE_FACTS), "what is known of the page itself"),
    "constant": Key(Prose(10_000), "always this text"),
    "attr": Key(Text(200), "an attribute of each element, instead of its text"),
    "html": Key(Choice(("inner", "outer")), "the markup of each element, instead of its text"),
    "regex": Key(Expression(), "RE2 on each value: the first group, or all of the match; alone: on the page's source"),
    "jsonpath": Key(Selector("jsonpath"), "JSONPath (RFC 9535) on each value; alone: on the document's JSON"),
    "jmespath": Key(Selector("jmespath"), "JMESPath on each value; alone: on the document's JSON"),
    "js": Key(
        Prose(MAX_SCRIPT_CHARS), "a JavaScript function (value, page) => value; only where scripts are switched on"
    ),
    "py": Key(Refused("Python scripts are not run: nothing confines them (docs/adr/0024); write js"), "never"),
    "all": Key(Flag(), "a list of all values; false: the first"),
    "join": Key(Prose(100), "all values as one text with this between them"),
    "type": Key(Choice(TYPES), "what each value is; text"),
    "decimal": Key(Choice((".", ",")), "the decimal sign of numbers; by the look of each"),
    "currency": Key(Text(3, "[A-Z]{3}", "a currency like EUR"), "of prices that name none"),
    "format": Key(OneOrMore(DateFormat(), 20), "how dates are written, as strptime has it: %d.%m.%Y"),
    "dayFirst": Key(Flag(), "03/04/2026 is the third of April; left out: such dates are no dates"),
    "exists": Key(Flag(), "true or false: whether anything is there"),
    "trim": Key(Flag(), "white space collapsed and cut at both ends; true"),
    "replace": Key(OneOrMore(_REPLACE, 50), "in each text, one after the other"),
    "default": Key(Prose(10_000), "when there is no value; of the field's type"),
    "required": Key(Flag(), "without it there is no item; false"),
    "fields": Key(Ref("fields", lambda: FIELDS), "fields of their own, relative to each selected value: objects"),
}
_LEAF_ONLY: Final = (
    *("attr", "html", "join", "type", "decimal", "currency", "format", "dayFirst", "exists", "trim", "replace"),
    *("default", "js"),
)
FIELD: Final[Kind] = Checked(Map(_FIELD_KEYS, short=Selector("css")), _check_field)
FIELDS: Final[Kind] = Named(Ref("field", lambda: FIELD))
_EACH_KEYS: Final = ("css", "xpath", "jsonld", "regex", "jsonpath", "jmespath")
_EACH: Final = Checked(Map({name: _FIELD_KEYS[name] for name in _EACH_KEYS}, short=Selector("css")), _sources)
_CONTENT: Final = Map(
    {
        "css": Key(Selector("css"), "an element is there"),
        "text": Key(Expression(), "RE2, searched in the page's source"),
        "contentType": Key(Expression(), "RE2, searched in the media type"),
    }
)
_MATCH: Final = Map(
    {
        "url": Key(
            OneOrMore(Expression(), 1000), "RE2, searched in the full URL; one of them has to match", needed=True
        ),
        "exclude": Key(OneOrMore(Expression(), 1000), "RE2, searched in the full URL; none may match"),
        "content": Key(_CONTENT, "what the page has to have as well; all of it"),
    },
)
_HINTS: Final[dict[str, Key]] = {
    "include": Key(OneOrMore(Expression(), 1000), "RE2, searched in the full URL; one has to match"),
    "exclude": Key(OneOrMore(Expression(), 1000), "RE2, searched in the full URL; none may match"),
    "depth": Key(Count(0, 1000), "added to the page's depth; 1"),
    "priority": Key(Count(0, 255), "for best-first; 0"),
    "render": Key(Choice(("never",), ("auto", "always")), "in a browser; never"),
}
_LINKS: Final = Checked(
    Map(
        {
            "css": Key(Selector("css"), "elements whose address goes on; all links when nothing is selected"),
            "xpath": Key(Selector("xpath"), "the same, by XPath; attributes and texts are addresses themselves"),
            "jsonpath": Key(Selector("jsonpath"), "addresses in a JSON document"),
            "attr": Key(Text(200), "the attribute with the address; href, or src"),
            **_HINTS,
        },
        short=Selector("css"),
    ),
    _check_links,
)
_PAGINATION: Final = Checked(
    Map(
        {
            "css": Key(Selector("css"), "elements that lead to the next pages"),
            "xpath": Key(Selector("xpath"), "the same, by XPath"),
            "jsonpath": Key(Selector("jsonpath"), "addresses of next pages in a JSON document"),
            "attr": Key(Text(200), "the attribute with the address; href"),
            "param": Key(Text(100), "query parameter that counts: the next page follows one that had items"),
            "start": Key(Count(), "value of the parameter on a first page without it; 1"),
            "step": Key(Count(1, 100_000), "1"),
            "max": Key(Count(1, 10**9), "last value; 1000"),
        },
        short=Selector("css"),
    ),
    _check_pagination,
)
_FOLLOW_UP: Final = Checked(
    Map(
        {
            "css": Key(
                Selector("css"), "the element that leads to the second page, inside the item where there is each"
            ),
            "xpath": Key(Selector("xpath"), "the same, by XPath"),
            "jsonpath": Key(Selector("jsonpath"), "its address in a JSON document"),
            "attr": Key(Text(200), "the attribute with the address; href, or src"),
            "url": Key(
                OneOrMore(Expression(), 1000), "RE2, searched in the full URL: pages that are read for it", needed=True
            ),
            "fields": Key(Ref("fields", lambda: FIELDS), "what the second page adds to the item", needed=True),
        }
    ),
    _check_follow_up,
)
_STEP: Final = Map(
    {
        "click": Key(Selector("css"), "an element"),
        "fill": Key(Map({"css": Key(Selector("css"), "", True), "value": Key(Prose(), "", True)}), "a text field"),
        "waitFor": Key(Selector("css"), "until it is there"),
        "scroll": Key(Count(1, 1000), "to the end, so many times"),
    },
    only_one=True,
)
SPEC: Final = Map(
    {
        "match": Key(_MATCH, "which pages", needed=True),
        "priority": Key(Count(-1000, 1000), "of several rules for a page the highest counts, then the first name; 0"),
        "version": Key(Count(1, MAX_VERSION), "written to every item; left out: a hash of the rule"),
        "each": Key(_EACH, "what is one item; left out: the page is"),
        "fields": Key(Ref("fields", lambda: FIELDS), "what an item has; left out: the rule is about links"),
        "followUps": Key(
            Named(_FOLLOW_UP, 10), "second pages that complete the items; they go through the job's scope like any link"
        ),
        "outlinks": Key(OneOrMore(_LINKS, 50, 0), "which links go on, the first that takes one; left out: all of them"),
        "pagination": Key(_PAGINATION, "links to further pages of a list; they go on at the page's own depth"),
        "steps": Key(
            Later(ListOf(_STEP, 100), "what a browser does on the page"), "in a browser, before the page is read"
        ),
    }
)
DOCUMENT: Final = Map(
    {
        "apiVersion": Key(Choice((API_VERSION,)), API_VERSION, needed=True),
        "kind": Key(Choice((KIND,)), KIND, needed=True),
        "metadata": Key(Map({"name": Key(NAME, "the rule's name", needed=True)}), "the rule", needed=True),
        "spec": Key(SPEC, "all of it", needed=True),
    }
)


def schema() -> dict[str, Any]:
    """The document as JSON Schema (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": KIND,
        "description": "What is taken from the pages of a site. Made by tools/schemas.py; do not edit.",
        **DOCUMENT.schema(),
        "$defs": {"field": FIELD.schema(), "fields": FIELDS.schema()},
    }
