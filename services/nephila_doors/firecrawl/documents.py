"""Clients of Firecrawl read documents; this module makes them from stored pages. Pure."""

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
    detail: PageDetail,
    formats: Sequence[Format],
    schema: Mapping[str, Any] | None = None,
    original_url: str = "",
    *,
    markdown: str = "",
    source: str | None = None,
    warning: str = "",
) -> dict[str, Any]:
    """The document of a stored page. `original_url` is the URL before redirects. `source` is None if the body of the
    page is not stored; `warning` says why."""
    parts: dict[str, Any] = {"metadata": {**_metadata(detail.page, original_url), **_page_metadata(detail)}}
    if "markdown" in formats:
        parts["markdown"] = markdown
    if "html" in formats:
        parts["html"] = clean_html(source) if source is not None else None
    if "rawHtml" in formats:
        parts["rawHtml"] = source
    if source is None and needs_source(formats):
        parts["warning"] = warning
    if "links" in formats:
        parts["links"] = [link.url for link in detail.links]
    if "json" in formats:
        parts["json"] = _object(detail, schema or {})
        if parts["json"] is None:
            parts["warning"] = NO_RULE
    return parts


def needs_source(formats: Sequence[Format]) -> bool:
    return "html" in formats or "rawHtml" in formats


def failed_document(row: PageRow, original_url: str = "") -> dict[str, Any]:
    """Describes a page that the server answered with an error."""
    return {"markdown": "", "metadata": {**_metadata(row, original_url), "error": row.words}}


def _metadata(row: PageRow, original_url: str) -> dict[str, Any]:
    return {
        "sourceURL": original_url or row.url,
        "url": row.url,
        "statusCode": row.status,
        "contentType": row.content_type,
        "scrapeId": f"{row.job}-{row.url_key}-{row.fetch_no}",
        "proxyUsed": "basic",
        "cachedAt": row.fetched_at,
    }


def _page_metadata(detail: PageDetail) -> dict[str, Any]:
    facts = {target: detail.meta[name] for name, target in _META.items() if detail.meta.get(name)}
    return {"title": detail.page.title, "language": detail.lang or None, **facts}


def _object(detail: PageDetail, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the item of a rule with most properties of the schema; None without any."""
    properties = schema.get("properties", {})
    best: dict[str, Any] | None = None
    for item in detail.items:
        if isinstance(item.data, dict):
            taken = {name: item.data[name] for name in properties if name in item.data}
            if taken and len(taken) > len(best or {}):
                best = taken
    return best
