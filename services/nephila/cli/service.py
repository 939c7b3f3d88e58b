"""`nephila scheduler|downloader|parser|storage --config F`: one service of a system, as an image runs it.

The file has the settings of the program at its top and those of the service in a map of its name:

    bootstrap: kafka:9092
    metrics_port: 9100
    downloader: {concurrency: 200}
"""

from __future__ import annotations

import importlib
import os
import socket
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from nephila.kernel.config import load
from nephila.kernel.errors import UsageError, UserError
from nephila.kernel.topics import DEFAULT_PARTITIONS

Config = Annotated[
    str,
    typer.Option(
        "--config", metavar="FILE", envvar="NEPHILA_CONFIG", help="YAML file of settings; none: the environment alone."
    ),
]

KINDS = {
    "scheduler": "nephila.scheduler",
    "downloader": "nephila.downloader",
    "parser": "nephila.parser",
    "storage": "nephila.storage",
}
"""Service → its package; an image installs one of them."""
MODULES = {"scheduler": "shards"}
"""Where `build` is, when not in `service`: over a broker the scheduler has a frontier for each partition."""
LEVELS = ("debug", "info", "warning", "error")


class ProgramConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every program of a system is told; each field with its unit and its reason."""

    bootstrap: str = ""
    """HOST:PORT of one or more brokers, separated by commas; NEPHILA_BOOTSTRAP."""
    member: str = ""
    """Stable name of this member, its own among all members of the service; the host's name when empty."""
    partitions: int = DEFAULT_PARTITIONS
    """Of every keyed topic: a power of two, the same for all services and fixed while the system lives."""
    metrics_port: Annotated[int, msgspec.Meta(le=65_535)] = 9100
    """Where /metrics, /healthz and /readyz are served; 0 takes a free one."""
    grace_s: float = 20.0
    """Seconds that work in hand may take after SIGTERM; less than what the machine waits before it kills."""
    log_level: str = "info"
    """debug, info, warning or error."""


def scheduler(config: Config = "") -> None:
    """Decide what is fetched, and when."""
    run("scheduler", config)


def downloader(config: Config = "") -> None:
    """Fetch what the scheduler asks for."""
    run("downloader", config)


def parser(config: Config = "") -> None:
    """Make records and links of pages."""
    run("parser", config)


def storage(config: Config = "") -> None:
    """Make records durable."""
    run("storage", config)


def read(name: str, path: str) -> tuple[ProgramConfig, dict[str, Any], Any]:
    """(settings of the program, of its transport, of the service) from file and environment. Raises `UsageError`."""
    values = _file(path) if path else {}
    where = path or "environment"
    own = values.pop(name, {})
    kafka = values.pop("kafka", {})
    for other in KINDS:
        values.pop(other, None)  # one file may serve all services
    for section, found in ((name, own), ("kafka", kafka)):
        if not isinstance(found, dict):
            raise UsageError(f"{where}: {section} is no map of settings")
    if bootstrap := os.environ.get("NEPHILA_BOOTSTRAP", ""):
        values["bootstrap"] = bootstrap
    program = load(ProgramConfig, values, where, "program")
    if not program.bootstrap:
        raise UsageError(f"{where}: bootstrap is missing; set it there or NEPHILA_BOOTSTRAP=HOST:PORT")
    if program.log_level.lower() not in LEVELS:
        raise UsageError(f"{where}: log_level {program.log_level!r} is none of {', '.join(LEVELS)}")
    module = importlib.import_module(f"{KINDS[name]}.config")
    kind = getattr(module, f"{name.capitalize()}Config")
    kafka = {**kafka, "partitions": program.partitions}
    if "partitions" in kind.__struct_fields__:
        own = {**own, "partitions": program.partitions}
    if name == "scheduler":
        own = {"status_interval_s": 1.0, **own}
    if name == "storage":
        own = {"wait_at_start": True, **own}
    return program, kafka, load(kind, own, f"{where}: {name}", name)


def transport_of(path: str) -> dict[str, Any]:
    """What a file of settings says of the transport. Raises `UsageError`."""
    values = _file(path)
    kafka = values.get("kafka", {})
    if not isinstance(kafka, dict):
        raise UsageError(f"{path}: kafka is no map of settings")
    return {**{name: values[name] for name in ("bootstrap", "partitions") if name in values}, **kafka}


def _file(path: str) -> dict[str, Any]:
    from nephila.kernel.strictyaml import parse, to_builtins

    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; --config names a YAML file of settings") from None
    documents = parse(data, path)
    if not documents:
        return {}
    if len(documents) > 1:
        raise UsageError(f"{path}: more than one document; a file of settings has one")
    values = to_builtins(documents[0])
    if not isinstance(values, dict):
        raise UsageError(f"{path}: is no map of settings")
    return values


def run(name: str, path: str) -> None:
    """Run one service until a signal; exit code 1 after a fault."""
    program, kafka, config = read(name, path)
    member = program.member or socket.gethostname()
    from nephila.exchange import exchanging
    from nephila.kernel import logs
    from nephila.kernel.bus.claims import open_claims
    from nephila.kernel.bus.kafka import KafkaBus
    from nephila.kernel.bus.kafka_config import KafkaConfig, checked
    from nephila.kernel.bus.kafka_topics import hush
    from nephila.kernel.clock import SystemClock
    from nephila.process import run_loop
    from nephila.program import Kind, Program

    logs.configure(name, member, program.log_level)
    hush()
    where = f"{path or 'environment'}: kafka"
    settings = checked(
        load(KafkaConfig, {**kafka, "bootstrap": program.bootstrap, "name": member}, where, "kafka"), where
    )
    service = importlib.import_module(f"{KINDS[name]}.{MODULES.get(name, 'service')}")
    figures = importlib.import_module(f"{KINDS[name]}.metrics").FIGURES

    async def main() -> Program:
        bus = KafkaBus(settings, SystemClock(), open_claims(settings.blobs))
        build = exchanging(service.build) if name == "parser" else service.build
        one = Program(Kind(name, build, figures), config, bus, port=program.metrics_port, grace_s=program.grace_s)
        await one.run()
        return one

    ended = run_loop(main())
    if isinstance(ended.error, UserError):
        raise ended.error
    if ended.error is not None:
        raise typer.Exit(1)
