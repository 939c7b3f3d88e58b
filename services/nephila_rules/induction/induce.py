"""Selections of fields from values that a person names on a few pages: those that hold on the others as well.

For each field every place of its value suggests selections (`places`). A selection stays if it gives the named value on
every page where one is named, as a rule would take it: its first value. Among those the choice goes by how many of the
other pages it fills with values that differ and are of one type, then by how long its kind is likely to hold.
After the idea of wrapper induction by ranked selectors (Kushmerick 1997; Dalvi, Kumar, Soliman: "Automatic wrappers for
large scale web extraction", VLDB 2011): noisy candidates, ranked by what they give on pages without labels.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice
from typing import Final

from nephila_rules.induction.places import Candidate, candidates
from nephila_rules.induction.wanted import folded, is_same, type_of
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.select import select, value_or_text
from nephila_rules.runtime.spec import Selection

MAX_TRIED: Final = 400
"""Selections of a field that are tried on the pages, the cheapest first."""
MAX_JUDGED: Final = 60
"""Selections that give the named values and are compared on the other pages."""
MAX_CHOICES: Final = 5
MAX_OTHERS: Final = 20
"""Pages without named values that selections are compared on."""
_AMBIGUOUS: Final = 1.5
"""Cost of a selection that gives several values where one is named."""
_NOT_NAMED: Final = 6.0
"""Cost of a list with values that were not named, where all were."""
_EMPTY: Final = 4.0
"""Cost of a selection that gives nothing on the other pages."""
_SPARSE: Final = 1.5
"""Cost of one that gives something on few of them, at most: a field may be optional."""
_ANCHOR_CHARS: Final = 12

_Named = Sequence[tuple[Document, list[str]]]
"""Pages and the values of a field that were named there."""


@dataclass(frozen=True, slots=True)
class Example:
    """A page and the values that a person named on it: field → its value, or a list of all its values."""

    document: Document
    values: Mapping[str, str | list[str]]
    partial: frozenset[str] = frozenset()
    """Fields of which the list names some values only."""
    without: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Field → values of the page that it must not have."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A selection for a field."""

    selection: Selection
    many: bool
    type: str
    filled: int
    """Of the other pages, those on which it gives a value."""
    others: int
    cost: float
    sample: tuple[str, ...]
    """Its values on the first of the other pages."""


def induce(
    examples: Sequence[Example],
    others: Sequence[Document] = (),
    most: int = MAX_CHOICES,
    *,
    kind: Callable[[Selection], str] = lambda _: "",
    more_cost: Callable[[Selection], float] = lambda _: 0.0,
) -> dict[str, list[Choice]]:
    """Field → selections that give every named value, the best first, `most` of each kind; none where no selection
    does. `more_cost`: is added to the cost of a selection; not negative."""
    names = dict.fromkeys(name for example in examples for name in example.values)
    rest = list(others)[:MAX_OTHERS]
    return {name: _choices(name, examples, rest, most, kind, more_cost) for name in names}


def _choices(
    name: str,
    examples: Sequence[Example],
    others: Sequence[Document],
    most: int,
    kind: Callable[[Selection], str],
    more_cost: Callable[[Selection], float],
) -> list[Choice]:
    named = [(example.document, _listed(example.values[name])) for example in examples if name in example.values]
    many = any(isinstance(example.values.get(name), list) for example in examples)
    absent = [example.document for example in examples if name in example.values and not _listed(example.values[name])]
    named = [(document, values) for document, values in named if values]
    partial = any(name in example.partial for example in examples)
    fitting = _kept(named, absent, many=many) or list(_united(named, absent, many=many))
    refused = [(example.document, example.without[name]) for example in examples if example.without.get(name)]
    fitting = [candidate for candidate in fitting if not _gives_any(candidate.selection, refused, many=many)]
    fitting = [Candidate(candidate.selection, candidate.cost + more_cost(candidate.selection)) for candidate in fitting]
    judged: defaultdict[str, list[Choice]] = defaultdict(list)
    for candidate in sorted(fitting, key=lambda candidate: candidate.cost):
        best = judged[kind(candidate.selection)]
        # What it gives on other pages only adds to its cost: it cannot be among the best any more.
        if len(best) < most or candidate.cost < best[-1].cost:
            best.append(_judged(candidate, named, others, many=many, partial=partial))
            best.sort(key=lambda choice: choice.cost)
            del best[most:]
    return sorted((choice for best in judged.values() for choice in best), key=lambda choice: choice.cost)


def _gives_any(selection: Selection, refused: Sequence[tuple[Document, Sequence[str]]], *, many: bool) -> bool:
    """Whether it gives one of the values that it must not give."""
    return any(
        any(is_same(text, folded(value), document.url) for value in values)
        for document, values in refused
        for text in _texts(selection, document, 500 if many else 1)
    )


def _kept(named: _Named, absent: Sequence[Document], *, many: bool) -> list[Candidate]:
    """Selections that give every named value, and nothing where the field is named as empty."""
    tried = nsmallest(MAX_TRIED, _suggested(named), key=lambda candidate: candidate.cost)
    fitting = [
        candidate for candidate in _anchored(tried, named, many=many) if _holds(candidate.selection, named, many=many)
    ]
    fitting = [
        candidate for candidate in fitting if not any(_first(candidate.selection, document) for document in absent)
    ]
    return nsmallest(MAX_JUDGED, fitting, key=lambda candidate: candidate.cost)


def _united(named: _Named, absent: Sequence[Document], *, many: bool) -> Iterator[Candidate]:
    """Pages of two kinds: a CSS selector for the first one's kind, together with one for the others'."""
    if len(named) < 2:
        return
    for first in _kept(named[:1], absent, many=many):
        if first.selection.source != "css" or first.selection.regex:
            continue
        rest = [pair for pair in named if not _holds(first.selection, [pair], many=many)]
        if any(_first(first.selection, document) for document, _ in rest):
            continue
        for second in _kept(rest, absent, many=many)[:MAX_CHOICES]:
            expressions = first.selection.expression, second.selection.expression
            both = Selection("css", ", ".join(expressions), attr=first.selection.attr)
            if second.selection.source == "css" and not second.selection.regex and _holds(both, named, many=many):
                yield Candidate(both, first.cost + second.cost)
        return


def _listed(value: str | list[str]) -> list[str]:
    return [folded(text) for text in ([value] if isinstance(value, str) else value) if folded(text)]


def _suggested(named: _Named) -> Iterator[Candidate]:
    """Selections of all places, each with its lowest cost."""
    lowest: dict[Selection, float] = {}
    for document, values in named:
        for text in values[:2]:
            for candidate in candidates(document, text):
                lowest[candidate.selection] = min(candidate.cost, lowest.get(candidate.selection, candidate.cost))
    return (Candidate(selection, cost) for selection, cost in lowest.items())


def _anchored(tried: Iterable[Candidate], named: _Named, *, many: bool) -> Iterator[Candidate]:
    """Each selection, and with a regex where its text has the value as a part on every page."""
    for candidate in tried:
        yield candidate
        if not many and (regex := _part(candidate.selection, named)):
            yield Candidate(_with_regex(candidate.selection, regex), candidate.cost + 0.7)


def _with_regex(selection: Selection, regex: str) -> Selection:
    return Selection(
        selection.source,
        selection.expression,
        attr=selection.attr,
        regex=regex,
        path=selection.path,
        query=selection.query,
    )


def _part(selection: Selection, named: _Named) -> str:
    """What stands before and behind the value on every page, as an expression with one group; "" if there is none."""
    if selection.path:
        return ""
    before, behind = [], []
    for document, (value, *_) in named:
        text = _first(selection, document)
        at = text.find(value)
        if at < 0 or text == value:
            return ""
        before.append(text[:at])
        behind.append(text[at + len(value) :])
    start, end = _anchor(before), _anchor([text[::-1] for text in behind], behind=True)
    return f"{start}(.+{'?' if any(behind) else ''}){end}" if start is not None and end is not None else ""


def _anchor(texts: Sequence[str], *, behind: bool = False) -> str | None:
    """The expression of what stands before the value, or `behind` it (those texts are reversed); None: nothing that the
    pages have in common. Numbers stand for any number; it may be missing where it is on some page."""
    edge = "$" if behind else "^"
    there = [text for text in texts if text.strip()]
    if not there:
        return edge
    shapes = {_shape_of(text[::-1] if behind else text) for text in there}
    if len(shapes) == 1 and (len(there) > 1 or not re.search(r"[^\W\d]{4}", there[0])):
        (shape,) = shapes
        optional = f"(?:{shape})?" if len(there) < len(texts) else shape
        return f"\\s*{optional}{edge}" if behind else f"{edge}{optional}\\s*"
    shared = _common_end(texts)[-_ANCHOR_CHARS:]
    if not shared.strip() or (len(texts) == 1 and shared.strip()[-1] not in ":=#$€£¥|(["):
        return None
    shape = _shape_of(shared[::-1] if behind else shared)
    return f"\\s*{shape}" if behind else f"{shape}\\s*"


def _shape_of(text: str) -> str:
    """An expression for a text, any white space and any numbers in it."""
    return re.sub(r"\d+", r"\\d+", re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(text.strip())))


def _common_end(texts: Sequence[str]) -> str:
    shortest = min(texts, key=len)
    for length in range(len(shortest), 0, -1):
        if all(text.endswith(shortest[-length:]) for text in texts):
            return shortest[-length:]
    return ""


def _texts(selection: Selection, document: Document, most: int) -> list[str]:
    try:
        values = [value_or_text(value) for value in islice(select(selection, document, None), most)]
    except ValueError:
        return []
    return [
        text for value in values if not isinstance(value, dict | list) and value is not None and (text := folded(value))
    ]


def _first(selection: Selection, document: Document) -> str:
    return next(iter(_texts(selection, document, 20)), "")


def _holds(selection: Selection, named: _Named, *, many: bool) -> bool:
    for document, values in named:
        texts = _texts(selection, document, 500 if many else 20)
        if not many:
            if not texts or not is_same(texts[0], values[0], document.url):
                return False
        elif not _has_in_order(texts, values, document.url):
            return False
    return True


def _has_in_order(texts: Sequence[str], values: Sequence[str], base: str) -> bool:
    """Whether the named values stand among those found, in their order."""
    left = iter(texts)
    return all(any(is_same(text, value, base) for text in left) for value in values)


def _judged(candidate: Candidate, named: _Named, others: Sequence[Document], *, many: bool, partial: bool) -> Choice:
    most = 500 if many else 3
    own = [_texts(candidate.selection, document, most) for document, _ in named]
    on_others = [_texts(candidate.selection, document, most) for document in others]
    filled = [texts for texts in on_others if texts]
    cost = candidate.cost
    if many:
        values = sum(len(values) for _, values in named)
        extra = sum(map(len, own)) - values
        cost += (1.0 if partial else 4.0) * extra / (extra + values) + (0.0 if partial or not extra else _NOT_NAMED)
    else:
        cost += _AMBIGUOUS * (
            any(len(set(texts)) > 1 for texts in own) + 0.5 * any(len(set(texts)) > 1 for texts in on_others)
        )
    kind = type_of([text for texts in own for text in texts[:1]], candidate.selection.attr)
    if others:
        cost += _SPARSE * (1 - len(filled) / len(others)) if filled else _EMPTY
        cost += _sameness(own, filled)
        if kind != "text":
            wrong = sum(type_of(texts[:1], candidate.selection.attr) != kind for texts in filled)
            cost += 3.0 * wrong / max(len(filled), 1)
    sample = tuple(filled[0][:3]) if filled else ()
    return Choice(candidate.selection, many, kind, len(filled), len(others), cost, sample)


def _sameness(own: Sequence[Sequence[str]], filled: Sequence[Sequence[str]]) -> float:
    """A value that nearly all pages share is part of the frame, not of the item: 0 to 3."""
    if len(filled) < 3:
        return 0.0
    (_, most), *_ = Counter(texts[0] for texts in [*own, *filled] if texts).most_common(1)
    share = most / (len(filled) + len(own))
    return 3.0 * share if share > 0.8 else 0.0
