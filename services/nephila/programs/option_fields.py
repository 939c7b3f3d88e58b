"""The fields that an option sets: of the job's document and of the settings of the services.

A row of the table of options names each field by its path, "job.scope.mode" or "downloader.contact", with the converter
from the value of the option to that of the field. Default, bounds and words of a field stand in its struct alone, so
the document, the settings and the option cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatch
from functools import cache, reduce
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import FieldInfo, fields

from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extensions import extension

JOB: Final = "job"
"""Section of the fields of the job's document (`JobSpec`); every other section is a service or the plan of a run."""
Converter = Callable[[Any, Any], Any]
"""From the value of an option and the present value of a field to the new value of the field."""
HTML: Final = ("text/html", "application/xhtml+xml")
"""Fetched regardless of --accept: links are found in it."""
LEASE_MARGIN_S: Final = 30.0
"""From the longest time of a fetch to the end of its lease."""


class FieldFacts(NamedTuple):
    """The facts of a field that its option shares."""

    default: Any
    words: tuple[str, ...]
    """Valid values of a field that has a few; empty for any other."""
    least: int | None
    most: int | None


@cache
def field_facts(path: str) -> FieldFacts:
    """Default, words and bounds of the field at a path."""
    section, _, rest = path.partition(".")
    if section == JOB:
        from nephila.kernel.documents.job_schema import JobSpec  # not for each import: it loads RE2

        _, field = place_of(JobSpec(), rest)
    else:
        field = fields_of(config_classes()[section])[rest]
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    notes = [note for note in getattr(field.type, "__metadata__", ()) if isinstance(note, Meta)]
    bounds = ([getattr(note, name) for note in notes] for name in ("ge", "le"))
    least, most = (next((bound for bound in values if bound is not None), None) for values in bounds)
    kind = getattr(field.type, "__origin__", field.type) if notes else field.type
    for inner in (kind, *get_args(kind)):
        if get_origin(inner) is Literal:
            return FieldFacts(default, get_args(inner), least, most)
    if least is None and kind is int:
        least = 0  # `load` refuses a number below 0 for every setting
    return FieldFacts(default, (), least, most)


@cache
def config_classes() -> dict[str, type[Struct]]:
    """Service of a crawl → the struct of its settings."""
    from nephila.downloader.config import DownloaderConfig
    from nephila.parser.config import ParserConfig
    from nephila.scheduler.config import SchedulerConfig
    from nephila.storage.config import StorageConfig

    return {
        "scheduler": SchedulerConfig,
        "downloader": DownloaderConfig,
        "parser": ParserConfig,
        "storage": StorageConfig,
    }


@cache
def fields_of(cls: type[Struct]) -> dict[str, FieldInfo]:
    """The fields of a struct by their names in documents."""
    return {field.encode_name: field for field in fields(cls)}


def place_of(spec: Struct, path: str) -> tuple[Any, FieldInfo]:
    """The section and the field of a path like scope.maxDepth."""
    *sections, key = path.split(".")
    section = reduce(lambda above, name: getattr(above, fields_of(type(above))[name].name), sections, spec)
    return section, fields_of(type(section))[key]


# ---- converters


def same(value: Any, present: Any) -> Any:
    """The value of the option. Default and bounds of the option are then those of the field."""
    return value


def negated(value: bool, present: Any) -> bool:
    return not value


def enabled(value: Any, present: bool) -> bool:
    """True with the option; without a value of it the field stays."""
    return bool(value) or present


def or_present(value: str, present: Any) -> Any:
    """An empty value leaves the field as it is."""
    return value or present


def split_words(value: list[str], present: Any) -> list[str]:
    """The words of texts that may hold several, with commas between them."""
    return [word.strip() for text in value for word in text.split(",") if word.strip()]


def screenshot_too(value: bool, present: list[str]) -> list[str]:
    return list(dict.fromkeys([*present, *(["screenshot"] if value else [])]))


def requisites_per_page(value: bool, present: int) -> int:
    from nephila.kernel.requisites import PER_PAGE

    return (present or PER_PAGE) if value else 0


def tries_of_retries(value: int, present: int) -> int:
    """The first attempt is a try too."""
    return value + 1


def outlived(value: float, present: float) -> float:
    """A lease outlives the longest fetch."""
    return max(present, value + LEASE_MARGIN_S)


def proxy_entries(value: list[str], present: Any) -> Any:
    return extension("proxy-entries")(value)


def accepted_types(value: str, present: tuple[str, ...]) -> tuple[str, ...]:
    accepted = _media_types(value, "--accept")
    return (*HTML, *accepted) if accepted else present


def refused_but_accepted(value: str, present: tuple[str, ...]) -> tuple[str, ...]:
    """The types that are refused by default, without those that the option accepts."""
    accepted = _media_types(value, "--accept")
    return tuple(kind for kind in present if not any(fnmatch(a, kind) or fnmatch(kind, a) for a in accepted))


def refused_too(value: str, present: tuple[str, ...]) -> tuple[str, ...]:
    return (*present, *_media_types(value, "--reject"))


def _media_types(words: str, option: str) -> tuple[str, ...]:
    """Media types of a list of them, or of endings of files. Raises `UsageError`."""
    import re
    from mimetypes import MimeTypes

    kinds = []
    for word in words.replace(",", " ").lower().split():
        kind = word if "/" in word else MimeTypes().guess_type(f"x.{word.lstrip('*.')}")[0]
        if kind is None or not re.fullmatch(r"[\w*.+-]+/[\w*.+-]+", kind, re.ASCII):
            raise UsageError(f"{option} {word!r} is no content type like application/pdf, and no known ending like pdf")
        kinds.append(kind)
    return tuple(kinds)
