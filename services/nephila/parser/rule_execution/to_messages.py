"""An extraction in the messages of its page: items in the record, the rule's links instead of the page's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from nephila.kernel import messages as m
from nephila.kernel.fragment_routes import parse_routed
from nephila.native import UrlError
from nephila.parser.links.link_list import MAX_URL_CHARS, ResolvedLink, pack
from nephila.parser.page.text import cut_utf8
from nephila.parser.rules.extract import Extraction, RuleLink
from nephila.parser.rules.spec import Rule

MAX_ANCHOR_BYTES = 200


def put_items(record: m.Record, rule: Rule, found: Extraction) -> None:
    """Set rule, version and items of a record, and the problems of the extraction."""
    record.rule, record.rule_version = rule.name, rule.version
    record.items = found.items
    if found.problems:
        note(record, "; ".join(found.problems))


def note(record: m.Record, problem: str) -> None:
    """Add a problem of the rule to the record's metadata."""
    meta = msgspec.json.decode(record.meta) if record.meta else {}
    meta["rule_problems"] = problem[:2000]
    record.meta = msgspec.json.encode(meta).decode()


def links_of(page: m.Page, links: Sequence[m.Outlinks], found: Extraction) -> list[m.Outlinks]:
    """Outlinks of a page: those that the rule selects (or the page's own), pagination and second pages."""
    own = list(links) if found.links is None else list(_packed(page, found.links))
    # Pagination first: its depth is smaller, and the scheduler keeps the first of two equal URLs.
    return [*_packed(page, found.next_pages), *_packed(page, found.second_pages), *own]


def _packed(page: m.Page, links: Sequence[RuleLink]) -> Iterator[m.Outlinks]:
    by_depth: dict[int, list[tuple[ResolvedLink, int]]] = {}
    seen: set[bytes] = set()
    for link in links:
        try:
            # A route is part of it only if the job keeps routes.
            parts = parse_routed(link.href)
        except UrlError:
            continue
        key, href = parts.fingerprint, parts.href
        if key in seen or len(href) > MAX_URL_CHARS:
            continue
        seen.add(key)
        end = href.index("/", len(parts.scheme) + 3)
        anchor = cut_utf8(link.anchor.encode("utf-8", "replace"), MAX_ANCHOR_BYTES)
        row = ResolvedLink(href.encode(), (end - len(parts.host_key), end), key, anchor, 0.0)
        by_depth.setdefault(link.depth, []).append((row, link.priority))
    for depth, rows in sorted(by_depth.items()):
        message = pack(page, [row for row, _ in rows], page.depth + depth, m.LinkSource.UNSPECIFIED)
        if any(priority for _, priority in rows):
            message.priorities = bytes(priority for _, priority in rows)
        yield message


def facts_of(record: m.Record) -> dict[str, str]:
    """Facts of a page that a rule can select with `page`."""
    at = datetime.fromtimestamp(record.fetched_at, UTC).isoformat(timespec="seconds") if record.fetched_at > 0 else ""
    text = str(record.text, "utf-8", "replace")
    return {"title": record.title, "lang": record.lang, "text": text, "fetched_at": at.replace("+00:00", "Z")}
