"""The file of webhooks: where changes are delivered, and by which secret they are signed.

allow_addresses: [10.20.0.0/16]
webhooks:
  - name: newsroom
    url: https://receiver.example/nephila
    secret_file: /etc/nephila/newsroom.secret
    changes: [new, changed]
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta
from nephila.kernel.documents import yaml
from nephila.kernel.runtime.config import Secret, load, secret_variable
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.secret_files import current
from nephila.storage.changes import FEED_CHANGES

PREFIX = "whsec_"
KEY_BYTES = (24, 64)
"""Size of a key, as the specification of Standard Webhooks has it."""
MAX_WEBHOOKS = 100


class Webhook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One destination."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
    """Its position and dead letters are stored under this name."""
    url: str
    """http or https; a redirect counts as a failure."""
    secret: Secret = ""
    """`whsec_` and 24 to 64 bytes in base64; better in the file that `secret_file` names. Empty: the variable
    NEPHILA_WEBHOOK_<NAME>_SECRET, or its _FILE."""
    jobs: tuple[str, ...] = ()
    """Only changes of these jobs; empty: of all."""
    changes: tuple[str, ...] = ()
    """Only these: new, changed, moved, gone, returned; empty: all."""
    since: str = ""
    """Where a destination without a stored position begins: "first", a time, or the id of a change. Empty: behind the
    changes that exist when it is first seen."""


class WebhooksConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All destinations, and the limits that they share."""

    webhooks: tuple[Webhook, ...] = ()
    """The destinations."""
    allow_addresses: tuple[str, ...] = ()
    """Networks that may be dialled although they are private, as 10.20.0.0/16."""
    timeout_s: float = 15.0
    """Longest time for one delivery; the specification asks receivers to answer within 15 to 30 s."""
    first_pause_s: float = 5.0
    """Pause after the first failure; it doubles with each further one. A random part of up to a half is subtracted."""
    longest_pause_s: float = 900.0
    """Longest pause between two attempts."""
    give_up_s: float = 259_200.0
    """A change becomes a dead letter after this time of failures; three days cover a weekend."""
    refusals: int = 8
    """A change that the receiver refuses (4xx other than 408, 425 and 429) becomes a dead letter after this many
    attempts: the same bytes will not be accepted later."""
    poll_s: float = 1.0
    """Interval of reads while there is no further change."""


def key_of(webhook: Webhook, where: str) -> bytes:
    """The key of the present secret. Reads its file. Raises `UsageError` in one line without the secret."""
    variable = f"NEPHILA_WEBHOOK_{webhook.name.upper().replace('-', '_')}_SECRET"
    secret = current(webhook.secret) or secret_variable(variable)
    if not secret:
        raise UsageError(f"{where}: {webhook.name} has no secret: set secret_file, or {variable}_FILE")
    try:
        key = base64.b64decode(secret.strip().removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not KEY_BYTES[0] <= len(key) <= KEY_BYTES[1]:
        raise UsageError(
            f"{where}: the secret of {webhook.name} is not {PREFIX} and {KEY_BYTES[0]} to {KEY_BYTES[1]} bytes in "
            "base64; make one with: echo whsec_$(openssl rand -base64 32)"
        )
    return key


def read_webhooks(path: Path) -> WebhooksConfig:
    """The configuration of a file, checked as a whole. Raises `UsageError` in one line with its place."""
    name = str(path)
    try:
        nodes = yaml.parse(path.read_bytes(), name)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None
    if len(nodes) != 1 or not isinstance(values := yaml.to_builtins(nodes[0]), dict):
        raise UsageError(f"{name}: expected one map with the list `webhooks`")
    return _checked(values, name)


def _checked(values: dict[str, Any], name: str) -> WebhooksConfig:
    listed = values.get("webhooks")
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise UsageError(f"{name}: webhooks is not a list of maps with name and url")
    webhooks = tuple(load(Webhook, entry, f"{name}: webhooks[{number}]") for number, entry in enumerate(listed))
    config = msgspec.structs.replace(load(WebhooksConfig, {**values, "webhooks": []}, name), webhooks=webhooks)
    if not webhooks or len(webhooks) > MAX_WEBHOOKS:
        raise UsageError(f"{name}: there have to be 1 to {MAX_WEBHOOKS} webhooks, not {len(webhooks)}")
    seen: set[str] = set()
    for number, webhook in enumerate(webhooks):
        where = f"{name}: webhooks[{number}]"
        if webhook.name in seen:
            raise UsageError(f"{where}: there are two webhooks {webhook.name!r}")
        seen.add(webhook.name)
        _check_url(webhook.url, where)
        key_of(webhook, where)
        for change in webhook.changes:
            if change not in FEED_CHANGES:
                raise UsageError(f"{where}: changes: {change!r} is none of {', '.join(FEED_CHANGES)}")
    for network in config.allow_addresses:
        try:
            ipaddress.ip_network(network)
        except ValueError:
            raise UsageError(f"{name}: allow_addresses: {network!r} is no network like 10.20.0.0/16") from None
    return config


def _check_url(url: str, where: str) -> None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or re.search(r"[\x00-\x20\x7f]", url) or parts.username or parts.password:
        # The path of a webhook is often its secret, so the error does not repeat the URL.
        raise UsageError(f"{where}: url is no http(s) URL without a user name, blanks and controls")
