"""What the Kafka bus is told. Every field can be set as NEPHILA_KAFKA__<FIELD>, the broker as NEPHILA_BOOTSTRAP."""

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
    """See the fields."""

    bootstrap: str = "127.0.0.1:9092"
    # HOST:PORT of one or more brokers, separated by commas.
    name: str = ""
    # Stable name of this member, its own among all members of a service: its place on the ring. Empty: a new one each
    # time, which costs a rebalance at every restart.
    prefix: str = ""
    # Before the names of topics and groups, for several systems on one broker.
    partitions: int = DEFAULT_PARTITIONS
    # Of every keyed topic; a power of two, fixed while the system lives.
    session_s: float = 6.0
    # A member that was not heard of for so long is dead. The broker's own least is 6 s unless it is told otherwise.
    heartbeat_s: float = 0.5
    # Well under the session: one lost heartbeat must not end a member.
    rebalance_s: float = 10.0
    # How long the others wait for a member at a rebalance.
    drain_s: float = 3.0
    # How long a partition that moves may take to finish its work.
    commit_interval_s: float = 0.5
    # How often positions are committed: what a crash may bring again.
    linger_s: float = 0.01
    # How long a message waits for others of its partition.
    batch_bytes: int = 256 << 10
    # Most that is gathered in one record, unless one message is larger.
    gather_s: float = 0.03
    # How long the broker may hold back what is to be read, while there is work, until it is as much as:
    gather_bytes: int = 256 << 10
    patient_s: float = 0.1
    patient_bytes: int = 512 << 10
    # The same for pages and records, for which no host waits.
    inline_bytes: int = 512 << 10
    # A message above it, compressed, goes to the blob store, and its name into the record.
    blobs: str = ""
    # Where those lie: a directory that all members see, or s3://bucket/path. Empty: they are refused.
    buffer_messages: int = 2000
    # Messages of one topic that may wait here for credit; beyond it the partitions are paused.
    buffer_bytes: int = 64 << 20
    # Bytes of records of one topic that were taken and not dealt with; beyond it the partitions are paused.
    fetch_bytes: int = 1 << 20
    # Most that is read ahead of one partition.
    request_timeout_s: float = 30.0
    # When a request to the broker counts as lost.
    silent_s: float = 30.0
    # A consumer that is assigned, behind, not paused and silent for so long is ended and begun anew.
    max_attempts: int = 3
    # Deliveries of a message before it is a dead letter.
    accept_loss: bool = False
    # Go on at the beginning of a log when messages were deleted before they were read.


def kafka_config(values: Mapping[str, Any], where: str) -> KafkaConfig:
    """The environment's settings, and `values` over them (None: not given). Raises `UsageError` in one line."""
    bootstrap = os.environ.get("NEPHILA_BOOTSTRAP")
    base = load(KafkaConfig, {"bootstrap": bootstrap} if bootstrap else {}, "environment", "kafka")
    given = {name: value for name, value in values.items() if value is not None}
    return checked(load(KafkaConfig, {**msgspec.structs.asdict(base), **given}, where), where)


def checked(config: KafkaConfig, where: str) -> KafkaConfig:
    """The same settings if they make sense. Raises `UsageError` in one line."""
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
