"""Where a control command finds its program: the options that every such command has, and what they mean.

@with_target()
def pause(name: Name, target: Target, json: Json = False) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from nephila.cli.options import DEFAULT_OUT, Out, replaced
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.options import ELSEWHERE

if TYPE_CHECKING:
    from nephila_cluster.kafka.config import KafkaConfig

    from nephila_control.control_servers import TcpAddress

__all__ = [
    "ControlTarget",
    "Server",
    "TokenFile",
    "broker_settings",
    "tcp_address",
    "with_target",
]

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        metavar="HOST:PORT|FILE",
        help="The services at this Kafka broker, or the settings file of the services (TLS, SASL, prefix), not DIR "
        "(NEPHILA_BOOTSTRAP is not read).",
        rich_help_panel=ELSEWHERE,
    ),
]
Server = Annotated[
    str,
    typer.Option(
        "--server", metavar="URL", help="The control API at http(s)://HOST:PORT, not DIR.", rich_help_panel=ELSEWHERE
    ),
]
TokenFile = Annotated[
    str,
    typer.Option(
        "--token-file",
        metavar="FILE",
        envvar="NEPHILA_TOKEN_FILE",
        help="File with the token of --server.",
        rich_help_panel=ELSEWHERE,
    ),
]


@dataclass(frozen=True, slots=True)
class ControlTarget:
    """A control command talks to the program in a directory, to a system over Kafka, or to a server."""

    out: Path = DEFAULT_OUT
    bootstrap: str = ""
    server: str = ""
    token_file: str = ""
    prefix: str = ""
    """Prefix of the names of topics and groups; an empty one is that of the settings."""
    rows: str = ""
    """URL of a database with rows, in place of a directory."""

    def __post_init__(self) -> None:
        if self.bootstrap and self.server:
            raise UsageError("--bootstrap and --server exclude each other")

    @property
    def is_directory(self) -> bool:
        return not self.bootstrap and not self.server


def broker_settings(bootstrap: str | None, prefix: str | None = None, partitions: int | None = None) -> KafkaConfig:
    """The settings of the transport that --bootstrap names, completed from the environment: HOST:PORT of brokers, or
    the settings file of the services. Raises `UsageError`."""
    from nephila_cluster.kafka.config import kafka_config

    options: dict[str, Any] = {"prefix": prefix or None, "partitions": partitions}
    if not bootstrap or not is_file(bootstrap):
        return kafka_config({"bootstrap": bootstrap, **options}, "command line")
    from nephila_cluster.service.settings import transport_of

    return kafka_config(options, "command line", transport_of(bootstrap), bootstrap)


def is_file(bootstrap: str) -> bool:
    return bootstrap.endswith((".yaml", ".yml")) or "/" in bootstrap


def target_of(
    out: Out = DEFAULT_OUT, bootstrap: Bootstrap = "", server: Server = "", token_file: TokenFile = ""
) -> ControlTarget:
    return ControlTarget(out, bootstrap, server, token_file)


def with_target(find: Callable[..., ControlTarget] = target_of) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator: replace the parameter `target` of a command's function by the options of `find`, which returns it."""
    return replaced("target", find)


def tcp_address(api: str, token_file: str, access_file: str = "", *, firecrawl: bool = False) -> TcpAddress | None:
    """Combines --api, --api-token-file, --api-access and --firecrawl. Raises `UsageError`."""
    if not api:
        if firecrawl:
            raise UsageError("--firecrawl needs --api HOST:PORT, where it is served")
        return None
    from nephila_control.access.live_access import read_logins
    from nephila_control.control_servers import TcpAddress
    from nephila_control.http.tokens import host_and_port

    host, port = host_and_port(api, "--api")
    token, logins = read_logins(token_file, "--api-token-file", access_file, "--api-access")
    return TcpAddress(host, port, token, logins, firecrawl=firecrawl)
