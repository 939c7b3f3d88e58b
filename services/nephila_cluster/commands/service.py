"""`nephila service scheduler|downloader|… --config F`: one service of a system, as an image runs it."""

from __future__ import annotations

import logging
import socket
from typing import Annotated

import typer
from nephila.kernel.runtime.errors import UsageError, UserError, without_resume

log = logging.getLogger(__name__)

Config = Annotated[
    str,
    typer.Option(
        "--config", metavar="FILE", envvar="NEPHILA_CONFIG", help="YAML file of settings; none: the environment alone."
    ),
]


def scheduler(config: Config = "") -> None:
    """Decide what is fetched, and when."""
    run("scheduler", config)


def downloader(config: Config = "") -> None:
    """Fetch what the scheduler asks for."""
    run("downloader", config)


def parser(config: Config = "") -> None:
    """Make records and links of pages."""
    run("parser", config)


def fetchparse(config: Config = "") -> None:
    """Fetch and parse in one program: a downloader and a parser whose pages do not travel over the broker."""
    run("fetchparse", config)


def storage(config: Config = "") -> None:
    """Make records durable."""
    run("storage", config)


def api(config: Config = "") -> None:
    """Serve the control API of a system."""
    run("api", config)


def run(name: str, path: str) -> None:
    """Run one service until a signal; exit code 1 after a fault, 2 for wrong settings. All output is JSON lines."""
    from nephila_cluster.service import logs
    from nephila_cluster.service.run import run_service
    from nephila_cluster.service.settings import read

    logs.configure(name, socket.gethostname())
    try:
        error = run_service(name, read(name, path), path or "environment")
    except UserError as wrong:
        log.critical("%s", without_resume(str(wrong)))
        raise typer.Exit(2 if isinstance(wrong, UsageError) else 1) from None
    except ModuleNotFoundError:
        raise  # main names the extra that has the module
    except Exception as wrong:
        log.critical("%s: %s", type(wrong).__name__, wrong, exc_info=True)
        raise typer.Exit(1) from None
    if error is not None:
        raise typer.Exit(2 if isinstance(error, UsageError) else 1)
