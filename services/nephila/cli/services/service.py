"""`nephila scheduler|downloader|parser|storage --config F`: one service of a system, as an image runs it.

The file has the settings of the program at its top and those of the service in a map of its name:

    bootstrap: kafka:9092
    user_agent: "examplebot/1.0 (+https://example.org/bot)"
    downloader: {concurrency: 200}

What all services have to agree on stands at the top (sharedsettings.py), and members of a system compare it.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from nephila.cli.services.shared_settings import CONFIGS, agreed, own_settings, shared, wants_sqlite
from nephila.kernel.bus.kafka.config import KafkaConfig, checked
from nephila.kernel.runtime.config import check_environment, load
from nephila.kernel.runtime.errors import UsageError, UserError, without_resume
from nephila.kernel.topics import DEFAULT_PARTITIONS
from nephila.storage.config import StorageConfig

log = logging.getLogger(__name__)

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
    "api": "nephila.control",
}
"""Service → its package; an image installs one of them."""
MODULES = {"scheduler": "cluster.scheduler"}
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
    user_agent: str = ""
    """User-Agent of all requests; the name in it is the one under which robots.txt is obeyed. Empty =
    `Nephila/<version> (+<contact>)`."""
    contact: str = ""
    """URL or mail address named in the default User-Agent."""
    per_address: int = 4
    """Fetches at once on one server address, over the whole system. 0 = no limit."""
    address_gap_s: float = 0.25
    """Seconds between two starts on one server address, over the whole system."""
    networks: tuple[str, ...] = ()
    """Other limits for single networks, "10.0.0.0/8=16/0.05" = connections/gap."""
    metrics_port: Annotated[int, msgspec.Meta(le=65_535)] = 9100
    """Where /metrics, /healthz and /readyz are served, and the control API of `nephila api`; 0 takes a free one."""
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


def api(config: Config = "") -> None:
    """Serve the control API of a system."""
    run("api", config)


@dataclass(frozen=True, slots=True)
class Settings:
    """All that one program is told."""

    program: ProgramConfig
    kafka: dict[str, Any]
    service: Any
    agreed: dict[str, str]
    """What has to be the same in the other services of the system (sharedsettings.py)."""


def read(name: str, path: str) -> Settings:
    """The settings of the program, of its transport, of the service, from file and environment. Raises `UsageError`."""
    values = _file(path) if path else {}
    where = path or "environment"
    # One file may serve all services.
    sections = {section: values.pop(section, {}) for section in (*KINDS, "kafka")}
    for section, found in sections.items():
        if not isinstance(found, dict):
            raise UsageError(f"{where}: {section} is no map of settings")
    if bootstrap := os.environ.get("NEPHILA_BOOTSTRAP", ""):
        values["bootstrap"] = bootstrap
    check_environment({"program": ProgramConfig, "kafka": KafkaConfig, **CONFIGS})
    common = shared(values, sections, where)
    program = load(ProgramConfig, {**values, **common}, where, "program")
    if not program.bootstrap:
        raise UsageError(f"{where}: bootstrap is missing; set it there or NEPHILA_BOOTSTRAP=HOST:PORT")
    if program.log_level.lower() not in LEVELS:
        raise UsageError(f"{where}: log_level {program.log_level!r} is none of {', '.join(LEVELS)}")
    kind = CONFIGS[name]
    kafka = {**sections["kafka"], "partitions": program.partitions}
    own = own_settings(name, sections[name], common)
    if "partitions" in kind.__struct_fields__:
        own["partitions"] = program.partitions
    if name == "scheduler":
        own = {"status_interval_s": 1.0, **own}
    if name == "storage":
        own = {"wait_at_start": True, **own}
    config = load(kind, own, f"{where}: {name}", name)
    if isinstance(config, StorageConfig) and not config.store and not wants_sqlite(sections[name]):
        raise UsageError(
            f"{where}: storage.store is empty; set it to postgresql://user@host/database (a password belongs into "
            "NEPHILA_STORAGE__STORE), or ask for nephila.db of a single member with formats: [sqlite]"
        )
    member = program.member or socket.gethostname()
    return Settings(program, kafka, config, agreed(name, member, common, config))


def transport_of(path: str) -> dict[str, Any]:
    """What a file of settings says of the transport. Raises `UsageError`."""
    values = _file(path)
    kafka = values.get("kafka", {})
    if not isinstance(kafka, dict):
        raise UsageError(f"{path}: kafka is no map of settings")
    return {**{name: values[name] for name in ("bootstrap", "partitions") if name in values}, **kafka}


def _file(path: str) -> dict[str, Any]:
    from nephila.kernel.documents.yaml import parse, to_builtins

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
    """Run one service until a signal; exit code 1 after a fault, 2 for wrong settings. All it says is JSON lines."""
    from nephila.kernel.runtime import logs

    logs.configure(name, socket.gethostname())
    try:
        error = _run(name, read(name, path), path or "environment")
    except UserError as wrong:
        log.critical("%s", without_resume(str(wrong)))
        raise typer.Exit(2 if isinstance(wrong, UsageError) else 1) from None
    except ModuleNotFoundError:
        raise  # which extra has it is said by main
    except Exception as wrong:
        log.critical("%s: %s", type(wrong).__name__, wrong, exc_info=True)
        raise typer.Exit(1) from None
    if error is not None:
        raise typer.Exit(2 if isinstance(error, UsageError) else 1)


def _run(name: str, settings: Settings, path: str) -> BaseException | None:
    """What ended it, which it has said; None after a signal."""
    program = settings.program
    member = program.member or socket.gethostname()
    from nephila.kernel.bus.kafka.admin import hush
    from nephila.kernel.bus.kafka.bus import KafkaBus
    from nephila.kernel.bus.kafka.claim_check import open_claim_store
    from nephila.kernel.runtime import logs
    from nephila.kernel.runtime.clock import SystemClock
    from nephila.programs.cluster.outlink_router import exchanging
    from nephila.programs.process_setup import run_loop
    from nephila.programs.service_main import ServiceKind, ServiceProgram

    logs.configure(name, member, program.log_level)
    hush()
    where = f"{path}: kafka"
    told = {**settings.kafka, "bootstrap": program.bootstrap, "name": member}
    transport = checked(load(KafkaConfig, told, where, "kafka"), where)
    service = importlib.import_module(f"{KINDS[name]}.{MODULES.get(name, 'service')}")
    metrics = importlib.import_module(f"{KINDS[name]}.metrics").METRICS

    async def main() -> ServiceProgram:
        bus = KafkaBus(transport, SystemClock(), open_claim_store(transport.blobs), settings.agreed)
        build = exchanging(service.build) if name == "parser" else service.build
        kind = ServiceKind(name, build, metrics)
        one = ServiceProgram(kind, settings.service, bus, port=program.metrics_port, grace_s=program.grace_s)
        await one.run()
        return one

    return run_loop(main()).error
