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

from nephila_rules.runtime.extract import Extraction, RuleLink
from nephila_rules.runtime.spec import NO_STOP, Rule, Stop

MAX_ANCHOR_BYTES = 200


def put_items(record: m.Record, rule: Rule, extraction: Extraction) -> None:
    """Set rule, version and items of a record, and the problems of the extraction."""
    record.rule, record.rule_version = rule.name, rule.version
    record.items = extraction.items
    if extraction.problems:
        note(record, "; ".join(extraction.problems))


def note(record: m.Record, problem: str) -> None:
    """Add a problem of the rule to the record's metadata."""
    meta = msgspec.json.decode(record.meta) if record.meta else {}
    meta["rule_problems"] = problem[:2000]
    record.meta = msgspec.json.encode(meta).decode()


def links_of(
    page: m.Page, links: Sequence[m.Outlinks], extraction: Extraction, stop: Stop = NO_STOP
) -> list[m.Outlinks]:
    """Outlinks of a page: its requisites, those that the rule selects (or the page's own), pagination, second pages."""
    requisites = [message for message in links if message.source is m.LinkSource.REQUISITE]
    links = [message for message in links if message.source is not m.LinkSource.REQUISITE]
    own = links if extraction.links is None else list(_packed(page, extraction.links))
    next_pages = _next_pages(page, extraction, stop)
    again = page.fetch_no > 1 and bool(next_pages)
    if again and (own or not stop.at_known):
        # A list that is fetched again: its known pages are fetched again as well, as far as there is something new.
        first = own[0] if own else pack(page, [], page.depth + 1, m.LinkSource.UNSPECIFIED)
        own[:1] = [msgspec.structs.replace(first, next_pages=next_pages[0], next_always=not stop.at_known)]
    # Pagination first: its depth is smaller, and the scheduler keeps the first of two equal URLs.
    return [*requisites, *([] if again else next_pages), *_packed(page, extraction.second_pages), *own]


def _next_pages(page: m.Page, extraction: Extraction, stop: Stop) -> list[m.Outlinks]:
    """Links to further pages of the list, unless it ends here. At most one message."""
    if not extraction.next_pages or _date_reached(page, extraction, stop):
        return []
    context = page.context
    number = max(context.page, 1) if context is not None else 1
    if stop.limit:
        if number >= stop.limit:
            return []
        context = context or m.Context()
    messages = list(_packed(page, extraction.next_pages))
    for message in messages:
        if context is not None:
            # The next page of a search by POST is one at the same address.
            same = extraction.next_pages[0].href.partition("#")[0] == page.url.partition("#")[0]
            message.context = msgspec.structs.replace(context, page=number + 1, form=context.form and same)
    return messages


def _date_reached(page: m.Page, extraction: Extraction, stop: Stop) -> bool:
    if not stop.field:
        return False
    oldest = stop.date or datetime.fromtimestamp(page.fetched_at - stop.age_s, UTC).isoformat()
    for item in extraction.items:
        date = msgspec.json.decode(item).get(stop.field)
        if isinstance(date, str) and date < oldest:
            return True
    return False


def _packed(page: m.Page, links: Sequence[RuleLink]) -> Iterator[m.Outlinks]:
    groups: dict[tuple[int, str], list[tuple[ResolvedLink, int]]] = {}
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
        groups.setdefault((link.depth, link.stage), []).append((row, link.priority))
    for (depth, stage), rows in sorted(groups.items()):
        message = pack(page, [row for row, _ in rows], page.depth + depth, m.LinkSource.UNSPECIFIED)
        if any(priority for _, priority in rows):
            message.priorities = bytes(priority for _, priority in rows)
        if stage:
            message.context = msgspec.structs.replace(page.context or m.Context(), stage=stage, page=0, form=False)
        yield message


def facts_of(record: m.Record) -> dict[str, str]:
    """Facts of a page that a rule can select with `page`."""
    at = datetime.fromtimestamp(record.fetched_at, UTC).isoformat(timespec="seconds") if record.fetched_at > 0 else ""
    text = str(record.text, "utf-8", "replace")
    facts = {"title": record.title, "lang": record.lang, "text": text, "fetched_at": at.replace("+00:00", "Z")}
    return {**facts, "meta": record.meta}
