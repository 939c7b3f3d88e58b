"""Options of a crawl that a job document has as well: each is set at its paths in the spec (`Option.to`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nephila.kernel.documents.field_types import duration_text
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.runtime.errors import UsageError, none_of
from nephila.programs.option_fields import JOB, field_facts, place_of
from nephila.programs.option_row import TIME
from nephila.programs.option_table import table

BROWSER = ("wait_for", "screenshot")
"""Options of rendered pages."""


def apply_options(spec: JobSpec, options: Mapping[str, Any]) -> None:
    """Set the options that are present. Raises `UsageError`."""
    for name, (_, option) in table().items():
        for path, convert in option.fields.items() if name in options else ():
            root, _, rest = path.partition(".")
            if root == JOB and convert is not None:
                section, field = place_of(spec, rest)
                value = convert(options[name], getattr(section, field.name))
                value = duration_text(value) if option.metavar is TIME else value
                setattr(section, field.name, _checked(path, value, f"--{name.replace('_', '-')}"))
    for name in BROWSER:
        if options.get(name) and spec.render == "never":
            raise UsageError(f"--{name.replace('_', '-')} needs a browser: add --render always, or auto")


def _checked(path: str, value: Any, flag: str) -> Any:
    """The value as the field keeps it. Its words are among those of the field, and its texts pass the field's check."""
    facts = field_facts(path)
    texts = [value] if isinstance(value, str) else value
    if facts.words:
        for word in texts:
            if word not in facts.words:
                valid = facts.words if isinstance(value, str) else sorted(facts.words)
                raise UsageError(f"{flag} {word!r} {none_of(word, valid)}")
    if facts.check is None or not value:
        return value
    checked = [_passed(word, facts.check, flag) for word in texts]
    return checked[0] if isinstance(value, str) else checked


def _passed(word: str, check: Callable[[str], str], flag: str) -> str:
    try:
        return check(word)
    except ValueError as error:
        raise UsageError(f"{flag} {word!r} {error}") from None
