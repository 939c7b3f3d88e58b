"""The fields that an option sets: of the job's document and of the settings of the services.

A row of the table of options names each field by its path, "job.scope.mode" or "downloader.http.contact", with the
converter from the value of the option to that of the field. Default, bounds and words of a field stand in its struct
alone, so the document, the settings and the option cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import FieldInfo, fields

from nephila.kernel.runtime.config import settings

JOB: Final = "job"
"""Section of the fields of the job's document (`JobSpec`); every other section is a service or the plan of a run."""
Converter = Callable[[Any, Any], Any]
"""From the value of an option and the present value of a field to the new value of the field."""


class FieldFacts(NamedTuple):
    """The facts of a field that its option shares; `words` and `check` are those of its items if it is a list."""

    default: Any
    words: tuple[str, ...]
    """Valid values of a field that has a few; empty for any other."""
    check: Callable[[str], str] | None
    """From a text to the text that the field keeps; raises `ValueError`."""
    least: int | None
    most: int | None


@cache
def field_facts(path: str) -> FieldFacts:
    """The facts of the field at a path."""
    section, _, rest = path.partition(".")
    if section == JOB:
        from nephila.kernel.documents.job_schema import JobSpec  # not for each import: it loads RE2

        _, field = place_of(JobSpec(), rest)
    else:
        field = settings(config_classes()[section])[rest].field
    # Read from the annotation: msgspec's description of a type takes longer and sorts words.
    kind, notes = _unwrapped(field.type)
    if get_origin(kind) is list:
        kind, notes = _unwrapped(get_args(kind)[0])
    checks = [note.extra["check"] for note in notes if note.extra and "check" in note.extra]
    least: Any = max((note.ge for note in notes if note.ge is not None), default=None)
    most: Any = min((note.le for note in notes if note.le is not None), default=None)
    if least is None and kind is int:
        least = 0  # `load` refuses a number below 0 for every setting
    return FieldFacts(
        default=field.default if field.default_factory is NODEFAULT else field.default_factory(),
        words=get_args(kind) if get_origin(kind) is Literal else (),
        check=checks[0] if checks else None,
        least=least,
        most=most,
    )


def _unwrapped(annotation: Any) -> tuple[Any, list[Meta]]:
    """A type without its metadata, and the metadata."""
    notes = getattr(annotation, "__metadata__", ())
    return annotation.__origin__ if notes else annotation, [note for note in notes if isinstance(note, Meta)]


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
def fields_of(cls: Any) -> dict[str, FieldInfo]:
    """The fields of a struct by their names in documents."""
    return {field.encode_name: field for field in fields(cls)}


def place_of(spec: Struct, path: str) -> tuple[Any, FieldInfo]:
    """The section and the field of a path like scope.maxDepth."""
    *sections, key = path.split(".")
    section = reduce(lambda above, name: getattr(above, fields_of(above.__class__)[name].name), sections, spec)
    return section, fields_of(section.__class__)[key]
