"""Near matches for an empty field: the selector without a step or condition, and names similar to its own.

For a person who looks at one page. Invariant: every hint was run on the page and names its result there.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from nephila_rules.runtime.document import Document
from nephila_rules.runtime.select import select, value_or_text
from nephila_rules.runtime.selectors import fault
from nephila_rules.runtime.spec import ItemField, Rule, Selection, leaves

MAX_HINTS: Final = 4
MAX_NAMES: Final = 2_000
MAX_OBJECTS: Final = 100
_CLASS: Final = re.compile(r"\.([\w-]+)")
_LAST: Final = re.compile(r"^(.*)(\.[\w-]+|#[\w-]+|\[[^\]]*\]|:[\w-]+(?:\([^)]*\))?)$")


def near_matches(rule: Rule, document: Document, missing: Iterable[str]) -> dict[str, list[str]]:
    """Path of each empty field → hints, the nearest first."""
    fields = dict(leaves(rule.fields))
    hints_by_path: dict[str, list[str]] = {}
    for path in missing:
        if path in fields:
            hints = _hints(fields[path], document, _around(rule, document, path))
            hints_by_path[path] = list(dict.fromkeys(hints))[:MAX_HINTS]
    return hints_by_path


def _around(rule: Rule, document: Document, path: str) -> list[Any]:
    """The first JSON objects that enclose a field; none if elements or the whole document enclose it."""
    selections = [rule.each] if rule.each is not None else []
    fields = rule.fields
    for name in path.split(".")[:-1]:
        outer = next(field for field in fields if field.name == name)
        selections.append(outer.selection)
        fields = outer.fields
    scopes: list[Any] = [None]
    for selection in selections:
        scopes = [value for scope in scopes for value in _run(selection, document, scope)][:MAX_OBJECTS]
    return [scope for scope in scopes if isinstance(scope, dict | list)]


def _hints(field: ItemField, document: Document, around: list[Any]) -> Iterator[str]:
    selection = field.selection
    if around and selection.path == "jsonpath" and not selection.source:
        yield from islice((hint for value in around for hint in _of_jsonpath(selection.query, value)), 1)
        return
    if selection.regex or selection.path or selection.attr:
        yield from _hints_without_steps(selection, document)
    if selection.source == "css":
        yield from _of_css(selection.expression, document)
    elif selection.source == "xpath":
        yield from _of_xpath(selection.expression, document)
    elif selection.source == "meta":
        yield from _of_names(selection.expression, document.meta_names, "meta")
    elif selection.source == "jsonld":
        types = [str(entity.get("@type")) for entity in document.ld if entity.get("@type")]
        yield from _of_names(selection.expression, types, "jsonld")
    elif selection.source == "itemprop":
        names = [node.attributes.get("itemprop") or "" for node in document.tree.css("[itemprop]")[:MAX_NAMES]]
        yield from _of_names(selection.expression, names, "itemprop")
    elif selection.path == "jsonpath":
        yield from _of_jsonpath(selection.query, document.json)


def _hints_without_steps(selection: Selection, document: Document) -> Iterator[str]:
    """The selector matches, but attr, regex or path leaves no value."""
    bare = Selection(selection.source, selection.expression)
    values = _run(bare, document)
    if not values:
        return
    if selection.attr:
        names = getattr(values[0].node, "attributes", None) or getattr(values[0].node, "attrib", {})
        there = ", ".join(names) or "none"
        yield f"{selection.source} selects {len(values)}, without the attribute {selection.attr!r}; there are: {there}"
    elif selection.regex:
        source = selection.source or "the page"
        yield f"{source} gives {_short(values[0])}, in which regex {selection.regex!a} has no match"
    else:
        yield f"{selection.source or 'the page'} gives {_short(values[0])}, in which {selection.path} has no match"


def _of_css(expression: str, document: Document) -> Iterator[str]:
    for relaxed in _relaxed(expression):
        values = _run(Selection("css", relaxed), document)
        if values:
            yield f"css {relaxed!a} selects {len(values)}: {_short(values[0])}"
    classes = _CLASS.findall(expression)
    if classes:
        names = {
            name
            for node in document.tree.css("[class]")[:MAX_NAMES]
            for name in (node.attributes.get("class") or "").split()
        }
        for word in classes:
            for close in difflib.get_close_matches(word, names - {word}, n=2, cutoff=0.7):
                instead = expression.replace(f".{word}", f".{close}")
                values = [] if fault("css", instead) else _run(Selection("css", instead), document)
                if values:
                    yield f"css {instead!a} selects {len(values)}: {_short(values[0])}"


def _relaxed(expression: str) -> Iterator[str]:
    """The expression without its last condition, then without its first steps."""
    seen = {expression}
    queue = [expression.partition(",")[0].strip()]
    while queue and len(seen) < 30:
        candidate = queue.pop(0)
        parts = candidate.split()
        shorter = [" ".join(parts[1:]).lstrip(">+~ ")] if len(parts) > 1 else []
        cut = _LAST.match(candidate)
        if cut and cut[1].strip() and not cut[1].rstrip().endswith((">", "+", "~")):
            shorter.append(cut[1].strip())
        for text in shorter:
            if text and text not in seen:
                seen.add(text)
                queue.append(text)
                if not fault("css", text):
                    yield text


def _of_xpath(expression: str, document: Document) -> Iterator[str]:
    text = expression
    for _ in range(10):
        shorter = re.sub(r"(\[[^\[\]]*\]|/[^/\[\]]+)$", "", text)
        if shorter == text or not shorter.strip("/"):
            return
        text = shorter
        values = [] if fault("xpath", text) else _run(Selection("xpath", text), document)
        if values:
            yield f"xpath {text!a} selects {len(values)}: {_short(values[0])}"
            return


def _of_names(word: str, names: list[str], kind: str) -> Iterator[str]:
    distinct_names = list(dict.fromkeys(name for name in names if name))
    close = difflib.get_close_matches(word, distinct_names, n=3, cutoff=0.6)
    for name in close:
        yield f"the page has {kind}: {name}"
    if not close and distinct_names:
        yield f"{kind} on the page: {', '.join(distinct_names[:12])}"


def _of_jsonpath(query: str, value: Any) -> Iterator[str]:
    if value is None:
        yield "the page is no JSON; for JSON in a script, select the script with css first"
        return
    text = query
    for _ in range(20):
        shorter = re.sub(r"(\.\.?[^.\[\]]+|\[[^\[\]]*\])$", "", text)
        if shorter == text or not shorter:
            break
        text = shorter
        values = [] if fault("jsonpath", text) else _of_value(text, value)
        if values:
            keys = ", ".join(list(values[0])[:12]) if isinstance(values[0], dict) else type(values[0]).__name__
            yield f"jsonpath {text!a} gives {len(values)}; the first has: {keys}"
            return


def _of_value(query: str, value: Any) -> list[Any]:
    from nephila_rules.runtime.jsonpath import query as ask
    from nephila_rules.runtime.selectors import compiled

    return ask(compiled("jsonpath", query), value)


def _run(selection: Selection, document: Document, scope: Any = None) -> list[Any]:
    try:
        return list(select(selection, document, scope))
    except ValueError:
        return []


def _short(value: Any) -> str:
    text = " ".join(str(value_or_text(value)).split())
    return ascii(text if len(text) <= 60 else text[:59] + "…") if not text.isprintable() else repr(text[:60])
