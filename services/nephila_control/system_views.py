"""An operator has to see which settings are in effect, and why. This module makes the views of settings with their
sources, of DNS and proxies, and of webhooks."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from nephila.kernel.runtime.config import FILE, section_class, settings, value_of, variable_of
from nephila.storage.ledgers.read_connection import NoTables
from nephila.storage.source import Source

from nephila_control import job_view, system_types
from nephila_control.http.json_schema import field_texts

if TYPE_CHECKING:
    from nephila.downloader.service import Downloader
    from nephila_proxies.proxy import Proxy
    from nephila_proxies.selection import ProxySelection

PROXIES: Final = 200
_HIDDEN = re.compile(r"pass|secret|token|auth|cookie|header|sources|store|dsn")
"""Names of settings whose values may hold a password, beside those of the type Secret."""


def configuration(
    configs: Mapping[str, msgspec.Struct], request: system_types.ListConfiguration
) -> system_types.Configuration:
    values = [
        value
        for section, config in sorted(configs.items())
        if not request.section or section == request.section
        for value in _values(section, config)
        if not request.changed or value.source != "default"
    ]
    return system_types.Configuration(values=values)


def _values(section: str, config: msgspec.Struct) -> Iterable[system_types.ConfigValue]:
    for name, setting in settings(type(config)).items():
        field, value = setting.field, value_of(config, name)
        hidden = setting.is_secret or _HIDDEN.search(name) is not None
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        variable = variable_of(section, name)
        from_environment = any(key in os.environ for key in (variable, variable + FILE.upper()))
        yield system_types.ConfigValue(
            section=section,
            name=name,
            value="" if hidden else _text(value),
            source="environment" if from_environment else "default" if value == default else "options",
            secret=hidden and value not in (default, "", ()),
            words=_words(type(config), name),
            default="" if hidden else _text(default),
        )


def _words(cls: type[msgspec.Struct], path: str) -> str:
    """Reads the text under a field, as the reference of settings has it."""
    name, _, rest = path.partition(".")
    if not rest:
        return field_texts(cls).get(name, "")
    section = next(section_class(field.type) for field in msgspec.structs.fields(cls) if field.name == name)
    assert section is not None
    return _words(section, rest)


def _text(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()[:2000]


def _proxies_of(downloader: Downloader) -> list[Proxy]:
    return list(cast("ProxySelection", downloader.proxies).pool.proxies()) if downloader.proxies is not None else []


def network_of(downloaders: Iterable[Downloader]) -> system_types.Network:
    """DNS and all proxies of these downloaders."""
    members = list(downloaders)
    stats = [downloader.resolver.stats for downloader in members]
    lookups = sum(counts.lookups for counts in stats)
    proxies = {proxy.name: proxy for downloader in members for proxy in _proxies_of(downloader)}
    return system_types.Network(
        dns=system_types.DnsState(
            names=sum(downloader.resolver.names for downloader in members),
            hits=sum(counts.hits for counts in stats),
            lookups=lookups,
            lookup_s=sum(counts.lookup_s for counts in stats) / max(lookups, 1),
            failures=sum(counts.failures for counts in stats),
            refreshes=sum(counts.refreshes for counts in stats),
            stale_served=sum(counts.stale_served for counts in stats),
        ),
        proxies=[
            system_types.ProxyRow(
                name=proxy.name,
                state=str(proxy.state.value),
                kind=str(proxy.kind or ""),
                country=str(proxy.country or ""),
                success=float(proxy.success),
                response_s=float(proxy.response_s or 0.0),
                bans=len(proxy.bans),
                evictions=int(proxy.evictions),
            )
            for proxy in proxies.values()
        ],
        proxies_total=len(proxies),
    )


def joined(networks: Sequence[system_types.Network]) -> system_types.Network:
    """The networks of all groups as one: each group has a DNS cache of its own, and a view of each proxy."""
    states = [network.dns for network in networks]
    lookups = sum(dns.lookups for dns in states)
    dns = {name: sum(getattr(dns, name) for dns in states) for name in system_types.DnsState.__struct_fields__}
    dns["lookup_s"] = sum(dns.lookup_s * dns.lookups for dns in states) / max(lookups, 1)
    rows: dict[str, list[system_types.ProxyRow]] = {}
    for network in networks:
        for row in network.proxies:
            rows.setdefault(row.name, []).append(row)
    return system_types.Network(
        dns=system_types.DnsState(**dns),
        proxies=[_joined_proxy(views) for views in rows.values()],
        proxies_total=len(rows),
    )


def _joined_proxy(views: list[system_types.ProxyRow]) -> system_types.ProxyRow:
    """One proxy as most groups see it. A host belongs to one group, so hosts that block it are added up."""
    states = Counter(sorted(view.state for view in views))
    measured = [view.response_s for view in views if view.response_s]
    return system_types.ProxyRow(
        name=views[0].name,
        state=states.most_common(1)[0][0],
        kind=max(view.kind for view in views),
        country=max(view.country for view in views),
        success=sum(view.success for view in views) / len(views),
        response_s=sum(measured) / max(len(measured), 1),
        bans=sum(view.bans for view in views),
        evictions=sum(view.evictions for view in views),
    )


def first_proxies(network: system_types.Network) -> system_types.Network:
    """The answer to a client: the first proxies by state and name, and rounded figures."""
    rows = sorted(network.proxies, key=lambda row: (row.state, row.name))[:PROXIES]
    replace = msgspec.structs.replace
    return replace(
        network,
        dns=replace(network.dns, lookup_s=round(network.dns.lookup_s, 4)),
        proxies=[replace(row, success=round(row.success, 3), response_s=round(row.response_s, 3)) for row in rows],
    )


def webhooks(source: Source) -> system_types.WebhookList:
    """Reads the database."""
    from nephila_harvest.change_feed import changes
    from nephila_harvest.webhooks.store import WebhookStore

    if not job_view.is_there(source):
        return system_types.WebhookList(webhooks=[])
    try:
        newest = changes(source, limit=1, newest=True).position
        with closing(WebhookStore(source)) as store:
            positions = store.positions()
    except NoTables:
        return system_types.WebhookList(webhooks=[])
    rows = [
        system_types.WebhookRow(
            name=name,
            position=position.seq,
            newest=newest,
            failures=position.failures,
            failing_since=float(position.failing_since or 0),
            error=position.error,
            dead=dead,
        )
        for name, (position, dead) in positions.items()
    ]
    return system_types.WebhookList(webhooks=rows)
