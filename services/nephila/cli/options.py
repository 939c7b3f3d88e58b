"""From the table of crawl options (programs/options.py) to the options of a command, with their --help.

@with_options("up")
def up(out: Out = DEFAULT_OUT, **options: Unpack[CommandOptions]) -> None: ...
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer

from nephila.cli.terminal import sanitize
from nephila.programs.option_row import Option
from nephila.programs.option_table import is_list, table
from nephila.programs.option_values import read
from nephila.programs.options import ELSEWHERE

DEFAULT_OUT = Path("crawl-out")
NO_STREAM = "a result is a directory, not a stream; nephila export --out DIR prints its rows (./- is a directory)"
F = TypeVar("F", bound=Callable[..., None])


def _directory(text: str | Path) -> Path:
    """A directory whose name can be created and printed."""
    name = os.fspath(text)
    if not name.strip():
        raise typer.BadParameter("the name of the directory is empty; . is the current one")
    if name == "-":
        raise typer.BadParameter(NO_STREAM)
    if "\0" in name or not name.isprintable():
        # Surrogates stand for bytes that are not UTF-8: run.json and messages could not hold the name.
        raise typer.BadParameter(f"{sanitize(name)!r} is no name that can be written as text (UTF-8 without controls)")
    return Path(name)


Out = Annotated[Path, typer.Option(parser=_directory, metavar="DIR", help="Directory of the result.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
Api = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Serve the control API on a TCP port too.", rich_help_panel=ELSEWHERE)
]
ApiTokenFile = Annotated[
    str, typer.Option(metavar="FILE", help="File with the token that clients of --api send.", rich_help_panel=ELSEWHERE)
]
ApiAccess = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="File with tokens of roles, OIDC and proxies of --api (docs/access.md).",
        rich_help_panel=ELSEWHERE,
    ),
]
AlwaysJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, as without the option.")]


def _parser(kind: Any, option: Option) -> Callable[[Any], Any]:
    """`read` as Typer calls it, also for a default."""

    def parse(value: Any) -> Any:
        try:
            return read(kind, option, value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return parse


def with_options(command: str) -> Callable[[F], F]:
    """Decorator: replace `**options` of a command's function by the options that the table has for the command."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function, eval_str=True)
        own = [entry for entry in signature.parameters.values() if entry.kind is not inspect.Parameter.VAR_KEYWORD]
        shared = [_parameter(name, kind, option) for name, (kind, option) in table(command).items()]
        first = [entry for entry in own if not _panel(entry)]  # --help prints panels in the order of their first option
        parameters = [*first, *shared, *(entry for entry in own if _panel(entry))]
        return _taking(function, parameters)

    return decorate


def replaced(name: str, find: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator: replace a parameter of a command's function by the options of `find`, which returns its value."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        options = inspect.signature(find, eval_str=True).parameters
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            parameters += options.values() if parameter.name == name else [parameter]

        def command(**values: Any) -> None:
            value = find(**{option: values.pop(option) for option in options})
            function(**values, **{name: value})

        command.__name__, command.__doc__ = function.__name__, function.__doc__
        return _taking(command, parameters)

    return decorate


def _taking(function: F, parameters: Iterable[inspect.Parameter]) -> F:
    """The function with these parameters as its signature, which Typer reads."""
    keyword_only = [entry.replace(kind=inspect.Parameter.KEYWORD_ONLY) for entry in parameters]
    setattr(function, "__signature__", inspect.Signature(keyword_only, return_annotation=None))  # noqa: B010 - not in its type
    function.__annotations__ = {entry.name: entry.annotation for entry in keyword_only} | {"return": None}
    return function


def _panel(parameter: inspect.Parameter) -> Any:
    """The heading in --help of a parameter that the function itself has."""
    return next((getattr(note, "rich_help_panel", None) for note in get_args(parameter.annotation)[1:]), None)


def _parameter(name: str, kind: Any, option: Option) -> inspect.Parameter:
    """One option as Typer reads it from a signature."""
    flag = f"--{name.replace('_', '-')}"
    settings: dict[str, Any] = {"help": option.help, "rich_help_panel": option.panel}
    default = option.default
    if kind is bool:
        annotation: Any = bool
    elif is_list(kind):
        settings["metavar"] = option.metavar
        annotation = list[str] | None
    else:
        settings |= {"metavar": option.metavar, "parser": _parser(kind, option)}
        annotation = Any
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[annotation, typer.Option(flag, **settings)],
    )


def values(options: Any) -> dict[str, Any]:
    """The options of a command as a run keeps them: an option that may be repeated and was not given is empty."""
    kinds = table()
    return {name: [] if value is None and is_list(kinds[name][0]) else value for name, value in options.items()}
