"""The directory of a command, as an argument or as --out: `nephila cost site` and `nephila cost --out site`.

Every command with an option --out and no arguments of its own takes both. The documents use --out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperArgument

from nephila.kernel.runtime.errors import UsageError

NAME = "directory"


def add_directory_argument(command: Any) -> None:
    """Add the argument to a command that can have it."""
    option = next((parameter for parameter in command.params if "--out" in parameter.opts), None)
    if option is None or any(parameter.param_type_name == "argument" for parameter in command.params):
        return
    metavar = option.metavar or "DIR"
    argument = TyperArgument(param_decls=[NAME], required=False, metavar=f"[{metavar}]", help="The same as --out.")
    required, option.required = option.required, False
    command.params = [argument, *command.params]
    command.callback = _with_directory(command.callback, option, required=required)


def _with_directory(callback: Callable[..., Any], option: Any, *, required: bool) -> Callable[..., Any]:
    def run(**options: Any) -> Any:
        directory = options.pop(NAME)
        if directory is not None:
            from typer._click.globals import get_current_context

            context = get_current_context()
            source = context.get_parameter_source(option.name)
            if source is not None and source.name == "COMMANDLINE":
                raise UsageError(f"the directory is given twice: {directory} and --out {options[option.name]}")
            options[option.name] = option.type_cast_value(context, directory)
        if required and options[option.name] is None:
            raise UsageError(f"name a directory, as an argument or by {option.opts[0]} {option.metavar}")
        return callback(**options)

    return run
