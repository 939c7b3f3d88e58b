"""Options of a crawl that a job document has as well: each is set at its paths in the spec (`Option.fields`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import inspect
from msgspec.structs import FieldInfo

from nephila.kernel.documents.field_types import duration_text
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.documents.struct_reader import unwrapped
from nephila.kernel.runtime.errors import UsageError, none_of
from nephila.programs.option_fields import JOB, place_of
from nephila.programs.options import TIME, Option, table

BROWSER = ("wait_for", "screenshot")
"""Options of rendered pages."""


def apply_options(spec: JobSpec, options: Mapping[str, Any]) -> None:
    """Set the options that are present. Raises `UsageError`."""
    for name, (_, option) in table().items():
        for path, convert in option.fields.items() if name in options else ():
            root, _, rest = path.partition(".")
            if root == JOB and convert is not None:
                section, field = place_of(spec, rest)
                value = _value(convert(options[name], getattr(section, field.name)), option)
                setattr(section, field.name, _checked(field, value, f"--{name.replace('_', '-')}", option))
    for name in BROWSER:
        if options.get(name) and spec.render == "never":
            raise UsageError(f"--{name.replace('_', '-')} needs a browser: add --render always, or auto")


def _value(value: Any, option: Option) -> Any:
    return duration_text(value) if option.metavar is TIME else value


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
