"""Options of several commands: how a program fetches and writes, and where a control command finds its program."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nephila.cli.terminal import sanitize

if TYPE_CHECKING:
    from nephila.programs.control_servers import TcpAddress

LIMITS = "Limits"
WHERE = "What belongs to the crawl"
MANNERS = "Manners"
RESULT = "Result"


def _duration(text: str | float) -> float:
    """Seconds; a default is a number already."""
    from nephila.kernel.documents.field_types import parse_seconds

    try:
        return parse_seconds(text) if isinstance(text, str) else text
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _directory(text: str | Path) -> Path:
    """A directory that can be made and named in a message."""
    name = os.fspath(text)
    if not name.strip():
        raise typer.BadParameter("the name of the directory is empty; . is the current one")
    if "\0" in name or not name.isprintable():
        # Surrogates stand for bytes that are no UTF-8: run.json and messages could not say the name.
        raise typer.BadParameter(f"{sanitize(name)!r} is no name that can be written as text (UTF-8 without controls)")
    return Path(name)


DURATION: Any = {"parser": _duration, "metavar": "TIME"}
"""Of an option that is a span of time: 500ms, 1s, 1h30m; a bare number is seconds."""
Out = Annotated[Path, typer.Option(parser=_directory, metavar="DIR", help="Directory of the result.")]
Concurrency = Annotated[
    int,
    typer.Option(min=1, max=10_000, metavar="N", help="Fetches at once, over all hosts.", rich_help_panel=MANNERS),
]
UserAgent = Annotated[str, typer.Option(metavar="S", help="User-Agent to send.", rich_help_panel=MANNERS)]
Contact = Annotated[
    str, typer.Option(metavar="S", help="URL or mail address named in User-Agent.", rich_help_panel=MANNERS)
]
Header = Annotated[
    list[str] | None,
    typer.Option(
        metavar="K:V|@FILE",
        help="Extra request header, for the seeds' hosts or, as 'HOST K:V', for one; Accept-Language and the like for "
        "all.",
        rich_help_panel=MANNERS,
    ),
]
Cookies = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Begin with the cookies of a file (Netscape format), and keep what sites set; /dev/null: with none.",
        rich_help_panel=MANNERS,
    ),
]
IgnoreRobots = Annotated[bool, typer.Option("--ignore-robots", help="Do not ask robots.txt.", rich_help_panel=MANNERS)]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Reach loopback and private addresses.", rich_help_panel=MANNERS)
]
HostMap = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN=ADDRESS", help="Resolve hosts like '*.x.test=127.0.0.1'.", rich_help_panel=MANNERS),
]
Format = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        help="Of sqlite, postgres, jsonl, markdown, warc, raw, parquet; one of the first two is on.",
        rich_help_panel=RESULT,
    ),
]
Store = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="Rows into PostgreSQL, postgresql://user@host/database, not DIR/nephila.db; with a password better in "
        "NEPHILA_STORAGE__STORE.",
        rich_help_panel=RESULT,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=256,
        metavar="N",
        help="Processes that fetch and parse; 0 = all in one; default: as many as help, up to the other cores.",
        rich_help_panel=MANNERS,
    ),
]
Rules = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Rules that make items of pages; read again when they change.", rich_help_panel=RESULT
    ),
]
RuleScripts = Annotated[
    bool,
    typer.Option("--rule-scripts", help="Run the scripts of rules, in a confined process.", rich_help_panel=RESULT),
]
KeepRaw = Annotated[
    bool,
    typer.Option("--keep-raw", help="Keep the bodies, for nephila rules apply; as format raw.", rich_help_panel=RESULT),
]
Api = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Serve the control API on a TCP port too.", rich_help_panel=RESULT)
]
ApiTokenFile = Annotated[
    str,
    typer.Option(metavar="FILE", help="File with the token that clients of --api send.", rich_help_panel=RESULT),
]

# Where a control command finds its program; all three in every such command.
RunningIn = Annotated[
    Path, typer.Option("--out", parser=_directory, metavar="DIR", help="The program that runs in DIR.")
]
Bootstrap = Annotated[
    str, typer.Option("--bootstrap", metavar="HOST:PORT", help="The services at this Kafka broker, not DIR.")
]
Server = Annotated[
    str, typer.Option("--server", metavar="URL", help="The control API at http(s)://HOST:PORT, not DIR.")
]
TokenFile = Annotated[
    str,
    typer.Option("--token-file", metavar="FILE", envvar="NEPHILA_TOKEN_FILE", help="File with the token of --server."),
]
DEFAULT_OUT = Path("crawl-out")


@dataclass(frozen=True, slots=True)
class Target:
    """What a control command talks to: the program in a directory, a system over Kafka, or a server."""

    out: Path = DEFAULT_OUT
    bootstrap: str = ""
    server: str = ""
    token_file: str = ""
    kafka: dict[str, Any] | None = None
    """Settings of the transport beside `bootstrap`."""

    def check(self) -> Target:
        """Raises `UsageError` when two are named."""
        from nephila.kernel.runtime.errors import UsageError

        if self.bootstrap and self.server:
            raise UsageError("--bootstrap and --server exclude each other")
        return self

    @property
    def is_directory(self) -> bool:
        """Whether it is a program in a directory."""
        return not self.bootstrap and not self.server


def tcp_address(api: str, token_file: str) -> TcpAddress | None:
    """What --api and --api-token-file say. Raises `UsageError`."""
    if not api:
        return None
    from nephila.control.tokens import host_and_port, read_token
    from nephila.programs.control_servers import TcpAddress

    return TcpAddress(*host_and_port(api, "--api"), read_token(token_file, "--api-token-file"))
