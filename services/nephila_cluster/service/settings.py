"""The settings of one service of a system, from a YAML file and the environment.

The file has the settings of the program at its top and those of the service in a map of its name:

    bootstrap: kafka:9092
    user_agent: "examplebot/1.0 (+https://example.org/bot)"
    downloader: {concurrency: 200}

Settings on which all services have to agree stand at the top (shared_settings.py), and members of a system compare it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from nephila.downloader.config import DownloaderConfig
from nephila.kernel.live_settings import LEVELS
from nephila.kernel.runtime.config import check_environment, load
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import DEFAULT_PARTITIONS
from nephila.parser.config import ParserConfig
from nephila.storage.config import StorageConfig

from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.service.shared_settings import CONFIGS, agreed, own_settings, shared, wants_sqlite


class ProgramConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of all programs of a system."""

    bootstrap: str = ""
    """HOST:PORT of one or more brokers, separated by commas; also NEPHILA_BOOTSTRAP."""
    member: str = ""
    """Stable name of this member, unique among the members of the service. Empty: the host name."""
    partitions: int = DEFAULT_PARTITIONS
    """Partitions of each keyed topic at the creation of the system: a power of two, the same for all services. It
    stays when `nephila service topics grow` adds partitions."""
    user_agent: str = ""
    """User-Agent of all requests; its product token selects the group in robots.txt. Empty: `Nephila/<version>
    (+<contact>)`, or with an empty contact the project's page."""
    contact: str = ""
    """URL or mail address in the default User-Agent. Empty: the project's page is sent."""
    per_address: int = 4
    """Simultaneous fetches on one server address, over the whole system; 0 = no limit."""
    address_gap_s: float = 0.25
    """Time between two starts on one server address, over the whole system."""
    networks: tuple[str, ...] = ()
    """Other limits for single networks: "10.0.0.0/8=16/0.05" = connections/gap in seconds."""
    tenants: tuple[str, ...] = ()
    """Tenants with their quota and their share: "news pages=100000 per=day share=2" (docs/operations.md)."""
    metrics_port: Annotated[int, msgspec.Meta(le=65_535)] = 9100
    """Port of /metrics, /healthz and /readyz, and of the control API of `nephila service api`; 0 = any free port."""
    grace_s: float = 20.0
    """Time that unfinished work may take after SIGTERM; less than the time after which the machine kills."""
    log_level: str = "info"
    """debug, info, warning or error."""
    trace_ratio: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """Share of the URLs whose way through all services is traced by OpenTelemetry, the same in all services; 0 = off.
    Needs `nephila[tracing]`."""
    trace_endpoint: str = "http://localhost:4318/v1/traces"
    """Collector that takes the traces (OTLP over HTTP)."""


class FetchParseConfig(NamedTuple):
    """Settings of `nephila service fetchparse`: of both services, each from its own section."""

    downloader: DownloaderConfig
    parser: ParserConfig


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    """All settings of one program."""

    program: ProgramConfig
    kafka: dict[str, Any]
    service: Any
    agreed: dict[str, str]
    """Settings that must be equal in the other services of the system (shared_settings.py)."""


def read(name: str, path: str) -> ProgramSettings:
    """The settings of the program, of its transport, of the service, from file and environment. Raises `UsageError`."""
    values = _file(path) if path else {}
    where = path or "environment"
    # One file may serve all services.
    sections = {section: values.pop(section, {}) for section in (*CONFIGS, "kafka", "operator")}
    for section, section_values in sections.items():
        if not isinstance(section_values, dict):
            raise UsageError(f"{where}: {section} is no map of settings")
    if bootstrap := os.environ.get("NEPHILA_BOOTSTRAP", ""):
        values["bootstrap"] = bootstrap
    check_environment({"program": ProgramConfig, "kafka": KafkaConfig, **CONFIGS})
    common = shared(values, sections, where)
    program = load(ProgramConfig, {**values, **common}, where, "program")
    if not program.bootstrap:
        raise UsageError(f"{where}: bootstrap is missing; set it there or NEPHILA_BOOTSTRAP=HOST:PORT")
    check_level(program.log_level, where)
    kafka = {**sections["kafka"], "partitions": program.partitions}
    member = program.member or socket.gethostname()
    if name == "fetchparse":
        parts = (_service(part, sections, common, program, where) for part in FetchParseConfig._fields)
        both = FetchParseConfig(*parts)
        return ProgramSettings(program, kafka, both, agreed("downloader", member, common, both.downloader))
    config = _service(name, sections, common, program, where)
    return ProgramSettings(program, kafka, config, agreed(name, member, common, config))


def check_level(level: str, where: str) -> None:
    """Raise `UsageError` for a level that no line of the log can have."""
    if level.lower() not in LEVELS:
        raise UsageError(f"{where}: log_level {level!r} is none of {', '.join(LEVELS)}")


def _service(
    name: str, sections: Mapping[str, Any], common: Mapping[str, Any], program: ProgramConfig, where: str
) -> Any:
    """The settings of one service. Raises `UsageError`."""
    kind = CONFIGS[name]
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
            f"{where}: storage.store is empty; set it to postgresql://user@host/database (a password belongs into a "
            "file that storage.store_file or NEPHILA_STORAGE__STORE_FILE names), or ask for "
            "nephila.db of a single member with formats: [sqlite]"
        )
    return config


def transport_of(path: str) -> dict[str, Any]:
    """The settings of the transport in a file. Raises `UsageError`."""
    values = _file(path)
    kafka = values.get("kafka", {})
    if not isinstance(kafka, dict):
        raise UsageError(f"{path}: kafka is no map of settings")
    return {**{name: values[name] for name in ("bootstrap", "partitions") if name in values}, **kafka}


def section_of(path: str, name: str, top: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """From a file for a program that is not over Kafka: the settings `top` of its top, and one section. Raises
    `UsageError`."""
    values = _file(path) if path else {}
    section = values.get(name, {})
    if not isinstance(section, dict):
        raise UsageError(f"{path}: {name} is no map of settings")
    return {key: values[key] for key in top if key in values}, section


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
