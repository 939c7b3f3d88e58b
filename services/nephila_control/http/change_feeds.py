"""Changes as RSS 2.0, Atom (RFC 4287) and JSON Feed 1.1. Pure.

The newest change comes first, as feed readers expect. The id of an entry is the id of the change, so a reader shows it
once however often it fetches the feed. Titles and diffs come from pages: readers show the description of RSS as HTML,
so its text is escaped, and a link has the scheme http or https.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from lxml import etree

from nephila_control.system_types import Change

ATOM = "http://www.w3.org/2005/Atom"
TITLE = "Changes found by Nephila"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot contain."""


def rss(changes: Sequence[Change], link: str) -> bytes:
    """An RSS 2.0 document; `link` is the address of the feed."""
    root = etree.Element("rss", {"version": "2.0"}, nsmap={"atom": ATOM})
    channel = etree.SubElement(root, "channel")
    _text(channel, "title", TITLE)
    _text(channel, "link", link)
    _text(channel, "description", "Pages that are new, changed, gone or returned")
    etree.SubElement(channel, f"{{{ATOM}}}link", {"href": _xml(link), "rel": "self", "type": "application/rss+xml"})
    _text(channel, "lastBuildDate", format_datetime(_newest(changes)))
    for one in reversed(changes):
        item = etree.SubElement(channel, "item")
        _text(item, "title", _title(one))
        if address := _link(one):
            _text(item, "link", address)
        _text(item, "guid", one.id, isPermaLink="false")
        _text(item, "pubDate", format_datetime(_at(one)))
        _text(item, "category", one.change)
        _text(item, "description", f"<pre>{html.escape(_summary(one))}</pre>")
    return _document(root)


def atom(changes: Sequence[Change], link: str) -> bytes:
    """An Atom document; `link` is the address of the feed."""
    root = etree.Element(f"{{{ATOM}}}feed", nsmap={None: ATOM})
    _text(root, f"{{{ATOM}}}title", TITLE)
    _text(root, f"{{{ATOM}}}id", link)
    _text(root, f"{{{ATOM}}}updated", _newest(changes).isoformat())
    etree.SubElement(root, f"{{{ATOM}}}link", {"href": _xml(link), "rel": "self"})
    _text(etree.SubElement(root, f"{{{ATOM}}}author"), f"{{{ATOM}}}name", "Nephila")
    for one in reversed(changes):
        entry = etree.SubElement(root, f"{{{ATOM}}}entry")
        _text(entry, f"{{{ATOM}}}title", _title(one))
        _text(entry, f"{{{ATOM}}}id", f"urn:nephila:change:{one.id}")
        _text(entry, f"{{{ATOM}}}updated", one.at)
        if address := _link(one):
            etree.SubElement(entry, f"{{{ATOM}}}link", {"href": _xml(address), "rel": "alternate"})
        etree.SubElement(entry, f"{{{ATOM}}}category", {"term": one.change})
        _text(entry, f"{{{ATOM}}}summary", _summary(one), type="text")
    return _document(root)


def jsonfeed(changes: Sequence[Change], link: str) -> bytes:
    """A JSON Feed 1.1 document; `link` is the address of the feed."""
    items: list[dict[str, Any]] = [
        {
            "id": one.id,
            **({"url": address} if (address := _link(one)) else {}),
            "title": _title(one),
            "content_text": _summary(one),
            "date_published": one.at,
            "tags": [one.change],
            "_nephila": {"seq": one.seq, "job": one.job, "url_key": one.url_key, "fetch_no": one.fetch_no},
        }
        for one in reversed(changes)
    ]
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": TITLE,
        "feed_url": link,
        "authors": [{"name": "Nephila"}],
        "items": items,
    }
    return json.dumps(feed, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


FORMATS: dict[str, tuple[Callable[[Sequence[Change], str], bytes], str]] = {
    "rss": (rss, "application/rss+xml; charset=utf-8"),
    "atom": (atom, "application/atom+xml; charset=utf-8"),
    "jsonfeed": (jsonfeed, "application/feed+json"),
}
"""Name → (writer, content type)."""


def _link(one: Change) -> str:
    return one.url if one.url.startswith(("http://", "https://")) else ""


def _title(one: Change) -> str:
    return f"{one.change}: {one.title.strip() or one.url}"


def _summary(one: Change) -> str:
    return one.diff or f"{one.change}: {one.url}"


def _at(one: Change) -> datetime:
    return datetime.fromisoformat(one.at)


def _newest(changes: Sequence[Change]) -> datetime:
    return _at(changes[-1]) if changes else datetime.fromtimestamp(0, UTC)


def _text(parent: Any, tag: str, text: str, **attributes: str) -> None:
    etree.SubElement(parent, tag, attributes).text = _xml(text)


def _xml(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def _document(root: Any) -> bytes:
    found: bytes = etree.tostring(root, xml_declaration=True, encoding="utf-8")
    return found + b"\n"
