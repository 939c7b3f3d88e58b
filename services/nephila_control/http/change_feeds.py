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
    for change in reversed(changes):
        item = etree.SubElement(channel, "item")
        _text(item, "title", _title(change))
        if address := _link(change):
            _text(item, "link", address)
        _text(item, "guid", change.id, isPermaLink="false")
        _text(item, "pubDate", format_datetime(_at(change)))
        _text(item, "category", change.change)
        _text(item, "description", f"<pre>{html.escape(_summary(change))}</pre>")
    return _document(root)


def atom(changes: Sequence[Change], link: str) -> bytes:
    """An Atom document; `link` is the address of the feed."""
    root = etree.Element(f"{{{ATOM}}}feed", nsmap={None: ATOM})
    _text(root, f"{{{ATOM}}}title", TITLE)
    _text(root, f"{{{ATOM}}}id", link)
    _text(root, f"{{{ATOM}}}updated", _newest(changes).isoformat())
    etree.SubElement(root, f"{{{ATOM}}}link", {"href": _xml(link), "rel": "self"})
    _text(etree.SubElement(root, f"{{{ATOM}}}author"), f"{{{ATOM}}}name", "Nephila")
    for change in reversed(changes):
        entry = etree.SubElement(root, f"{{{ATOM}}}entry")
        _text(entry, f"{{{ATOM}}}title", _title(change))
        _text(entry, f"{{{ATOM}}}id", f"urn:nephila:change:{change.id}")
        _text(entry, f"{{{ATOM}}}updated", change.at)
        if address := _link(change):
            etree.SubElement(entry, f"{{{ATOM}}}link", {"href": _xml(address), "rel": "alternate"})
        etree.SubElement(entry, f"{{{ATOM}}}category", {"term": change.change})
        _text(entry, f"{{{ATOM}}}summary", _summary(change), type="text")
    return _document(root)


def jsonfeed(changes: Sequence[Change], link: str) -> bytes:
    """A JSON Feed 1.1 document; `link` is the address of the feed."""
    items: list[dict[str, Any]] = [
        {
            "id": change.id,
            **({"url": address} if (address := _link(change)) else {}),
            "title": _title(change),
            "content_text": _summary(change),
            "date_published": change.at,
            "tags": [change.change],
            "_nephila": {"seq": change.seq, "job": change.job, "url_key": change.url_key, "fetch_no": change.fetch_no},
        }
        for change in reversed(changes)
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


def _link(change: Change) -> str:
    return change.url if change.url.startswith(("http://", "https://")) else ""


def _title(change: Change) -> str:
    return f"{change.change}: {change.title.strip() or change.url}"


def _summary(change: Change) -> str:
    return change.diff or f"{change.change}: {change.url}"


def _at(change: Change) -> datetime:
    return datetime.fromisoformat(change.at)


def _newest(changes: Sequence[Change]) -> datetime:
    return _at(changes[-1]) if changes else datetime.fromtimestamp(0, UTC)


def _text(parent: Any, tag: str, text: str, **attributes: str) -> None:
    etree.SubElement(parent, tag, attributes).text = _xml(text)


def _xml(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def _document(root: Any) -> bytes:
    data: bytes = etree.tostring(root, xml_declaration=True, encoding="utf-8")
    return data + b"\n"
