"""Reads a YAML node as a msgspec struct: the annotations of the struct are the schema of the document.

Invariant: each error line begins with file:line:column and names the key, what is wrong and what to write; all errors
of a document are found in one pass. msgspec's own conversion stops at the first error and has no line numbers.

`Meta.extra` of an annotation may hold: `what`, the expected value in words; `check`, a function from the text to the
text that is kept, which raises `ValueError` with the reason; `later`, words that a later version will accept;
`prose`, whether line ends and the empty text are accepted. `ONE_OR_MORE` marks a
list that may be written as its only item.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import inspect

from nephila.kernel.documents.yaml import Node
from nephila.kernel.runtime.errors import UsageErrors, suggest

ONE_OR_MORE: dict[str, Any] = {"oneOrMore": True}
"""`Meta.extra_json_schema` of a list that may be written as its only item."""


class Section(msgspec.Struct, rename="camel", omit_defaults=True):
    """A map of a document. `read` refuses unknown keys; a service that decodes JSON skips those of a later version.
    `__post_init__` checks what only several keys together say: it raises `ValueError` with the reason and, as second
    argument, the key that the reason is about."""

    SHORT: ClassVar[bool] = False
    """The value of the first key may be written instead of the map."""
    ONLY_ONE: ClassVar[bool] = False
    """Exactly one of the keys is given."""


S = TypeVar("S", bound=Section)


def read(node: Node, cls: type[S]) -> S:
    """The struct of a document. Raises `UsageError` with further errors of the document as its `others`."""
    struct: S = _section(node, "", type_of(cls))
    return struct


@cache
def type_of(cls: type[msgspec.Struct]) -> inspect.StructType:
    """msgspec's description of a struct; types that contain themselves are resolved."""
    description = inspect.type_info(cls)
    assert isinstance(description, inspect.StructType)
    return description


def unwrapped(kind: inspect.Type) -> tuple[inspect.Type, dict[str, Any]]:
    """A type without None and metadata, and its `Meta.extra` together with `Meta.extra_json_schema`."""
    notes: dict[str, Any] = {}
    while isinstance(kind, inspect.UnionType | inspect.Metadata):
        if isinstance(kind, inspect.UnionType):
            kind = next(member for member in kind.types if not isinstance(member, inspect.NoneType))
        else:
            notes = {**(kind.extra_json_schema or {}), **(kind.extra or {}), **notes}
            kind = kind.type
    return kind, notes


def _value(node: Node, path: str, declared: inspect.Type) -> Any:
    kind, notes = unwrapped(declared)
    return _READERS[type(kind)](node, path, kind, notes)


def _section(node: Node, path: str, kind: inspect.StructType, notes: Mapping[str, Any] | None = None) -> Any:
    cls: Any = kind.cls
    where = path or "the document"
    fields = {field.encode_name: field for field in kind.fields}
    first = kind.fields[0]
    if cls.SHORT and isinstance(node.value, str):
        return cls(**{first.name: _value(node, path, first.type)})
    if not isinstance(node.value, dict):
        raise node.form_error(f"{where} has to be a map with the keys {', '.join(fields)}")
    errors, values = UsageErrors(), {}
    for name, entry in node.value.items():
        with errors:
            if (field := fields.get(name)) is None:
                raise entry.key.form_error(f"unknown key {_short(name)} in {where}; {suggest(name, fields)}")
            values[field.name] = _value(entry.value, f"{path}.{name}" if path else name, field.type)
    for field in kind.fields:
        with errors:
            if field.required and field.encode_name not in node.value:
                raise node.form_error(f"{where} lacks the key {field.encode_name!r}")
    errors.raise_all()
    if cls.ONLY_ONE and len(values) != 1:
        raise node.form_error(f"{where} has to have exactly one of the keys {', '.join(fields)}")
    try:
        return cls(**values)
    except ValueError as error:
        reason, *keys = error.args
        culprit = node.value[keys[0]].value if keys and keys[0] in node.value else node
        raise culprit.error(f"{'.'.join([path, *keys]).strip('.') or where}: {reason}") from None


def _list(node: Node, path: str, kind: inspect.ListType, notes: Mapping[str, Any]) -> list[Any]:
    if not isinstance(node.value, list):
        if "oneOrMore" in notes:
            return [_value(node, path, kind.item_type)]
        raise node.form_error(f"{path} has to be a list; write [a, b], or each value on a line of its own after '- '")
    least, most = kind.min_length or 0, kind.max_length or notes.get("maxItems", len(node.value))
    if not least <= len(node.value) <= most:
        raise node.form_error(f"{path} has {len(node.value):,} values; it may have {least} to {most:,}")
    errors, values = UsageErrors(), []
    for i, item in enumerate(node.value):
        with errors:
            values.append(_value(item, f"{path}[{i}]", kind.item_type))
    errors.raise_all()
    return values


def _names(node: Node, path: str, kind: inspect.DictType, _: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(node.value, dict) or len(node.value) < (kind.min_length or 0):
        raise node.form_error(f"{path} has to be a map from names to what each of them is")
    if kind.max_length is not None and len(node.value) > kind.max_length:
        raise node.form_error(f"{path} has {len(node.value):,} names; at most {kind.max_length}")
    errors, values = UsageErrors(), {}
    for name, entry in node.value.items():
        with errors:
            _value(entry.key, path, kind.key_type)
            values[name] = _value(entry.value, f"{path}.{name}", kind.value_type)
    errors.raise_all()
    return values


def _text(node: Node, path: str, kind: inspect.StrType, notes: Mapping[str, Any]) -> str:
    what = notes.get("what", "a text")
    text = node.value if notes.get("prose") and isinstance(node.value, str) else _scalar(node, path, what)
    if len(text) < (kind.min_length or 0):
        raise node.form_error(f"{path} is empty; it has to be {what}")
    if kind.max_length is not None and len(text) > kind.max_length:
        raise node.form_error(f"{path} is longer than {kind.max_length:,} characters; it has to be {what}")
    no_text = node.typed and node.plain and not (text == "0" and "orZero" in notes)
    patterns = [pattern for pattern in (kind.pattern, notes.get("pattern")) if pattern]
    fits = not no_text and all(re.search(pattern, text) for pattern in patterns)
    refused = node.error if fits else node.form_error
    if not notes.get("prose") and not text.isprintable():
        raise refused(f"{path}: {_short(text)} holds control or other invisible characters")
    if kind.pattern and not re.fullmatch(kind.pattern, text):
        raise node.form_error(f"{path}: {_short(text)} is not {what}")
    check: Callable[[str], str] = notes.get("check", str)
    try:
        value = check(text)
    except ValueError as error:
        raise refused(f"{path}: {_short(text)} {error}") from None
    if no_text:
        raise node.form_error(f"{path}: {text} has no quotes; it has to be {what}")
    return value


def _choice(node: Node, path: str, kind: inspect.LiteralType, notes: Mapping[str, Any]) -> str:
    words = [str(word) for word in kind.values]
    text = _scalar(node, path, f"one of {', '.join(words)}")
    if text in notes.get("later", ()):
        raise node.form_error(f"{path}: {text!r} is not built yet; this version has {', '.join(words)}")
    if text not in words:
        raise node.form_error(f"{path}: {_short(text)} is unknown; {suggest(text, words)}")
    return text


def _flag(node: Node, path: str, _: inspect.BoolType, __: Mapping[str, Any]) -> bool:
    text = _plain(node, path, "true or false")
    if text not in ("true", "false"):
        raise node.form_error(f"{path}: {_short(text)} is neither true nor false")
    return text == "true"


def _integer(node: Node, path: str, kind: inspect.IntType, _: Mapping[str, Any]) -> int:
    text = _plain(node, path, "a whole number")
    if not re.fullmatch(r"-?\d{1,19}", text, re.ASCII):
        raise node.form_error(f"{path}: {_short(text)} is not a whole number")
    assert kind.ge is not None
    assert kind.le is not None
    if not kind.ge <= int(text) <= kind.le:
        raise node.form_error(f"{path}: {text} is not within {kind.ge} and {kind.le}")
    return int(text)


def _number(node: Node, path: str, kind: inspect.FloatType, _: Mapping[str, Any]) -> float:
    text = _plain(node, path, "a number")
    assert kind.gt is not None
    assert kind.le is not None
    written = re.fullmatch(r"\d{1,9}(\.\d{1,4})?", text, re.ASCII)
    if not written and not (node.typed and kind.gt < _float(text) <= kind.le):
        raise node.form_error(f"{path}: {_short(text)} is not a number like 2 or 0.05")
    if not written:
        raise node.error(f"{path}: {_short(text)} has more than four decimal places")
    if not kind.gt < float(text) <= kind.le:
        raise node.form_error(f"{path}: {text} is not above {kind.gt:g} and at most {kind.le:g}")
    return float(text)


_READERS: dict[type[inspect.Type], Callable[[Node, str, Any, Mapping[str, Any]], Any]] = {
    inspect.StructType: _section,
    inspect.ListType: _list,
    inspect.DictType: _names,
    inspect.StrType: _text,
    inspect.LiteralType: _choice,
    inspect.BoolType: _flag,
    inspect.IntType: _integer,
    inspect.FloatType: _number,
}


def _float(text: str) -> float:
    """A number of JSON; NaN for another text."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _scalar(node: Node, path: str, what: str) -> str:
    if not isinstance(node.value, str):
        kind = "list" if isinstance(node.value, list) else "map"
        raise node.form_error(f"{path} is a {kind}; it has to be {what}")
    if node.plain and node.value in ("", "~", "null"):
        raise node.form_error(f"{path} has no value; it has to be {what}, or left out")
    return node.value


def _plain(node: Node, path: str, what: str) -> str:
    text = _scalar(node, path, what)
    if not node.plain:
        raise node.form_error(f"{path}: {_short(text)} is a text; write {what} without quotes")
    return text


def _short(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:59] + "…")
