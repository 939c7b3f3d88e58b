"""The ParseRule of a draft. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from nephila_rules.induction.rule_text import field_keys, rule_document, selection_keys, url_pattern
from nephila_rules.runtime.spec import Selection
from nephila_rules.studio.browser_steps import content_of
from nephila_rules.studio.draft import Draft, Source


class Pattern(msgspec.Struct, frozen=True):
    """A URL pattern that is offered."""

    kind: str
    """page, pages, folder or site: from the narrowest to the widest."""
    pattern: str


def selection_of(take: Source) -> Selection:
    """As the rule engine has it."""
    return Selection(**msgspec.structs.asdict(take))


def document_of(draft: Draft, *, lenient: bool = False) -> dict[str, Any]:
    """The document of all fields that have a selector. `lenient`: no field is required, so that an incomplete item is
    shown and not dropped."""
    spec: dict[str, Any] = {"match": {"url": draft.pattern or "."}}
    if draft.each:
        spec["each"] = {"css": draft.each}
    fields = {
        one.name: field_keys(selection_of(one.take), one.type, many=one.many, required=one.required and not lenient)
        for one in draft.fields
        if one.take != Source()
    }
    if fields:
        spec["fields"] = fields
    if draft.next_page.source:
        spec["pagination"] = selection_keys(selection_of(draft.next_page))
    if draft.steps:
        spec["steps"] = [content_of(one) for one in draft.steps]
    return rule_document(draft.name or "new-rule", spec)


def name_of(url: str) -> str:
    """A name for the rule of a page."""
    parts = urlsplit(url)
    host = (parts.hostname or "site").removeprefix("www.")
    segments = [one for one in parts.path.split("/")[:-1] if one and not any(sign.isdigit() for sign in one)]
    words = "-".join([host, *segments[:1]])
    return re.sub(r"[^a-z0-9-]+", "-", words.lower()).strip("-")[:60] or "rule"


def patterns(url: str, examples: Sequence[str]) -> list[Pattern]:
    """Patterns of the URL from this page alone to the whole site, each once. `examples`: further pages of the rule."""
    parts = urlsplit(url)
    root = f"^{parts.scheme}://{_escaped(parts.netloc)}/"
    folder = "/".join(parts.path.split("/")[1:-1])
    found = [
        Pattern("page", f"^{_escaped(url)}$"),
        Pattern("pages", url_pattern(list(dict.fromkeys([url, *examples])))),
        Pattern("folder", root + (f"{_escaped(folder)}/" if folder else "")),
        Pattern("site", root),
    ]
    return [one for at, one in enumerate(found) if one.pattern not in [other.pattern for other in found[:at]]]


def _escaped(text: str) -> str:
    return re.escape(text).replace("\\-", "-").replace("\\#", "#").replace("\\&", "&").replace("\\~", "~")
