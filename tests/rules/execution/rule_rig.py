"""Rules in a line or two, and what they make of a page."""

from __future__ import annotations

import textwrap
from typing import Any

import msgspec
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.extract import Extraction, extract
from nephila_rules.runtime.load import RuleDocument, load

URL = "https://a.test/dir/page"
HEAD = "apiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {name: NAME}\nspec:\n"


def rule(spec: str, name: str = "r") -> RuleDocument:
    """A rule of the keys of its spec; it matches every URL unless it says otherwise."""
    text = textwrap.dedent(spec).strip("\n")
    if "match:" not in text:
        text = f"match: {{url: '^http'}}\n{text}"
    return load((HEAD.replace("NAME", name) + textwrap.indent(text, "  ") + "\n").encode(), "rule.yaml")[0]


def document(body: str | bytes, url: str = URL, content_type: str = "text/html") -> Document:
    """A page."""
    data = body.encode() if isinstance(body, str) else body
    meta = '{"date": "Nov 22, 2026", "author": "Ann Lee and Bob Ray"}'
    return Document(data, url, "utf-8", content_type, {"title": "T", "lang": "en", "text": "visible", "meta": meta})


def ran(spec: str, body: str | bytes, url: str = URL, content_type: str = "text/html") -> Extraction:
    """What a rule makes of a page."""
    return extract(rule(spec).rule, document(body, url, content_type))


def items(spec: str, body: str | bytes, url: str = URL, content_type: str = "text/html") -> list[Any]:
    """Its items as values."""
    return [msgspec.json.decode(item) for item in ran(spec, body, url, content_type).items]


def value(field: str, body: str | bytes, url: str = URL, content_type: str = "text/html") -> Any:
    """The value of one field, written as YAML."""
    (item,) = items(f"fields: {{f: {field}}}", body, url, content_type)
    return item["f"]
