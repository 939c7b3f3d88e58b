"""Facts of a stored page by its row: what the page pass notes in `meta`, URL and title.

A crawl stores what the page states, unresolved; readers of rows (exports, front matter, the API) resolve it here.
`nephila extract` has a tree and knows the authors of more pages (figures: docs/adr/0249).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nephila.kernel.page_facts.author_names import single_names, visible_author
from nephila.kernel.page_facts.byline import byline
from nephila.kernel.page_facts.dates import DATELINE, RowElements, dates
from nephila.kernel.page_facts.facts import COMMENTS, RowFacts
from nephila.native import UrlError, parse_url

_DESCRIPTIONS: Final = ("description", "og:description", "jsonld:article:description")


def row_facts(*, url: str, title: str, lang: str, meta: Mapping[str, Any]) -> RowFacts:
    """Facts of a row. `url` is that of the copy: after redirects."""
    pairs = [(name, value) for name, value in meta.items() if isinstance(value, str)]
    metadata = byline(pairs, (), title)
    stated = dict(pairs)
    lines = stated.get(DATELINE, "").split("\n")
    page_dates = dates(metadata, RowElements(stated), lang, url, lines)
    author = metadata.author or visible_author(lines)
    return RowFacts(
        published=page_dates.published,
        modified=page_dates.modified,
        authors=tuple(single_names(author)),
        section=metadata.section,
        image=_absolute(metadata.image, url),
        description=next(filter(None, map(stated.get, _DESCRIPTIONS)), ""),
        languages=_languages(stated.get("hreflang", ""), url),
        comments=stated.get(COMMENTS, ""),
    )


def _absolute(reference: str, url: str) -> str:
    try:
        return parse_url(reference, url).href if reference else ""
    except UrlError:
        return ""


def _languages(lines: str, url: str) -> tuple[str, ...]:
    pairs = (line.partition(" ") for line in lines.split("\n"))
    versions = ((tag.lower(), _absolute(reference, url)) for tag, _, reference in pairs)
    return tuple(f"{tag} {version}" for tag, version in versions if version)
