"""From a ParseRule document to a rule: a file, JSON of a message, or a custom resource.

Invariants: every mistake is one line with its place; two documents that say the same have the same version, however
they are written; a document that went through `content` and back is the same rule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nephila.kernel.documents import document_files
from nephila.kernel.documents.struct_reader import read
from nephila.kernel.documents.yaml import Node, from_builtins
from nephila.kernel.runtime.errors import UsageError
from nephila.parser.rules.rule_schema import ParseRule, RuleSpec
from nephila.parser.rules.spec import Rule, build

HASHED: Final = 1 << 31
"""Versions from here on are hashes."""


@dataclass(frozen=True, slots=True)
class RuleDocument:
    """A document that was read and found good."""

    content: dict[str, Any]
    """As JSON has it; `from_json` reads it again."""
    rule: Rule
    place: str

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    @property
    def page_rules(self) -> list[RuleDocument]:
        """Itself, and before it the same document as what reads its second pages."""
        return [RuleDocument(self.content, rule, self.place) for rule in self.rule.page_rules]

    @property
    def text(self) -> str:
        """The content as it travels, fields in the order of the file."""
        return msgspec.json.encode(self.content).decode()


def load(data: bytes, name: str) -> list[RuleDocument]:
    """The rules of a file, at least one. Raises `UsageError` in one line that begins with file:line:column."""
    return document_files.load(data, name, _document, "rule", "ParseRule")


def from_json(content: Any, place: str = "rule") -> RuleDocument:
    """A rule that comes as parsed JSON. Raises `UsageError` that names the key."""
    return _document(from_builtins(content, place))


def from_text(text: str, place: str = "rule") -> RuleDocument:
    """A rule as it travels. Raises `UsageError`."""
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise UsageError(f"{place}: not JSON") from None
    return from_json(content, place)


def distinct(found: Iterable[RuleDocument]) -> list[RuleDocument]:
    """The same, unless two of them are one rule."""
    return document_files.distinct(found, "rule")


def version_of(spec: RuleSpec) -> int:
    """The version that a spec states, else 31 bits of the SHA-256 of the spec, above all versions that are stated."""
    if spec.version is not None:
        return spec.version
    return HASHED | int.from_bytes(hashlib.sha256(msgspec.json.encode(spec, order="sorted")).digest()[:4], "big")


def _at(node: Node, told: str) -> Node:
    """The place that a line is about which begins with its path; the document where there is none."""
    for name in told.partition(":")[0].split("."):
        value = node.value
        if isinstance(value, dict) and "fields" in value and name not in value:
            value = value["fields"].value.value
        if not isinstance(value, dict) or name not in value:
            break
        node = value[name].value
    return node


def _document(node: Node) -> RuleDocument:
    document = read(node, ParseRule)
    try:
        rule = build(document.metadata.name, version_of(document.spec), document.spec)
    except ValueError as error:
        raise _at(node, str(error)).error(str(error)) from None
    return RuleDocument(msgspec.to_builtins(document), rule, node.place)
