"""The table of options as programs use it: each row with the default, words and bounds of the field that it sets.

What a field knows, a row does not repeat, so the facts of a row are put together here, when a command asks for them.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import UNSET, structs

from nephila.programs import option_converters as convert
from nephila.programs.option_fields import field_facts
from nephila.programs.option_row import TIME, Option
from nephila.programs.options import CommandOptions


@cache
def rows() -> dict[str, tuple[Any, Option]]:
    """Option → (type, row) as it is written above."""
    hints = get_type_hints(CommandOptions, include_extras=True)
    return {name: get_args(hint) for name, hint in hints.items()}


@cache
def table(command: str = "crawl") -> dict[str, tuple[Any, Option]]:
    """Option → (type, row) of a command's options, in the order of --help, with the facts of their fields."""
    return {name: (kind, _with_facts(kind, row)) for name, (kind, row) in rows().items() if command in row.commands}


def _with_facts(kind: Any, row: Option) -> Option:
    """The row with default, words and bounds of its home."""
    if kind is bool:
        return structs.replace(row, default=False)
    default = None if is_list(kind) or type(None) in get_args(kind) else ""
    path, converter = next(iter(row.fields.items()), ("", None))
    if converter is None:
        return structs.replace(row, default=default if row.default is UNSET else row.default)
    facts, takes_default = field_facts(path), converter is convert.same
    least, most = (facts.least, facts.most) if takes_default else (None, None)
    if default == "" and takes_default:
        default = _as_option(row, facts.default)
    return structs.replace(
        row,
        help=row.help.replace("{words}", ", ".join(facts.words)),
        metavar=row.metavar or "|".join(facts.words),
        default=default if row.default is UNSET else row.default,
        least=least if row.least is None else row.least,
        most=most if row.most is None else row.most,
    )


def _as_option(row: Option, default: Any) -> Any:
    """The default of a field as the option has it: a duration of a document is seconds."""
    if row.metavar is TIME and isinstance(default, str):
        from nephila.kernel.documents.field_types import parse_seconds  # not for each import: it loads RE2

        return parse_seconds(default)
    return default


def is_list(kind: Any) -> bool:
    """Whether an option may be given more than once."""
    return any(get_origin(part) is Sequence for part in (kind, *get_args(kind)))


def defaults(command: str = "crawl") -> dict[str, Any]:
    """Option → default, of the options of a command."""
    return {name: [] if is_list(kind) else row.default for name, (kind, row) in table(command).items()}


IN_JOB = frozenset(name for name, (_, row) in rows().items() if row.in_job)
"""Options that a job document has as well: only where they are given do they override it."""
IN_SERVICE = tuple(name for name, (_, row) in rows().items() if row.in_service)
"""Options that are settings of the services."""
