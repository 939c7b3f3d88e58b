"""Options of a crawl that a job document has as well: each is set at its path in the spec (`Option.path`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, reduce
from typing import Any

import msgspec
from msgspec import inspect
from msgspec.structs import FieldInfo, fields

from nephila.kernel.documents.field_types import duration_text
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.documents.struct_reader import unwrapped
from nephila.kernel.requisites import PER_PAGE
from nephila.kernel.runtime.errors import UsageError, none_of
from nephila.programs.options import Option, table

BROWSER = ("wait_for", "screenshot")
"""Options of rendered pages."""


def apply_options(spec: JobSpec, options: Mapping[str, Any]) -> None:
    """Set the options that are present. Raises `UsageError`."""
    for name, (_, option) in table().items():
        if name in options and option.path and not option.in_service:
            section, field = place_of(spec, option.path)
            flag = f"--{name.replace('_', '-')}"
            convert = CONVERTED.get(name, lambda given, present: given)
            value = _value(convert(options[name], getattr(section, field.name)), option)
            setattr(section, field.name, _checked(field, value, flag, option))
    if options.get("cookies"):
        spec.cookies = True
    for name in BROWSER:
        if options.get(name) and spec.render == "never":
            raise UsageError(f"--{name.replace('_', '-')} needs a browser: add --render always, or auto")


def place_of(spec: JobSpec, path: str) -> tuple[Any, FieldInfo]:
    """The section and the field of a path like scope.maxDepth."""
    *sections, key = path.split(".")
    section = reduce(lambda above, name: getattr(above, _field(above, name).name), sections, spec)
    return section, _field(section, key)


def _field(section: Any, key: str) -> FieldInfo:
    return _fields(section.__class__)[key]


@cache
def _fields(cls: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    return {field.encode_name: field for field in fields(cls)}


def _value(value: Any, option: Option) -> Any:
    return duration_text(value) if option.seconds else value


def _checked(field: FieldInfo, value: Any, flag: str, option: Option) -> Any:
    """The value as the field keeps it. Its words are among those of the field, and its texts pass the field's check."""
    # The type of this field alone: a description of the whole spec takes 7 ms of a start.
    kind, notes = unwrapped(inspect.type_info(field.type))
    if isinstance(kind, inspect.ListType):
        kind, notes = unwrapped(kind.item_type)
    words = [value] if isinstance(value, str) else value
    if isinstance(kind, inspect.LiteralType):
        known = option.metavar.split("|") if isinstance(value, str) else kind.values
        for word in words:
            if word not in kind.values:
                raise UsageError(f"{flag} {word!r} {none_of(word, map(str, known))}")
    if not isinstance(kind, inspect.StrType) or "check" not in notes or not value:
        return value
    kept = [_passed(word, notes["check"], flag) for word in words]
    return kept[0] if isinstance(value, str) else kept


def _passed(word: str, check: Callable[[str], str], flag: str) -> str:
    try:
        return check(word)
    except ValueError as error:
        raise UsageError(f"{flag} {word!r} {error}") from None


def _words(given: list[str], _: object) -> list[str]:
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


CONVERTED: dict[str, Callable[[Any, Any], Any]] = {
    "ignore_robots": lambda given, _: not given,
    "wait_for": lambda given, present: given or present,
    "screenshot": lambda given, present: list(dict.fromkeys([*present, *(["screenshot"] if given else [])])),
    "keywords": _words,
    "follow": _words,
    "page_requisites": lambda given, present: (present or PER_PAGE) if given else 0,
}
"""Option → the value of its field, from the given value and the present one; all others are as they are given."""
