"""The program `nephila`: the table of commands, and the handling of errors.

Exit codes: 0 done, 1 failed, 2 usage, 3 nothing could be fetched, 130 interrupted. An error that
a user can correct is one line on standard error, never a traceback. A command's module is imported when the command
runs, so that `nephila url key` does not load a crawler.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from typer.core import TyperCommand

from nephila import __version__
from nephila.cli.lazy_group import Command, LazyGroup, load
from nephila.cli.lost_output import drop_lost_output
from nephila.cli.output import note
from nephila.cli.service_group import SERVICE
from nephila.cli.terminal import sanitize, sanitize_lines
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.extras import EXTRAS, install_line

if TYPE_CHECKING:
    from typer import _click as click

CRAWL = "Crawl a site"
RESULTS = "Use the result"
RULES = "Extract items"
MANY = "Run many jobs"
OPERATE = "Operate a program or a system"
TOOLS = "Examine one URL"


COMMANDS = {
    "crawl": Command(
        CRAWL,
        "nephila.cli.crawl.command:crawl",
        "Crawl sites into a directory, or continue a crawl.",
    ),
    "extract": Command(
        CRAWL,
        "nephila_tools.single.extract:extract",
        "Title, main text, metadata and links of one document, no crawl.",
    ),
    "explain": Command(
        CRAWL,
        "nephila_control.commands.explain:explain",
        "Explain the state of a URL in a crawl: fetched, queued or refused, and why.",
    ),
    "doctor": Command(
        CRAWL,
        "nephila_tools.doctor:doctor",
        "Check that this machine can crawl, and what would make it faster.",
    ),
    "browser": Command(
        CRAWL,
        "nephila_browser.command:app",
        "Install what rendered pages need: Playwright and Chromium.",
    ),
    "export": Command(
        RESULTS,
        "nephila.cli.export:export",
        "Write the result of a crawl as JSONL, CSV, Parquet or Markdown.",
    ),
    "report": Command(
        RESULTS,
        "nephila_tools.report.command:report",
        "Write a report about a crawl as one HTML file.",
    ),
    "console": Command(
        RESULTS,
        "nephila_console.command:console",
        "Show a crawl in a browser, whether it runs or has ended.",
    ),
    "api": Command(
        RESULTS,
        "nephila_control.commands.read_only_api:api",
        "Serve the JSON API of a finished crawl, read-only.",
    ),
    "pages": Command(
        RESULTS,
        "nephila_control.commands.rows:pages",
        "List URLs that have ended, the newest first, with a search.",
    ),
    "search": Command(
        RESULTS,
        "nephila_control.commands.search:search",
        "Search the pages of a crawl by words of title, URL and text.",
    ),
    "changes": Command(
        RESULTS,
        "nephila_harvest.commands.changes:changes",
        "Show pages that are new, changed or gone, once or continuously, or as a feed.",
    ),
    "diff": Command(
        RESULTS,
        "nephila_tools.single.diff:diff",
        "Show the changes of a page between its last two versions.",
    ),
    "cost": Command(
        RESULTS,
        "nephila_harvest.commands.cost:cost",
        "Show fetches and bytes of each job, and per useful item.",
    ),
    "webhooks": Command(
        RESULTS,
        "nephila_harvest.commands.webhooks:app",
        "Deliver changes of pages to URLs, signed and with retries; list and replay deliveries.",
    ),
    "audit": Command(
        RESULTS,
        "nephila_harvest.commands.audit:app",
        "Precision and recall, from samples that people label.",
    ),
    "what-if": Command(
        RESULTS,
        "nephila_harvest.commands.what_if:what_if",
        "Replay recrawls against other frequencies: requests, and changes found in time.",
    ),
    "rules": Command(
        RULES,
        "nephila_rules.commands.command:app",
        "Create, check, test and try rules, which extract items from a site's pages.",
    ),
    "up": Command(
        MANY,
        "nephila_control.commands.up:up",
        "Run many jobs in one program, until it is stopped.",
    ),
    "jobs": Command(
        MANY,
        "nephila_control.commands.jobs.command:app",
        "Apply, list, pause, resume and delete jobs.",
    ),
    "forget": Command(
        MANY,
        "nephila_control.commands.jobs.forget:forget",
        "Forget URLs of a job: they are crawled again when they are found again.",
    ),
    "sites": Command(
        MANY,
        "nephila_harvest.commands.sites:app",
        "Harvest sites and their directories with frequencies and scores.",
    ),
    "schemes": Command(
        MANY,
        "nephila_harvest.commands.schemes:app",
        "Keyword schemes: searches on platforms, their pages and records.",
    ),
    "mcp": Command(
        MANY,
        "nephila_doors.mcp.command:mcp",
        "Serve crawling to agents by the Model Context Protocol.",
    ),
    "frontier": Command(
        MANY,
        "nephila_doors.lending.command:frontier",
        "Serve a frontier to the processes of Scrapy spiders.",
    ),
    "status": Command(
        OPERATE,
        "nephila_cluster.commands.system:status",
        "Show the state of a program or a system.",
    ),
    "hosts": Command(
        OPERATE,
        "nephila_control.commands.rows:hosts",
        "List hosts with queued URLs and why each waits, or change the pace of one.",
    ),
    "log": Command(
        OPERATE,
        "nephila_control.commands.log:log",
        "Show who changed what over the control API, and when.",
    ),
    "backup": Command(
        OPERATE,
        "nephila_tools.backup.command:backup",
        "Back a crawl or a system up while it runs.",
    ),
    "restore": Command(
        OPERATE,
        "nephila_tools.backup.command:restore",
        "Restore a backup into an empty directory or system.",
    ),
    "check": Command(
        OPERATE,
        "nephila_tools.check.command:check",
        "Compare the URLs that have ended with their rows, and fetch lost rows again.",
    ),
    "service": Command(
        OPERATE,
        "nephila.cli.service_group:app",
        "Run and control the services of a system over Kafka.",
    ),
    "url": Command(
        TOOLS,
        "nephila_tools.single.url:app",
        "Canonical form, host key, URL key and partition of a URL.",
    ),
    "robots": Command(
        TOOLS,
        "nephila_tools.single.robots:app",
        "Check URLs against a robots.txt.",
    ),
}
"""In the order of --help."""


class Commands(LazyGroup):
    """The commands of the table. A command of `service` is found without that word too: under its earlier name, which
    --help leaves out."""

    rows = COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Of the table, or the alias of a command of `service`."""
        return super().get_command(ctx, cmd_name) or (
            TyperCommand(cmd_name, hidden=True) if cmd_name in SERVICE else None
        )

    def load(self, name: str) -> Any:
        """Import one command."""
        return super().load(name) if name in self.rows else load(name, SERVICE[name], f"service {name}")


def command_of(name: str) -> Any:
    """A command of the table with everything below it."""
    command = load(name, COMMANDS[name], name)
    if isinstance(command, LazyGroup):
        command.load_all()
    return command


app = typer.Typer(cls=Commands, pretty_exceptions_enable=False, add_completion=True)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"nephila {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def nephila(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Nephila crawls the web politely and can always resume: nephila crawl https://example.org/ --out DIR"""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


class _SafeLines(logging.Formatter):
    """Log lines of a command, which may quote what a server sent, without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return "\n".join(sanitize_lines(text)) if record.exc_info else sanitize(text, 2000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (by default the process's own); returns the exit code."""
    _tolerate_any_text()
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_SafeLines())
    command: Any = typer.main.get_command(app)
    try:
        code = command.main(args=arguments, prog_name="nephila", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _silence_stdout()
        return 1
    except UserError as error:
        note(str(error))
        return 2 if isinstance(error, UsageError) else 1
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> int:
    """Handle Click's usage errors, missing extras and unexpected errors."""
    usage = getattr(error, "format_message", None)
    if usage is not None:
        # By its shape: which class it is depends on whether this version of Typer brings its own Click.
        context = getattr(error, "ctx", None)
        hint = f" Try '{context.command_path} --help'." if context is not None else ""
        text = usage()
        if context is not None and getattr(error, "option_name", "") in ("-o", "--output"):
            text = _no_output_option(context)
        note(f"{text}{'' if text.endswith(('.', '?', ')')) else '.'}{hint}")
        return int(getattr(error, "exit_code", 2))
    if os.environ.get("NEPHILA_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    if isinstance(error, ModuleNotFoundError) and error.name:
        extra = EXTRAS.get(error.name.partition(".")[0])
        if extra is not None:
            note(f"this needs {error.name}; install it with: {install_line(extra)}")
            return 1
        if not error.name.startswith("nephila"):
            note(f"{error.name} is missing, which every installation needs; run again: pip install nephila")
            return 1
    if isinstance(error, OSError) and error.strerror:
        _silence_stdout()  # it is probably standard output that failed, and the interpreter would flush it once more
        note(f"{sanitize(str(error.filename or 'standard output'), 500)}: {error.strerror}")
        return 1
    note(f"{type(error).__name__}: {sanitize(str(error), 1000)}; run with NEPHILA_DEBUG=1 for the traceback")
    return 1


def _no_output_option(context: Any) -> str:
    """The line for -o at a command that has none."""
    names = {name for parameter in context.command.params for name in parameter.opts}
    remedy = "--out DIR names its directory" if "--out" in names else "it prints; redirect that with > FILE"
    return f"{context.command_path} has no option -o: {remedy}"


def _tolerate_any_text() -> None:
    """Characters that the terminal cannot show are escaped; output to a closed stream is discarded."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    drop_lost_output("stderr")


def _silence_stdout() -> None:
    """The reader of standard output is gone: write no more, not even in the flush at the end of the interpreter."""
    stdout: TextIO = sys.stdout
    try:
        target = stdout.fileno()
    except (OSError, ValueError):
        return
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, target)
    os.close(devnull)


if __name__ == "__main__":
    sys.exit(main())
