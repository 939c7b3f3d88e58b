"""Settings of the Kafka bus. Each field can be set as NEPHILA_KAFKA__<FIELD>, the brokers also as NEPHILA_BOOTSTRAP."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from nephila.kernel.runtime.config import Secret, load, secret_fields
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import DEFAULT_LANES, DEFAULT_PARTITIONS

MAX_PARTITIONS = 65_536
MAX_BEAT_S = 1.0
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:,\[\]]+):[0-9]{1,5}")
_PREFIX = re.compile(r"[A-Za-z0-9._-]{0,100}")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Values of security_protocol, with Kafka's own names."""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""Values of sasl_mechanism."""


class KafkaConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the Kafka bus."""

    bootstrap: str = "127.0.0.1:9092"
    """HOST:PORT of one or more brokers, separated by commas."""
    security_protocol: str = "PLAINTEXT"
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, as the listener of the brokers."""
    ssl_ca_file: str = ""
    """PEM file of the certificate authorities that may sign the certificates of brokers. Empty: those of the system."""
    ssl_certificate_file: str = ""
    """PEM file of the certificate by which a broker recognizes this client, with its chain."""
    ssl_key_file: str = ""
    """PEM file of the key of that certificate. Empty: the key is in ssl_certificate_file."""
    ssl_key_password: Secret = ""
    """Password of an encrypted key."""
    ssl_check_hostname: bool = True
    """false: the certificate of a broker may have any name. Its issuer is checked all the same."""
    sasl_mechanism: str = ""
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."""
    sasl_username: str = ""
    """User for PLAIN and SCRAM."""
    sasl_password: Secret = ""
    """Password for PLAIN and SCRAM."""
    sasl_oauth_token_file: str = ""
    """File of the token for OAUTHBEARER; read again for each connection, so another program may renew it."""
    sasl_oauth_token_url: str = ""
    """Token endpoint of an OAuth server (grant client_credentials), instead of sasl_oauth_token_file. https://, or
    http:// on this machine."""
    sasl_oauth_client_id: str = ""
    """Client id at the token endpoint."""
    sasl_oauth_client_secret: Secret = ""
    """Client secret at the token endpoint."""
    sasl_oauth_scope: str = ""
    """Scope of the requested token. Empty: the server's default."""
    sasl_oauth_ca_file: str = ""
    """PEM file of the certificate authorities for the token endpoint. Empty: those of the system."""
    name: str = ""
    """Stable name of this member, unique among the members of a service: it determines the position on the ring.
    Empty: a new name at each start, which costs a rebalance."""
    prefix: str = ""
    """Prefix of the names of topics and groups, for several systems on one broker."""
    partitions: int = DEFAULT_PARTITIONS
    """Partitions of each keyed topic at the creation of the system; a power of two."""
    lanes: int = DEFAULT_LANES
    """Partitions of all topics but frontier, changes and dead in a new system; fewer where these have fewer. A power of
    two. So many members of each service can share the work."""
    session_s: float = 6.0
    """A member without a heartbeat for this time is dead. The broker's default minimum is 6 s."""
    heartbeat_s: float = 0.5
    """Time between heartbeats; at most a third of session_s, so that one lost heartbeat ends no member.
    In a beat they are 2 s apart, or session_s / 3."""
    rebalance_s: float = 10.0
    """Maximum time that a rebalance waits for a member."""
    drain_s: float = 3.0
    """Maximum time that a moving partition may take to finish its work."""
    commit_interval_s: float = 0.5
    """Time between commits of positions: what a crash may deliver again. In a beat four periods, if that is longer."""
    linger_s: float = 0.01
    """Maximum time that a message waits for others of its partition."""
    batch_bytes: int = 256 << 10
    """Maximum size of a record that holds several messages; a larger message has a record of its own."""
    gather_s: float = 0.03
    """Pause of a reader after an answer with records: what arrives meanwhile is read by one request. The first record
    after a silence is read at once."""
    gather_bytes: int = 256 << 10
    """Size of an answer after which there is no pause."""
    patient_s: float = 0.1
    """As gather_s, where no host waits: for pages, and for all that a scheduler reads while every job has a delay of
    0.5 s or more."""
    patient_bytes: int = 512 << 10
    """As gather_bytes, with patient_s."""
    rows_s: float = 1.0
    """As gather_s, for records: their rows and receipts come that much later, in fewer transactions and messages."""
    rows_bytes: int = 256 << 10
    """As gather_bytes, with rows_s. The pause is shorter where so many bytes arrive sooner."""
    beat_s: float = 0.5
    """Where every job has a delay of 0.5 s or more, members write and read at common instants, so many seconds apart
    and at most half the least delay; requests are published ahead of their dial. 0: at once. The same in all
    services."""
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


def kafka_config(
    options: Mapping[str, Any], where: str, file: Mapping[str, Any] | None = None, path: str = "environment"
) -> KafkaConfig:
    """The settings of a file, overridden by the environment, overridden by the options that are not None. Raises
    `UsageError`."""
    bootstrap = os.environ.get("NEPHILA_BOOTSTRAP")
    base = load(KafkaConfig, {**(file or {}), **({"bootstrap": bootstrap} if bootstrap else {})}, path, "kafka")
    overrides = {name: value for name, value in options.items() if value is not None}
    config = load(KafkaConfig, {**msgspec.structs.asdict(base), **overrides}, where)
    return checked(config, where if overrides or not file else path)


def checked(config: KafkaConfig, where: str) -> KafkaConfig:
    """The settings, checked. Raises `UsageError` in one line."""
    for address in config.bootstrap.split(","):
        if not _ADDRESS.fullmatch(address.strip()):
            raise UsageError(f"{where}: bootstrap {config.bootstrap!r} is not HOST:PORT, or several with commas")
    count = config.partitions
    if not 1 <= count <= MAX_PARTITIONS or count & (count - 1):
        raise UsageError(f"{where}: partitions must be a power of two up to {MAX_PARTITIONS}, not {count}")
    if config.lanes < 1 or config.lanes & (config.lanes - 1):
        raise UsageError(f"{where}: lanes must be a power of two, not {config.lanes}")
    if not _PREFIX.fullmatch(config.prefix):
        raise UsageError(f"{where}: prefix {config.prefix!r} may have letters, digits, '.', '_' and '-' only")
    if not 0 <= config.beat_s <= MAX_BEAT_S:
        raise UsageError(f"{where}: beat_s must be between 0 and {MAX_BEAT_S:g}, not {config.beat_s:g}")
    if config.heartbeat_s * 3 > config.session_s:
        raise UsageError(f"{where}: heartbeat_s must be at most a third of session_s ({config.session_s:g})")
    _check_security(config, where)
    return config


def _check_security(config: KafkaConfig, where: str) -> None:
    """Raise `UsageError` for settings of TLS or SASL that contradict each other, or that are incomplete."""
    protocol, mechanism = config.security_protocol, config.sasl_mechanism
    if protocol not in PROTOCOLS:
        raise UsageError(f"{where}: security_protocol {protocol!r} is none of {', '.join(PROTOCOLS)}")
    for prefix, used in (("ssl", protocol.endswith("SSL")), ("sasl", protocol.startswith("SASL"))):
        if not used and (setting := _given(config, f"{prefix}_")):
            protocols = " or ".join(name for name in PROTOCOLS if prefix.upper() in name.split("_"))
            raise UsageError(
                f"{where}: {setting} has no effect with security_protocol {protocol}; set it to {protocols}"
            )
    if config.ssl_key_file and not config.ssl_certificate_file:
        raise UsageError(f"{where}: ssl_key_file needs ssl_certificate_file")
    if not protocol.startswith("SASL"):
        return
    if mechanism not in MECHANISMS:
        raise UsageError(f"{where}: sasl_mechanism {mechanism!r} is none of {', '.join(MECHANISMS)}")
    if mechanism != "OAUTHBEARER":
        _require(config, where, mechanism, "sasl_username", "sasl_password")
    elif config.sasl_oauth_token_url:
        _require(config, where, mechanism, "sasl_oauth_client_id", "sasl_oauth_client_secret")
        _check_token_url(config.sasl_oauth_token_url, where)
    elif not config.sasl_oauth_token_file:
        raise UsageError(f"{where}: OAUTHBEARER needs sasl_oauth_token_file or sasl_oauth_token_url")
    if config.sasl_oauth_token_file and config.sasl_oauth_token_url:
        raise UsageError(f"{where}: sasl_oauth_token_file and sasl_oauth_token_url are both set; set one of them")


def _check_token_url(url: str, where: str) -> None:
    """Raise `UsageError` for an address to which the client secret would travel in the clear."""
    name = f"{where}: sasl_oauth_token_url {url!r}"
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise UsageError(f"{name} is no address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"{name} is no https:// address")
    if parts.scheme == "http" and not _is_loopback(host):
        raise UsageError(f"{name} would send the client secret unencrypted; use https://")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _given(config: KafkaConfig, prefix: str) -> str:
    """The first setting with this prefix that has not its default; empty if there is none."""
    fields = (field for field in msgspec.structs.fields(config) if field.name.startswith(prefix))
    return next((field.name for field in fields if getattr(config, field.name) != field.default), "")


def _require(config: KafkaConfig, where: str, mechanism: str, *names: str) -> None:
    for name in names:
        if not getattr(config, name):
            also = f", or {name}_file to a file that holds it" if name in secret_fields(KafkaConfig) else ""
            raise UsageError(f"{where}: {mechanism} needs {name}: set it{also}")
