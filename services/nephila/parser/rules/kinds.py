"""Kinds of values that only rules have: names of fields, selectors, scripts. Each is tried when it is read.

Invariant: an expression that was read cannot fail for its syntax later, and none is compiled by a backtracking engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nephila.kernel.documents.schema_types import Kind, Map, Text
from nephila.kernel.documents.yaml import Node
from nephila.kernel.runtime.errors import UsageErrors
from nephila.parser.rules import selectors
from nephila.parser.rules.times import fault_of_format

NAME_PATTERN = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
MAX_SCRIPT_CHARS = 20_000


@dataclass(frozen=True)
class Prose:
    """Any text as it is written, line ends and the empty text included."""

    longest: int = 1000

    def read(self, node: Node, path: str) -> str:
        """See `Kind.read`."""
        if not isinstance(node.value, str):
            raise node.error(f"{path} is a {'list' if isinstance(node.value, list) else 'map'}; it has to be a text")
        if len(node.value) > self.longest:
            raise node.error(f"{path} is longer than {self.longest:,} characters")
        return node.value

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {"type": "string", "maxLength": self.longest}


@dataclass(frozen=True)
class Selector:
    """An expression of one of the languages of `selectors`."""

    language: str
    longest: int = 2000

    def read(self, node: Node, path: str) -> str:
        """See `Kind.read`."""
        text = Text(self.longest, says=f"an expression ({self.language})").read(node, path)
        reason = selectors.fault(self.language, text)
        if reason:
            raise node.error(f"{path}: {text[:80]!a} cannot be used: {reason}")
        return text

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {"type": "string", "minLength": 1, "maxLength": self.longest}


@dataclass(frozen=True)
class DateFormat:
    """How a date is written, for strptime."""

    longest: int = 100

    def read(self, node: Node, path: str) -> str:
        """See `Kind.read`."""
        text = Text(self.longest, says="how dates are written, like %d.%m.%Y").read(node, path)
        if reason := fault_of_format(text):
            raise node.error(f"{path}: {text!a} fits no date: {reason}")
        return text

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return Text(self.longest).schema()


@dataclass(frozen=True)
class Named:
    """A map of things that have a name each."""

    kind: Kind
    most: int = 200

    def read(self, node: Node, path: str) -> dict[str, Any]:
        """See `Kind.read`."""
        if not isinstance(node.value, dict) or not node.value:
            raise node.error(f"{path} has to be a map from names to what each of them is")
        if len(node.value) > self.most:
            raise node.error(f"{path} has {len(node.value):,} names; at most {self.most}")
        mistakes, found = UsageErrors(), {}
        for name, entry in node.value.items():
            with mistakes:
                if not re.fullmatch(NAME_PATTERN, name):
                    raise entry.key.error(f"{path}: {name[:60]!a} is no name of letters, digits and '_'")
        for name, entry in node.value.items():
            with mistakes:
                found[name] = self.kind.read(entry.value, f"{path}.{name}")
        mistakes.raise_all()
        return found

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {
            "type": "object",
            "propertyNames": {"pattern": f"^{NAME_PATTERN}$"},
            "additionalProperties": self.kind.schema(),
            "minProperties": 1,
            "maxProperties": self.most,
        }


@dataclass(frozen=True)
class OneOrMore:
    """One, or a list of them; always a list once it is read."""

    kind: Kind
    most: int = 100
    least: int = 1

    def read(self, node: Node, path: str) -> list[Any]:
        """See `Kind.read`."""
        if not isinstance(node.value, list):
            return [self.kind.read(node, path)]
        if not self.least <= len(node.value) <= self.most:
            raise node.error(f"{path} has {len(node.value):,} values; it may have {self.least} to {self.most:,}")
        mistakes, found = UsageErrors(), []
        for i, item in enumerate(node.value):
            with mistakes:
                found.append(self.kind.read(item, f"{path}[{i}]"))
        mistakes.raise_all()
        return found

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        one = self.kind.schema()
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": self.least, "maxItems": self.most}]}


@dataclass(frozen=True)
class Ref:
    """A kind that contains itself, by its name in the schema's $defs."""

    name: str
    kind: Callable[[], Kind]

    def read(self, node: Node, path: str) -> Any:
        """See `Kind.read`."""
        return self.kind().read(node, path)

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {"$ref": f"#/$defs/{self.name}"}


@dataclass(frozen=True)
class Later:
    """What a later version will do: it is checked as it will be, and then refused."""

    kind: Kind
    what: str

    def read(self, node: Node, path: str) -> Any:
        """See `Kind.read`; always raises."""
        self.kind.read(node, path)
        raise node.error(f"{path}: {self.what} is not built yet; leave the key out")

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`; nothing that this version takes."""
        return {"not": {}, "$comment": f"{self.what} is not built yet"}


@dataclass(frozen=True)
class Refused:
    """What will never be done, and what to do instead."""

    why: str

    def read(self, node: Node, path: str) -> Any:
        """See `Kind.read`; always raises."""
        raise node.error(f"{path}: {self.why}")

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {"not": {}, "$comment": self.why}


@dataclass(frozen=True)
class Checked:
    """A map whose keys have to make sense together."""

    kind: Map
    check: Callable[[Mapping[str, Any]], str]
    """The reason why they do not, or "" when they do."""

    def read(self, node: Node, path: str) -> Any:
        """See `Kind.read`."""
        found = self.kind.read(node, path)
        reason = self.check(found)
        if reason:
            raise node.error(f"{path}: {reason}")
        return found

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`; what only the check knows is not said there."""
        return self.kind.schema()
