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
    """The selection as the rule engine has it."""
    return Selection(**msgspec.structs.asdict(take))


def document_of(draft: Draft, *, lenient: bool = False) -> dict[str, Any]:
    """The document of all fields that have a selector. `lenient`: no field is required, so that an incomplete item is
    shown and not dropped."""
    spec: dict[str, Any] = {"match": {"url": draft.pattern or "."}}
    if draft.each:
        spec["each"] = {"css": draft.each}
    fields = {
        field.name: field_keys(
            selection_of(field.take), field.type, many=field.many, required=field.required and not lenient
        )
        for field in draft.fields
        if field.take != Source()
    }
    if fields:
        spec["fields"] = fields
    if draft.next_page.source:
        spec["pagination"] = selection_keys(selection_of(draft.next_page))
    if draft.steps:
        spec["steps"] = [content_of(field) for field in draft.steps]
    return rule_document(draft.name or "new-rule", spec)


def name_of(url: str) -> str:
    """A name for the rule of a page."""
    parts = urlsplit(url)
    host = (parts.hostname or "site").removeprefix("www.")
    segments = [
        segment for segment in parts.path.split("/")[:-1] if segment and not any(sign.isdigit() for sign in segment)
    ]
    words = "-".join([host, *segments[:1]])
    return re.sub(r"[^a-z0-9-]+", "-", words.lower()).strip("-")[:60] or "rule"


def patterns(url: str, examples: Sequence[str]) -> list[Pattern]:
    """Patterns of the URL from this page alone to the whole site, each once. `examples`: further pages of the rule."""
    parts = urlsplit(url)
    root = f"^{parts.scheme}://{_escaped(parts.netloc)}/"
    folder = "/".join(parts.path.split("/")[1:-1])
    choices = [
        Pattern("page", f"^{_escaped(url)}$"),
        Pattern("pages", url_pattern(list(dict.fromkeys([url, *examples])))),
        Pattern("folder", root + (f"{_escaped(folder)}/" if folder else "")),
        Pattern("site", root),
    ]
    return [
        choice for at, choice in enumerate(choices) if choice.pattern not in [other.pattern for other in choices[:at]]
    ]


def _escaped(text: str) -> str:
    return re.escape(text).replace("\\-", "-").replace("\\#", "#").replace("\\&", "&").replace("\\~", "~")
