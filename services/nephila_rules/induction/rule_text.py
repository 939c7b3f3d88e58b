"""A ParseRule of chosen selections, in canonical form, and the URL pattern of example pages. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from nephila_rules.fmt import format_rules
from nephila_rules.induction.induce import Choice
from nephila_rules.runtime.spec import Selection

_NUMBER: Final = re.compile(r"\d+$")
_DATE_PART: Final = re.compile(r"(?:19|20)\d\d$|\d{1,2}$")


def rule_text(name: str, pattern: str, choices: Mapping[str, Choice]) -> str:
    """The YAML of a rule. A field is required where every page that was seen has it."""
    fields = {field: _field(choice) for field, choice in choices.items()}
    return canonical(rule_document(name, {"match": {"url": pattern}, "fields": fields}))


def rule_document(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The document of a rule."""
    return {"apiVersion": "nephila.dev/v1", "kind": "ParseRule", "metadata": {"name": name}, "spec": spec}


def canonical(document: dict[str, Any]) -> str:
    """A document as YAML in the form of `nephila rules fmt`. Raises `UsageError`."""
    return format_rules(json.dumps(document, ensure_ascii=False).encode(), document["metadata"]["name"])


def _field(choice: Choice) -> dict[str, Any]:
    required = bool(choice.others) and choice.filled == choice.others and not choice.many
    return field_keys(choice.selection, choice.type, many=choice.many, required=required)


def selection_keys(selection: Selection) -> dict[str, Any]:
    """The keys of a selection."""
    keys: dict[str, Any] = {selection.source: selection.expression} if selection.source else {}
    if selection.attr:
        keys["attr"] = selection.attr
    if selection.regex:
        keys["regex"] = selection.regex
    if selection.path:
        keys[selection.path] = selection.query
    return keys


def field_keys(selection: Selection, kind: str, *, many: bool, required: bool) -> dict[str, Any]:
    """The keys of a field; what is the default is left out."""
    keys = selection_keys(selection)
    if many:
        keys["all"] = True
    if kind != "text":
        keys["type"] = kind
    if required:
        keys["required"] = True
    return keys


def url_pattern(urls: Sequence[str]) -> str:
    """An RE2 expression that matches the URLs and others like them: numbers stand for numbers, what differs between two
    URLs for anything within its segment. The last segment of a single URL may be any other."""
    parts = [urlsplit(url) for url in urls]
    first = parts[0]
    paths = [split_url.path.split("/")[1:] for split_url in parts]
    lengths = {len(path) for path in paths}
    segments = [
        _segment([path[at] for path in paths], last=at == min(lengths) - 1, alone=len(urls) == 1)
        for at in range(min(lengths))
    ]
    if len(lengths) > 1:
        segments = [*segments[:-1], ".+"]
    hosts = {split_url.netloc for split_url in parts}
    host = _escaped(first.netloc) if len(hosts) == 1 else "[^/]+"
    scheme = first.scheme if len({split_url.scheme for split_url in parts}) == 1 else "https?"
    end = "" if segments and segments[-1] == ".+" else r"(?:\?.*)?$"
    return f"^{scheme}://{host}/{'/'.join(segments)}{end}"


def _segment(texts: Sequence[str], *, last: bool, alone: bool) -> str:
    if len(set(texts)) == 1 and not (alone and last) and not _DATE_PART.match(texts[0]):
        return _escaped(texts[0])
    if all(_NUMBER.match(text) for text in texts):
        return r"\d+"
    start, end = _shared_start(texts), _shared_start([text[::-1] for text in texts])[::-1]
    suffix = re.search(r"\.[a-z]{2,5}$", end if len(texts) > 1 else texts[0])
    start = start if len(texts) > 1 and start.endswith(("-", "_", ".")) else ""
    return f"{_escaped(start)}[^/]+{_escaped(suffix[0]) if suffix else ''}"


def _shared_start(texts: Sequence[str]) -> str:
    low, high = min(texts), max(texts)
    at = next((at for at, sign in enumerate(low) if at >= len(high) or high[at] != sign), len(low))
    return low[:at]


def _escaped(text: str) -> str:
    return re.escape(text).replace("\\-", "-")
