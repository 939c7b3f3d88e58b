"""Settings of the Kafka bus. Each field can be set as NEPHILA_KAFKA__<FIELD>, the brokers also as NEPHILA_BOOTSTRAP."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from nephila.kernel.runtime.config import load
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import DEFAULT_PARTITIONS

MAX_PARTITIONS = 65_536
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:,\[\]]+):[0-9]{1,5}")
_PREFIX = re.compile(r"[A-Za-z0-9._-]{0,100}")


class KafkaConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the Kafka bus."""

    bootstrap: str = "127.0.0.1:9092"
    """HOST:PORT of one or more brokers, separated by commas."""
    name: str = ""
    """Stable name of this member, unique among the members of a service: it determines the position on the ring.
    Empty: a new name at each start, which costs a rebalance."""
    prefix: str = ""
    """Prefix of the names of topics and groups, for several systems on one broker."""
    partitions: int = DEFAULT_PARTITIONS
    """Partitions of each keyed topic; a power of two, fixed for the life of the system."""
    session_s: float = 6.0
    """A member without a heartbeat for this time is dead. The broker's default minimum is 6 s."""
    heartbeat_s: float = 0.5
    """Time between heartbeats; at most a third of session_s, so that one lost heartbeat ends no member."""
    rebalance_s: float = 10.0
    """Maximum time that a rebalance waits for a member."""
    drain_s: float = 3.0
    """Maximum time that a moving partition may take to finish its work."""
    commit_interval_s: float = 0.5
    """Time between commits of positions: what a crash may deliver again."""
    linger_s: float = 0.01
    """Maximum time that a message waits for others of its partition."""
    batch_bytes: int = 256 << 10
    """Maximum size of a record that holds several messages; a larger message has a record of its own."""
    gather_s: float = 0.03
    """Maximum time that the broker may hold back a fetch answer, while there is work, until it has gather_bytes."""
    gather_bytes: int = 256 << 10
    """Size of a fetch answer that the broker sends at once."""
    patient_s: float = 0.1
    """As gather_s, for pages and records: no host waits for them."""
    patient_bytes: int = 512 << 10
    """As gather_bytes, for pages and records."""
    inline_bytes: int = 512 << 10
    """A message that is larger when compressed goes to the blob store, and its name into the record."""
    blobs: str = ""
    """The blob store: a directory that all members see, or s3://bucket/path. Empty: such messages are refused."""
    buffer_messages: int = 2000
    """Messages of one topic that may wait for credit; beyond it the partitions are paused."""
    buffer_bytes: int = 64 << 20
    """Bytes of unfinished records of one topic; beyond it the partitions are paused."""
    fetch_bytes: int = 1 << 20
    """Maximum bytes that are read ahead of one partition."""
    request_timeout_s: float = 30.0
    """Time after which a request to the broker counts as lost."""
    silent_s: float = 30.0
    """A consumer that is assigned, behind, not paused and silent for this time is restarted."""
    max_attempts: int = 3
    """Deliveries of a message before it is a dead letter."""
    accept_loss: bool = False
    """Continue at the beginning of a log when messages were deleted before they were read."""


def kafka_config(values: Mapping[str, Any], where: str) -> KafkaConfig:
    """The settings of the environment, overridden by those in `values` that are not None. Raises `UsageError`."""
    bootstrap = os.environ.get("NEPHILA_BOOTSTRAP")
    base = load(KafkaConfig, {"bootstrap": bootstrap} if bootstrap else {}, "environment", "kafka")
    given = {name: value for name, value in values.items() if value is not None}
    return checked(load(KafkaConfig, {**msgspec.structs.asdict(base), **given}, where), where)


def checked(config: KafkaConfig, where: str) -> KafkaConfig:
    """The settings, checked. Raises `UsageError` in one line."""
    for address in config.bootstrap.split(","):
        if not _ADDRESS.fullmatch(address.strip()):
            raise UsageError(f"{where}: bootstrap {config.bootstrap!r} is not HOST:PORT, or several with commas")
    count = config.partitions
    if not 1 <= count <= MAX_PARTITIONS or count & (count - 1):
        raise UsageError(f"{where}: partitions must be a power of two up to {MAX_PARTITIONS}, not {count}")
    if not _PREFIX.fullmatch(config.prefix):
        raise UsageError(f"{where}: prefix {config.prefix!r} may have letters, digits, '.', '_' and '-' only")
    if config.heartbeat_s * 3 > config.session_s:
        raise UsageError(f"{where}: heartbeat_s must be at most a third of session_s ({config.session_s:g})")
    return config
