"""Stored pages as documents of Firecrawl's API. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nephila_control.screen_types import PageDetail, PageRow

from nephila_doors.firecrawl.clean_html import clean_html
from nephila_doors.firecrawl.options import Format

NO_RULE: Final = (
    "no rule extracts these fields: there is no language model here; make a rule for the page with nephila rules "
    "induce, in the studio, or by the tool propose_rule of nephila mcp, and scrape the page again"
)
_META = {
    "description": "description",
    "og:title": "ogTitle",
    "og:description": "ogDescription",
    "og:image": "ogImage",
    "og:url": "ogUrl",
    "og:site_name": "ogSiteName",
    "keywords": "keywords",
}


def document(
    found: PageDetail,
    formats: Sequence[Format],
    schema: Mapping[str, Any] | None = None,
    asked: str = "",
    *,
    markdown: str = "",
    source: str | None = None,
    warning: str = "",
) -> dict[str, Any]:
    """The document of a stored page. `asked`: the URL before its redirects. `source`: None: its body is not stored, and
    `warning` says why."""
    parts: dict[str, Any] = {"metadata": {**_metadata(found.page, asked), **_page_metadata(found)}}
    if "markdown" in formats:
        parts["markdown"] = markdown
    if "html" in formats:
        parts["html"] = clean_html(source) if source is not None else None
    if "rawHtml" in formats:
        parts["rawHtml"] = source
    if source is None and needs_source(formats):
        parts["warning"] = warning
    if "links" in formats:
        parts["links"] = [link.url for link in found.links]
    if "json" in formats:
        parts["json"] = _object(found, schema or {})
        if parts["json"] is None:
            parts["warning"] = NO_RULE
    return parts


def needs_source(formats: Sequence[Format]) -> bool:
    """Whether a document is made from the source of the page."""
    return "html" in formats or "rawHtml" in formats


def failed_document(row: PageRow, asked: str = "") -> dict[str, Any]:
    """The document of a page that the server answered with an error."""
    return {"markdown": "", "metadata": {**_metadata(row, asked), "error": row.words}}


def _metadata(row: PageRow, asked: str) -> dict[str, Any]:
    return {
        "sourceURL": asked or row.url,
        "url": row.url,
        "statusCode": row.status,
        "contentType": row.content_type,
        "scrapeId": f"{row.job}-{row.url_key}-{row.fetch_no}",
        "proxyUsed": "basic",
        "cachedAt": row.fetched_at,
    }


def _page_metadata(found: PageDetail) -> dict[str, Any]:
    said = {target: found.meta[name] for name, target in _META.items() if found.meta.get(name)}
    return {"title": found.page.title, "language": found.lang or None, **said}


def _object(found: PageDetail, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The item of a rule with the most of the schema's properties; None without any."""
    wanted = schema.get("properties", {})
    best: dict[str, Any] | None = None
    for item in found.items:
        if isinstance(item.data, dict):
            taken = {name: item.data[name] for name in wanted if name in item.data}
            if taken and len(taken) > len(best or {}):
                best = taken
    return best
