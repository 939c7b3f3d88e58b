"""A group of commands made of a table: a command's module is imported when the command runs.

--help and did-you-mean are served from the table alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from nephila.cli.directory_argument import add_directory_argument
from nephila.cli.examples import EXAMPLES
from nephila.kernel.runtime.extensions import loaded

if TYPE_CHECKING:
    from typer import _click as click


class Command(NamedTuple):
    """One row of a table of commands."""

    panel: str
    """Heading in --help."""
    target: str
    """Module and name of its function or group."""
    help: str


class LazyGroup(TyperGroup):
    """The commands of one table."""

    rows: ClassVar[Mapping[str, Command]]
    prefix: ClassVar[str] = ""
    """Words before the names of the table, with a space at their end."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, row in self.rows.items():
            self.commands[name] = TyperCommand(name, help=row.help, rich_help_panel=row.panel)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command on the command line."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, self.load(name) if name else None, rest

    def load(self, name: str) -> Any:
        """Import one command."""
        return load(name, self.rows[name], self.prefix + name)

    def load_all(self) -> None:
        """Import all commands, as the manual needs them."""
        for name in self.rows:
            self.commands[name] = self.load(name)


def load(name: str, row: Command, words: str) -> Any:
    """Import the command of a row, with the examples of it and of the commands below."""
    target = loaded(row.target, f"nephila {words}")
    if not isinstance(target, typer.Typer):
        function, target = target, typer.Typer(add_completion=False)
        target.command(name)(function)
    command = typer.main.get_command(target)
    if not isinstance(command, LazyGroup):
        _complete(command, words)
    return command


def _complete(command: Any, words: str) -> None:
    """Add to each command below this one its example, and the directory as an argument."""
    for name, below in getattr(command, "commands", {}).items():
        _complete(below, f"{words} {name}")
    if words in EXAMPLES:
        command.epilog = f"Example: {EXAMPLES[words]}"
        add_directory_argument(command)
