"""Facts of a stored page by its row: the <meta> elements in `meta`, URL, title and text.

A crawl stores what the page states, unresolved; readers of rows (exports, front matter, the API) resolve it here.
Of JSON-LD and marked elements the page pass notes dates and authors; `nephila extract` knows more of some pages (ADR
210 has figures). A row of 11 KB costs some 0.2 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nephila.kernel.page_facts.author_names import single_names, visible_author
from nephila.kernel.page_facts.byline import byline
from nephila.kernel.page_facts.dates import RowElements, dates
from nephila.kernel.page_facts.facts import COMMENTS, RowFacts
from nephila.kernel.page_facts.headline import from_title
from nephila.kernel.page_facts.published import near_headline
from nephila.native import UrlError, parse_url

_HTML: Final = ("", "text/html", "application/xhtml+xml")
"""Media types whose visible lines are searched."""


def row_facts(
    *, url: str, title: str, lang: str, content_type: str, meta: Mapping[str, Any], text: bytes | str
) -> RowFacts:
    """Facts of a row. `url` is that of the copy: after redirects."""
    pairs = [(name, value) for name, value in meta.items() if isinstance(value, str)]
    metadata = byline(pairs, (), title)
    lines = (text.encode() if isinstance(text, str) else text) if content_type in _HTML else b""
    headlines = (metadata.title, from_title(title, (), ()), title)
    page_dates = dates(metadata, RowElements(dict(pairs)), lines, lang, url, headlines)
    author = metadata.author or visible_author(near_headline(lines.decode("utf-8", "replace"), headlines))
    stated = dict(pairs)
    return RowFacts(
        published=page_dates.published,
        modified=page_dates.modified,
        authors=tuple(single_names(author)),
        section=metadata.section,
        image=_absolute(metadata.image, url),
        description=stated.get("description") or stated.get("og:description", ""),
        comments=stated.get(COMMENTS, ""),
    )


def _absolute(image: str, url: str) -> str:
    try:
        return parse_url(image, url).href if image else ""
    except UrlError:
        return ""
