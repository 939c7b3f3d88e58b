"""Why a page has a record of a platform, or none: its stage, its search, its keywords, and what each scheme lacks."""

from __future__ import annotations

from typing import Any

import msgspec
from nephila.kernel.documents.scheme_schema import Schemes
from nephila.storage.ledgers.read_connection import ReadConnection

from nephila_harvest.schemes.matcher import KeywordMatcher, lacking, platforms_of
from nephila_harvest.schemes.scheme_items import ALSO, FIELDS, MATCHED, SEARCH


class Owner(msgspec.Struct):
    """One scheme and a page."""

    scheme: str
    groups: list[str]
    """Groups that match."""
    reason: str = ""
    """Why no group matches."""


class PageExplanation(msgspec.Struct):
    """What is known of one page."""

    url: str
    outcome: str
    stage: str = ""
    scheme: str = ""
    """The scheme, group and platform of the search that found it first."""
    group: str = ""
    platform: str = ""
    page: int = 0
    """Of a navigation page: its number in the list."""
    keywords: list[str] = []
    owners: list[Owner] = []


def explain(rows: ReadConnection, job: str, state: Schemes, url_key: bytes) -> PageExplanation | None:
    """The explanation of a URL; None if the job has no row of it."""
    query = "SELECT url, outcome, title, text, meta FROM pages WHERE job = :job AND url_key = :key"
    row = rows.execute(query, {"job": job, "key": url_key.hex()}).fetchone()
    if row is None:
        return None
    url, outcome, title, text, meta = row
    explanation = PageExplanation(url, outcome)
    note: dict[str, Any] = (msgspec.json.decode(meta) if meta else {}).get(SEARCH, {})
    for name in ("stage", "scheme", "group", "platform", "page"):
        setattr(explanation, name, note.get(name, getattr(explanation, name)))
    if MATCHED not in note:
        return explanation
    query = "SELECT data FROM items WHERE job = :job AND url_key = :key AND rule = :platform"
    item = rows.execute(query, {"job": job, "key": url_key.hex(), "platform": explanation.platform}).fetchone()
    fields: dict[str, Any] = msgspec.json.decode(item[0]) if item is not None else note.get(FIELDS, {})
    platforms = {explanation.platform, *note.get(ALSO, ())}
    content = fields.get("content", text)
    match = KeywordMatcher(state.schemes).match(f"{title}\n{content}".encode("utf-8", "replace"), platforms)
    explanation.keywords = match.keywords
    for scheme in state.schemes:
        groups = match.schemes.get(scheme.name, [])
        reason = ""
        if scheme.name in match.excluded:
            reason = f"it has the excluded keyword {match.excluded[scheme.name]!r}"
        elif not groups:
            groups_of = scheme.spec.groups
            searched = [name for name in groups_of if not platforms.isdisjoint(platforms_of(scheme.spec, name))]
            missing = {name: lacking(scheme.spec.groups[name], match.keywords) for name in searched}
            nearest = min(missing, key=lambda name: len(missing[name]), default="")
            reason = f"no keyword of {', '.join(missing[nearest])} of the group {nearest}" if nearest else ""
            reason = reason or f"it does not search {' or '.join(sorted(platforms))}"
        explanation.owners.append(Owner(scheme.name, groups, reason))
    return explanation
