"""Converts a ParseRule document to a rule. The document is a file, JSON of a message, or a custom resource.

Invariants: each error is one line with file:line:column; two documents with the same content have the same version
in any formatting; a document that is read from `content` again is the same rule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from nephila.kernel.documents import document_files
from nephila.kernel.documents.struct_reader import read
from nephila.kernel.documents.yaml import Node, from_builtins
from nephila.kernel.runtime.errors import UsageError

from nephila_rules.runtime.rule_schema import ParseRule, RuleSpec
from nephila_rules.runtime.spec import Rule, build

HASHED: Final = 1 << 31
"""Versions from here on are hashes."""


class RuleDocument(msgspec.Struct, frozen=True):
    """A valid document."""

    content: dict[str, Any]
    """The document as JSON values, without defaults; `from_json` reads it again."""
    rule: Rule
    location: str

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    @property
    def page_rules(self) -> list[RuleDocument]:
        """The documents of the rules that read its second pages, and last the document itself."""
        return [RuleDocument(self.content, rule, self.location) for rule in self.rule.page_rules]

    @property
    def text(self) -> str:
        """The content as JSON for a message, fields in the order of the file."""
        return msgspec.json.encode(self.content).decode()


def load(data: bytes, name: str) -> list[RuleDocument]:
    """The rules of a file, at least one. Raises `UsageError` in one line that begins with file:line:column."""
    return document_files.load(data, name, _document, "rule", "ParseRule")


def from_json(content: Any, location: str = "rule") -> RuleDocument:
    """The rule of parsed JSON. Raises `UsageError` that names the key."""
    return _document(from_builtins(content, location))


def from_text(text: str, location: str = "rule") -> RuleDocument:
    """The rule of a message's JSON text. Raises `UsageError`."""
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise UsageError(f"{location}: not JSON") from None
    return from_json(content, location)


def distinct(documents: Iterable[RuleDocument]) -> list[RuleDocument]:
    """The documents as a list. Raises `UsageError` if two of them have the same name."""
    return document_files.distinct(documents, "rule")


def version_of(spec: RuleSpec) -> int:
    """The version that a spec states, else 31 bits of the SHA-256 of the spec, above all versions that are stated."""
    if spec.version is not None:
        return spec.version
    return HASHED | int.from_bytes(hashlib.sha256(msgspec.json.encode(spec, order="sorted")).digest()[:4], "big")


def _node_of(node: Node, reason: str) -> Node:
    """The node of the path at the beginning of an error line; the document if the line begins with no path."""
    for name in reason.partition(":")[0].split("."):
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
        raise _node_of(node, str(error)).error(str(error)) from None
    return RuleDocument(msgspec.to_builtins(document), rule, node.location)
