"""Fields that a page offers by itself: what it states as JSON-LD, microdata or metadata, else what looks like a field.

A kind of page is a row of `KINDS`; each of its fields has the ways in which pages state it, the most reliable first.
Only what has a value on the page is offered. O(fields x pages) selections, each bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from msgspec.structs import replace
from nephila.kernel.runtime.errors import UsageError
from nephila.parser.page.html_tree import css, css_first

from nephila_rules.induction.css_paths import paths
from nephila_rules.induction.places import nodes_with
from nephila_rules.induction.wanted import folded, type_of
from nephila_rules.runtime.document import Document, lexbor_text
from nephila_rules.runtime.spec import Selection
from nephila_rules.studio.draft import MAX_FIELDS, Draft, DraftField, Pick
from nephila_rules.studio.numbering import numbers
from nephila_rules.studio.seen import SuggestedField, Suggestion
from nephila_rules.studio.suggest import Pages, image_or_text, source_of, texts_of

MIN_FIELDS: Final = 2
"""Fewer fields say nothing about the kind of a page."""
MAX_ELEMENTS: Final = 40
"""Elements that are looked at for one field."""
MAX_PATHS: Final = 12
MAX_CHARS: Final = 120
"""Characters of the text of an element that looks like a field."""
_SPARSE: Final = 1.5
"""Cost of a selector that fills none of the other pages."""
_DIGIT: Final = re.compile(r"\d")


class Way(NamedTuple):
    """How pages state a field."""

    paths: Sequence[str] = ()
    """JSONPath in the JSON-LD entity of the kind."""
    itemprops: Sequence[str] = ()
    metas: Sequence[str] = ()
    elements: str = ""
    """CSS of elements that look like it."""
    kind: str = ""
    """Type that the text of such an element has; digit: it has a digit."""


class Kind(NamedTuple):
    entities: frozenset[str]
    """Types of JSON-LD and microdata."""
    fields: Mapping[str, Way]
    decisive: str
    """Without JSON-LD a page is of this kind only if it has this field."""


_IMAGE: Final = Way(
    ("$.image", "$.image[0]", "$.image.url", "$.image[0].url"),
    ("image",),
    ("og:image",),
    'main img[src], article img[src], [class*="product"] img[src]',
)
KINDS: Final[Mapping[str, Kind]] = {
    "product": Kind(
        frozenset(("Product", "ProductGroup", "IndividualProduct", "Car", "Book")),
        {
            "name": Way(("$.name",), ("name",), (), "h1"),
            "price": Way(
                ("$.offers.price", "$.offers[0].price", "$.offers.lowPrice", "$.offers.priceSpecification.price"),
                ("price", "lowPrice"),
                ("product:price:amount", "og:price:amount"),
                '[class*="price" i], [id*="price" i], [data-price]',
                "price",
            ),
            "availability": Way(
                ("$.offers.availability", "$.offers[0].availability"),
                ("availability",),
                ("product:availability", "og:availability"),
                '[class*="stock" i], [class*="availab" i]',
            ),
            "image": _IMAGE,
            "rating": Way(
                ("$.aggregateRating.ratingValue",), ("ratingValue",), (),
                '[class*="rating" i], [class*="stars" i]', "digit",
            ),
            "brand": Way(("$.brand.name", "$.brand"), ("brand",), ("product:brand",)),
            "sku": Way(("$.sku", "$.mpn", "$.gtin13"), ("sku",)),
        },
        "price",
    ),
    "article": Kind(
        frozenset(("Article", "NewsArticle", "BlogPosting", "Report", "ScholarlyArticle", "TechArticle")),
        {
            "title": Way(("$.headline", "$.name"), ("headline",), ("og:title",), "h1"),
            "published": Way(
                ("$.datePublished",), ("datePublished",), ("article:published_time", "date"), "time[datetime]"
            ),
            "author": Way(
                ("$.author.name", "$.author[0].name", "$.author"), ("author",), ("author", "article:author"),
                '[rel="author"], [class*="byline" i], [class*="author" i]',
            ),
            "image": _IMAGE,
            "description": Way(("$.description",), ("description",), ("og:description", "description")),
        },
        "published",
    ),
    "recipe": Kind(
        frozenset(("Recipe",)),
        {
            "name": Way(("$.name",), ("name",)),
            "yield": Way(("$.recipeYield", "$.recipeYield[0]"), ("recipeYield",)),
            "time": Way(("$.totalTime", "$.cookTime"), ("totalTime",)),
            "image": _IMAGE,
            "rating": Way(("$.aggregateRating.ratingValue",), ("ratingValue",)),
        },
        "yield",
    ),
    "event": Kind(
        frozenset(("Event", "MusicEvent", "SportsEvent", "TheaterEvent", "Festival", "BusinessEvent")),
        {
            "name": Way(("$.name",), ("name",)),
            "start": Way(("$.startDate",), ("startDate",)),
            "end": Way(("$.endDate",), ("endDate",)),
            "place": Way(("$.location.name", "$.location[0].name"), ("location",)),
            "price": Way(("$.offers.price", "$.offers[0].price"), ("price",)),
        },
        "start",
    ),
    "job": Kind(
        frozenset(("JobPosting",)),
        {
            "title": Way(("$.title",), ("title",)),
            "company": Way(("$.hiringOrganization.name", "$.hiringOrganization"), ("hiringOrganization",)),
            "published": Way(("$.datePosted",), ("datePosted",)),
            "place": Way(("$.jobLocation.address.addressLocality", "$.jobLocation[0].address.addressLocality")),
            "until": Way(("$.validThrough",), ("validThrough",)),
        },
        "company",
    ),
}  # fmt: skip


class _Offered(NamedTuple):
    selection: Selection
    node: Any
    """The element that looks like the field; None for a statement."""
    values: list[str]


def suggestion(document: Document) -> Suggestion | None:
    """What the page looks like; None for a page of no kind."""
    kind, fields = _best(document)
    if not kind:
        return None
    return Suggestion(kind, [SuggestedField(name, offer.values[0][:MAX_CHARS]) for name, offer in fields.items()])


def with_suggested(draft: Draft, pages: Pages) -> Draft:
    """The draft with all suggested fields. Raises `UsageError` for a page of no kind."""
    kind, fields = _best(pages.shown)
    if not kind:
        raise UsageError("the page states nothing about itself; click its values")
    taken = {field.name for field in draft.fields}
    others = [page for page in pages.others if page.url != pages.shown.url]
    numbers_by_id = numbers(pages.shown)
    made = [_field(name, offer, pages.shown, others, numbers_by_id) for name, offer in fields.items()]
    new = [field for field in made if field.name not in taken]
    return replace(draft, fields=(*draft.fields, *new)[:MAX_FIELDS], active=-1, mode="new")


def _best(document: Document) -> tuple[str, dict[str, _Offered]]:
    """The kind with the most fields."""
    best: tuple[str, dict[str, _Offered]] = ("", {})
    for name, kind in KINDS.items():
        stated = _entity(document, kind)
        fields = {
            field: offer for field, way in kind.fields.items() if (offer := _offered(document, way, stated)) is not None
        }
        if (stated or kind.decisive in fields) and len(fields) >= max(MIN_FIELDS, len(best[1]) + 1):
            best = name, fields
    return best


def _entity(document: Document, kind: Kind) -> str:
    """The name of the JSON-LD type by which the page states that it is of this kind; empty for none."""
    for entity in document.ld:
        names = entity.get("@type")
        for name in names if isinstance(names, list) else [names]:
            short = re.split("[/:#]", name)[-1] if isinstance(name, str) else ""
            if short in kind.entities:
                return short
    return ""


def _offered(document: Document, way: Way, entity: str) -> _Offered | None:
    for selection in _statements(way, entity):
        if values := texts_of(selection, document, most=1):
            return _Offered(selection, None, values)
    nodes = css(document.tree.root, way.elements)[:MAX_ELEMENTS] if way.elements else []
    for node in nodes:
        attribute = image_or_text(node)
        text = folded((node.attributes.get(attribute) or "") if attribute else lexbor_text(node))
        if text and (attribute or len(text) <= MAX_CHARS) and _is_of(text, way.kind):
            return _Offered(Selection("css", attr=attribute), node, [text])
    return None


def _statements(way: Way, entity: str) -> Iterator[Selection]:
    if entity:
        yield from (Selection("jsonld", entity, path="jsonpath", query=path) for path in way.paths)
    yield from (Selection("itemprop", name) for name in way.itemprops)
    yield from (Selection("meta", name) for name in way.metas)


def _is_of(text: str, kind: str) -> bool:
    return not kind or (_DIGIT.search(text) is not None if kind == "digit" else type_of([text], "") == kind)


def _field(
    name: str, offer: _Offered, shown: Document, others: Sequence[Document], numbers_by_id: Mapping[int, int]
) -> DraftField:
    """A statement gets the element with the same value as its example: it is marked, and offers other selectors."""
    node, attribute = offer.node, offer.selection.attr
    selection = _selector(node, attribute, others) if node is not None else offer.selection
    if node is None:
        node, attribute = next(nodes_with(shown, offer.values[0], None), (None, ""))
    values = [text for page in others if (text := next(iter(texts_of(selection, page, most=1)), ""))]
    number = numbers_by_id.get(node.mem_id) if node is not None else None
    return DraftField(
        name,
        source_of(selection),
        type_of([*offer.values, *values], selection.attr),  # type: ignore[arg-type]
        required=bool(others) and len(values) == len(others),
        picks=(Pick(shown.url, number, attribute),) if number is not None else (),
    )


def _selector(node: Any, attribute: str, others: Sequence[Document]) -> Selection:
    """The selector of the element that is likely to last and that fills the other pages: a place fills more of them
    than a name does, and with other things."""
    candidates = [
        (Selection("css", path.expression, attr=attribute), path.cost) for path in islice(paths(node, None), MAX_PATHS)
    ]
    first = [candidate for candidate in candidates if _leads_to(candidate[0], node)] or candidates

    def cost(candidate: tuple[Selection, float]) -> float:
        empty = sum(not texts_of(candidate[0], page, most=1) for page in others)
        return candidate[1] + _SPARSE * empty / max(len(others), 1)

    return min(first, key=cost)[0]


def _leads_to(selection: Selection, node: Any) -> bool:
    top = node
    while top.parent is not None:
        top = top.parent
    match = css_first(top, selection.expression)
    return match is not None and match.mem_id == node.mem_id
