"""Kinds of values in a document of settings: how each is read from a node, and how JSON Schema says it.

Invariant: one object says both, so that the published schema and the program cannot differ. `read` returns plain values
as JSON has them and raises `UsageError` with the place. What a value means for a crawl is said elsewhere.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import re2

from nephila.kernel.documents.yaml import Node
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.runtime.errors import UsageErrors
from nephila.native import UrlError

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = r"0|(?:\d{1,9}(?:\.\d{1,6})?(?:ms|s|m|h|d))+"
_PART = re.compile(r"([\d.]+)(ms|s|m|h|d)")
DECADE_S = 10 * 365 * 86_400.0


class Kind(Protocol):
    """What may stand at a key."""

    def read(self, node: Node, path: str) -> Any:
        """The value as JSON has it. Raises `UsageError`."""

    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""


def parse_seconds(text: str) -> float:
    """Seconds of a duration as a person types it: "500ms", "1h30m", "14d"; a bare number is seconds. Raises
    `ValueError` in words."""
    word = text.strip()
    if re.fullmatch(r"\d{1,12}(\.\d{1,9})?|\.\d{1,9}", word, re.ASCII):
        found = float(word)
    elif re.fullmatch(_DURATION, word, re.ASCII):
        found = seconds(word)
    else:
        raise ValueError(f"{_short(text)} is no duration like 500ms, 1s, 1h30m or 14d; a bare number is seconds")
    if found > DECADE_S:
        raise ValueError(f"{_short(text)} is longer than ten years")
    return found


def seconds(duration: str) -> float:
    """ "1h30m" → 5400.0; the text must have been read by `Duration`."""
    return sum((float(number) * UNITS[unit] for number, unit in _PART.findall(duration)), 0.0)


def _scalar(node: Node, path: str, what: str) -> str:
    """The text of a scalar with a value."""
    if not isinstance(node.value, str):
        kind = "list" if isinstance(node.value, list) else "map"
        raise node.error(f"{path} is a {kind}; it has to be {what}")
    if node.plain and node.value in ("", "~", "null"):
        raise node.error(f"{path} has no value; it has to be {what}, or left out")
    return node.value


def _bare(node: Node, path: str, what: str) -> str:
    text = _scalar(node, path, what)
    if not node.plain:
        raise node.error(f"{path}: {_short(text)} is a text; write {what} without quotes")
    return text


def _short(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:59] + "…")


def suggest(word: str, known: Mapping[str, Any]) -> str:
    """The end of a sentence about an unknown word."""
    close = difflib.get_close_matches(word[:60], known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"


@dataclass(frozen=True)
class Text:
    """Any scalar, as it is written: `no`, 1.10 and 0x10 are texts here."""

    longest: int = 1000
    pattern: str = ""
    says: str = "a text"

    def read(self, node: Node, path: str) -> str:
        """See `Kind.read`."""
        text = _scalar(node, path, self.says)
        if not text or len(text) > self.longest:
            raise node.error(f"{path} is {'empty' if not text else 'too long'}; it has to be {self.says}")
        if any(not c.isprintable() for c in text):
            raise node.error(f"{path}: {_short(text)} holds control or other invisible characters")
        if self.pattern and not re.fullmatch(self.pattern, text):
            raise node.error(f"{path}: {_short(text)} is not {self.says}")
        return text

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        pattern = {"pattern": f"^(?:{self.pattern})$"} if self.pattern else {}
        return {"type": "string", "minLength": 1, "maxLength": self.longest, **pattern}


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]
    later: tuple[str, ...] = ()
    """Words that a later version will know."""

    def read(self, node: Node, path: str) -> str:
        """See `Kind.read`."""
        text = _scalar(node, path, f"one of {', '.join(self.words)}")
        if text in self.later:
            raise node.error(f"{path}: {text!r} is not built yet; this version knows {', '.join(self.words)}")
        if text not in self.words:
            raise node.error(f"{path}: {_short(text)} is unknown; {suggest(text, dict.fromkeys(self.words))}")
        return text

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True)
class Flag:
    """true or false, and no other word for them."""

    def read(self, node: Node, path: str) -> bool:
        """See `Kind.read`."""
        text = _bare(node, path, "true or false")
        if text not in ("true", "false"):
            raise node.error(f"{path}: {_short(text)} is neither true nor false")
        return text == "true"

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class Count:
    """A whole number."""

    least: int = 0
    most: int = 10**12

    def read(self, node: Node, path: str) -> int:
        """See `Kind.read`."""
        text = _bare(node, path, "a whole number")
        if not re.fullmatch(r"-?\d{1,19}", text, re.ASCII):
            raise node.error(f"{path}: {_short(text)} is not a whole number")
        if not self.least <= int(text) <= self.most:
            raise node.error(f"{path}: {text} is not within {self.least} and {self.most}")
        return int(text)

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Number:
    """A number with or without a point, above zero."""

    most: float

    def read(self, node: Node, path: str) -> float:
        """See `Kind.read`."""
        text = _bare(node, path, "a number")
        if not re.fullmatch(r"\d{1,9}(\.\d{1,4})?", text, re.ASCII):
            raise node.error(f"{path}: {_short(text)} is not a number like 2 or 0.05")
        if not 0 < float(text) <= self.most:
            raise node.error(f"{path}: {text} is not above 0 and at most {self.most:g}")
        return float(text)

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {"type": "number", "exclusiveMinimum": 0, "maximum": self.most}


@dataclass(frozen=True)
class Duration:
    """A span of time with its unit: 500ms, 1s, 90m, 1h30m, 14d; or 0."""

    least_s: float = 0.0

    def read(self, node: Node, path: str) -> str:
        """See `Kind.read`; the text is kept, `seconds` says what it means."""
        text = _scalar(node, path, "a duration like 1s")
        if not re.fullmatch(_DURATION, text, re.ASCII):
            unit = f"; write {text}s for seconds" if re.fullmatch(r"[\d.]{1,20}", text, re.ASCII) else ""
            raise node.error(f"{path}: {_short(text)} is no duration like 500ms, 1s, 2h or 14d{unit}")
        if not self.least_s <= seconds(text) <= DECADE_S:
            raise node.error(f"{path}: {text} is not within {self.least_s:g}s and ten years")
        return text

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`; a bare 0 is a number there."""
        return {"type": ["string", "integer"], "pattern": f"^(?:{_DURATION})$", "minimum": 0, "maximum": 0}


@dataclass(frozen=True)
class Url:
    """An absolute http(s) URL."""

    longest: int = 8192

    def read(self, node: Node, path: str) -> str:
        """See `Kind.read`; the href, with its route if it has one (`routes`)."""
        text = _scalar(node, path, "a URL")
        if len(text) > self.longest:
            raise node.error(f"{path} is no URL that can be crawled: longer than {self.longest:,} characters")
        try:
            text.encode()
            return parse_routed(text).href
        except (UrlError, UnicodeEncodeError) as error:
            reason = "not valid text" if isinstance(error, UnicodeEncodeError) else str(error)
            hint = f"; write http://{text}" if re.fullmatch(r"[\w.-]+\.[a-z]+(/\S*)?", text, re.ASCII) else ""
            raise node.error(f"{path}: {_short(text)} is no URL that can be crawled: {reason}{hint}") from None

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {"type": "string", "format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?:", "maxLength": self.longest}


@dataclass(frozen=True)
class Expression:
    """An RE2 expression."""

    longest: int = 4000

    def read(self, node: Node, path: str) -> str:
        """See `Kind.read`."""
        text = Text(self.longest, says="an RE2 expression").read(node, path)
        options = re2.Options()
        options.log_errors = False
        try:
            re2.compile(text, options)
        except re2.error as error:
            reason = (
                error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else error
            )
            raise node.error(f"{path}: {_short(text)} is not a valid RE2 expression: {reason}") from None
        return text

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {"type": "string", "minLength": 1, "maxLength": self.longest}


@dataclass(frozen=True)
class ListOf:
    """Any number of one kind."""

    kind: Kind
    most: int = 1000
    least: int = 0

    def read(self, node: Node, path: str) -> list[Any]:
        """See `Kind.read`."""
        if not isinstance(node.value, list):
            raise node.error(f"{path} has to be a list; write [a, b], or each value on a line of its own after '- '")
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
        least = {"minItems": self.least} if self.least else {}
        return {"type": "array", "items": self.kind.schema(), **least, "maxItems": self.most}


@dataclass(frozen=True)
class Key:
    """What may stand at one key of a map, and one line about it."""

    kind: Kind
    about: str
    needed: bool = False


@dataclass(frozen=True)
class Map:
    """A map with known keys."""

    keys: Mapping[str, Key]
    only_one: bool = False
    """Exactly one of them."""
    short: Kind | None = None
    """What may be written instead of the map with its first key."""

    def read(self, node: Node, path: str) -> Any:
        """See `Kind.read`; keys that are left out stay left out."""
        where = path or "the document"
        if self.short is not None and isinstance(node.value, str):
            return {next(iter(self.keys)): self.short.read(node, path)}
        if not isinstance(node.value, dict):
            raise node.error(f"{where} has to be a map with the keys {', '.join(self.keys)}")
        found: dict[str, Any] = {}
        mistakes = UsageErrors()
        for name, entry in node.value.items():
            key = self.keys.get(name)
            with mistakes:
                if key is None:
                    raise entry.key.error(f"unknown key {_short(name)} in {where}; {suggest(name, self.keys)}")
                found[name] = key.kind.read(entry.value, f"{path}.{name}" if path else name)
        for name, key in self.keys.items():
            with mistakes:
                if key.needed and name not in node.value:
                    raise node.error(f"{where} lacks the key {name!r}: {key.about}")
        mistakes.raise_all()
        if self.only_one and len(found) != 1:
            raise node.error(f"{where} has to have exactly one of the keys {', '.join(self.keys)}")
        return found

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        properties = {name: {"description": key.about, **key.kind.schema()} for name, key in self.keys.items()}
        needed = [name for name, key in self.keys.items() if key.needed]
        told: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if needed:
            told["required"] = needed
        if self.only_one:
            told |= {"minProperties": 1, "maxProperties": 1}
        return told if self.short is None else {"oneOf": [self.short.schema(), told]}
