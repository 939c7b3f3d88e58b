"""Fields beside the document of a job, and the difference between two documents. Pure.

The text is the truth: a field is read from it, and its value is put back into it, so that a person sees both.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import yaml
from nephila.kernel.runtime.errors import UsageError

from nephila_console.messages import translate as _

MAX_LINES: Final = 2_000
"""Lines of a difference that are shown."""


def _number(text: str) -> int | float:
    number = float(text.replace(",", "."))
    return int(number) if number.is_integer() else number


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


class Field(NamedTuple):
    """A field of `spec`."""

    name: str
    label: str
    read: Callable[[str], Any]
    """Makes the value of a text."""
    help: str


FIELDS: Final = (
    Field("seeds", "Where to start", str.split, "One URL a line"),
    Field("scope.maxPages", "Pages at most", _number, "0: no limit"),
    Field("scope.maxDepth", "Links deep at most", _number, "-1: no limit"),
    Field("politeness.delay", "Delay on a host", str, "As 500ms, 2s, 1m"),
    Field("recrawl.every", "Fetch again every", str, "As 6h, 1d; empty: never"),
    Field("rules", "Rules", _words, "Names"),
    Field("weight", "Weight", _number, "Its share against other jobs"),
    Field("owner", "Owner", str, "Person or team"),
)


class FieldValue(NamedTuple):
    name: str
    label: str
    help: str
    text: str


def fields_of(text: str) -> list[FieldValue]:
    """The fields with their values in a document; empty for a text that is none."""
    try:
        spec = _spec(_document(text))
    except UsageError:
        return []
    return [FieldValue(field.name, _(field.label), _(field.help), _text(field, spec)) for field in FIELDS]


def _text(field: Field, spec: Mapping[str, Any]) -> str:
    value: Any = spec
    for part in field.name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, list):
        parts = [part for part in map(_plain_seed, value) if isinstance(part, str)]
        return ("\n" if field.name == "seeds" else " ").join(parts)
    return str(value) if isinstance(value, str | int | float) else ""


def _plain_seed(entry: Any) -> Any:
    """The URL of a seed that has further keys."""
    return entry.get("url") if isinstance(entry, Mapping) else entry


def with_fields(text: str, form: Mapping[str, str]) -> str:
    """Puts the fields that a person has changed into the text: those that differ from their `was.`. An empty field is
    left out of the document. Raises `UsageError`."""
    changed = [field for field in FIELDS if _plain(form, field.name) != _plain(form, f"was.{field.name}")]
    if not changed:
        return text
    document = _document(text)
    spec = _spec(document)
    for field in changed:
        value = form.get(field.name, "").strip()
        try:
            content = field.read(value) if value else None
            if field.name == "seeds":
                entries = {_plain_seed(entry): entry for entry in _list(spec.get("seeds"))}
                content = [entries.get(url, {"url": url}) for url in content or ()]
            _put(spec, field.name.split("."), content)
        except (ValueError, OverflowError):
            raise UsageError(_("%(field)s: not a number") % {"field": _(field.label)}) from None
    return yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=100)


def _plain(form: Mapping[str, str], name: str) -> str:
    return form.get(name, "").replace("\r\n", "\n").strip()


def _list(value: Any) -> list[Any]:
    """The entries that are texts or have a URL."""
    return [entry for entry in value if isinstance(_plain_seed(entry), str)] if isinstance(value, list) else []


def _put(spec: dict[str, Any], parts: list[str], value: Any) -> None:
    for part in parts[:-1]:
        inner = spec.get(part)
        if not isinstance(inner, dict):
            if value is None:
                return
            inner = spec[part] = {}
        spec = inner
    if value is None:
        spec.pop(parts[-1], None)
    else:
        spec[parts[-1]] = value


def _document(text: str) -> dict[str, Any]:
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise UsageError(_("the text is no document; the fields cannot be put into it"))
    return document


def _spec(document: dict[str, Any]) -> dict[str, Any]:
    spec = document.get("spec")
    if not isinstance(spec, dict):
        raise UsageError(_("the text is no document; the fields cannot be put into it"))
    return spec


def difference(before: str, after: str) -> list[str]:
    """Lines of a unified difference without its head; empty for equal texts."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    return [line for line in lines if not line.startswith(("---", "+++"))][:MAX_LINES]
