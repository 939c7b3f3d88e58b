"""What the program says about itself: settings with where they come from, DNS and proxies, webhooks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from nephila.kernel.runtime.config import FILE, secret_fields
from nephila.storage.ledgers.read_connection import NoTables
from nephila.storage.source import Source

from nephila_control import job_view, system_types

if TYPE_CHECKING:
    from nephila.downloader.service import Downloader
    from nephila_proxies.proxy import Proxy
    from nephila_proxies.selection import ProxySelection

PROXIES: Final = 200
_HIDDEN = re.compile(r"pass|secret|token|auth|cookie|header|proxies|store|dsn")
"""Names of settings whose values may hold a password, beside those of the type Secret."""


def configuration(
    configs: Mapping[str, msgspec.Struct], request: system_types.ListConfiguration
) -> system_types.Configuration:
    """See `Control.get_configuration`."""
    values = [
        value
        for section, config in sorted(configs.items())
        if not request.section or section == request.section
        for value in _values(section, config)
        if not request.changed or value.source != "default"
    ]
    return system_types.Configuration(values=values)


def _values(section: str, config: msgspec.Struct) -> Iterable[system_types.ConfigValue]:
    secrets = secret_fields(type(config))
    for field in msgspec.structs.fields(config):
        name, found = field.name, getattr(config, field.name)
        hidden = name in secrets or _HIDDEN.search(name) is not None
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        variable = f"NEPHILA_{section}__{name}".upper()
        given = any(one in os.environ for one in (variable, variable + FILE.upper()))
        yield system_types.ConfigValue(
            section=section,
            name=name,
            value="" if hidden else _text(found),
            source="environment" if given else "default" if found == default else "options",
            secret=hidden and found not in (default, "", ()),
        )


def _text(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()[:2000]


def _proxies_of(downloader: Downloader) -> list[Proxy]:
    """The proxies of the pool, as `nephila_proxies` knows them."""
    return list(cast("ProxySelection", downloader.proxies).pool.proxies()) if downloader.proxies is not None else []


def network(downloaders: Iterable[Downloader]) -> system_types.Network:
    """See `Control.get_network`."""
    found = list(downloaders)
    stats = [one.resolver.stats for one in found]
    lookups = sum(one.lookups for one in stats)
    proxies = {proxy.name: proxy for one in found for proxy in _proxies_of(one)}
    rows = sorted(proxies.values(), key=lambda proxy: (proxy.state.value, proxy.name))
    return system_types.Network(
        dns=system_types.DnsState(
            names=sum(one.resolver.names for one in found),
            hits=sum(one.hits for one in stats),
            lookups=lookups,
            lookup_s=round(sum(one.lookup_s for one in stats) / max(lookups, 1), 4),
            failures=sum(one.failures for one in stats),
            refreshes=sum(one.refreshes for one in stats),
            stale_served=sum(one.stale_served for one in stats),
        ),
        proxies=[
            system_types.ProxyRow(
                name=proxy.name,
                state=str(proxy.state.value),
                kind=str(proxy.kind or ""),
                country=str(proxy.country or ""),
                success=round(float(proxy.success), 3),
                response_s=round(float(proxy.response_s or 0.0), 3),
                bans=len(proxy.bans),
                evictions=int(proxy.evictions),
            )
            for proxy in rows[:PROXIES]
        ],
        proxies_total=len(rows),
    )


def webhooks(source: Source) -> system_types.WebhookList:
    """See `Control.list_webhooks`. Reads the database."""
    from nephila.storage.read.changes import changes
    from nephila_harvest.webhooks.store import WebhookStore

    if not job_view.is_there(source):
        return system_types.WebhookList(webhooks=[])
    try:
        newest = changes(source, limit=1, newest=True).position
        with closing(WebhookStore(source)) as store:
            found = store.positions()
    except NoTables:
        return system_types.WebhookList(webhooks=[])
    rows = [
        system_types.WebhookRow(
            name=name,
            position=one.seq,
            newest=newest,
            failures=one.failures,
            failing_since=float(one.failing_since or 0),
            error=one.error,
            dead=dead,
        )
        for name, (one, dead) in found.items()
    ]
    return system_types.WebhookList(webhooks=rows)
