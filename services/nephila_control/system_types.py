"""Requests and answers about the program itself: its settings, its DNS and proxies, and the webhooks of its changes."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from nephila_control.requests import Request


class ListConfiguration(Request):
    """Settings of the services of one program."""

    section: Annotated[str, Meta(max_length=40, pattern=r"^[a-z]*$")] = ""
    """Of this service only."""
    changed: bool = False
    """Only those that are not at their default."""


class ConfigValue(msgspec.Struct, kw_only=True):
    """One setting as it is in effect."""

    section: str
    name: str
    value: str
    """As JSON; empty for a secret."""
    source: Literal["default", "environment", "options"]
    """Where it comes from; options: of the command, its file, or derived from them."""
    secret: bool


class Configuration(msgspec.Struct, kw_only=True):
    """Settings by service and name."""

    values: list[ConfigValue]


class DnsState(msgspec.Struct, kw_only=True):
    """The DNS cache of one program, counted since its start."""

    names: int
    """In the cache now."""
    hits: int
    lookups: int
    lookup_s: float
    """Seconds of one look-up, on average."""
    failures: int
    refreshes: int
    stale_served: int


class ProxyRow(msgspec.Struct, kw_only=True):
    """A proxy, without its password."""

    name: str
    state: str
    kind: str
    country: str
    success: float
    """Share of its requests that succeed, the last ones weighing more."""
    response_s: float
    bans: int
    """Hosts that block it."""
    evictions: int


class Network(msgspec.Struct, kw_only=True):
    """How one program reaches the web."""

    dns: DnsState
    proxies: list[ProxyRow]
    """The first 200, by state and name."""
    proxies_total: int


class WebhookRow(msgspec.Struct, kw_only=True):
    """How far a webhook is."""

    name: str
    position: int
    """Number of the last change that is settled."""
    newest: int
    """Number of the newest change."""
    failures: int
    """Failed attempts since the last success."""
    failing_since: float
    """Seconds since 1970 UTC; 0 while deliveries succeed."""
    error: str
    dead: int
    """Changes that were given up."""


class WebhookList(msgspec.Struct, kw_only=True):
    """All webhooks by name."""

    webhooks: list[WebhookRow]


class GroupLag(msgspec.Struct, kw_only=True):
    """A group of readers of a topic."""

    group: str
    """Service, or part of one."""
    behind: int
    """Offsets that it has not committed."""


class TopicRow(msgspec.Struct, kw_only=True):
    """A topic of the broker."""

    name: str
    """Without the prefix of the system."""
    partitions: int
    records: int
    """Offsets between the oldest record and the end; a compacted topic holds fewer records."""
    groups: list[GroupLag]
    """Those that have committed an offset."""


class TopicList(msgspec.Struct, kw_only=True):
    """The topics of a system over Kafka."""

    topics: list[TopicRow]
