"""The watch of both kinds of resources, by kopf: it lists, watches, and begins again after a lost connection, an
expired version (410 Gone) or a restart of the API server.

Only kopf's low-level events are used. Its handlers of creation and change would keep a copy of each spec in an
annotation, which is limited to 256 KiB.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import kopf
from nephila.kernel.runtime.errors import UserError

from nephila_cluster.kubernetes.login import log_in
from nephila_cluster.operator.cluster import GROUP, PLURALS, VERSION, Kind

OnEvent = Callable[[Kind, str | None, Mapping[str, Any]], None]


async def watch(namespaces: Sequence[str], on_event: OnEvent, stop: asyncio.Event, ready: asyncio.Event) -> None:
    """Report all resources of these namespaces and every change, until `stop`. Raises when kopf gives up.

    `ready` is set when kopf has started, with signal handlers of its own."""
    for name in ("kopf", "kopf.objects"):  # one line for each event otherwise
        logging.getLogger(name).setLevel(logging.WARNING)
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(_log_in)
    for kind, plural in PLURALS.items():
        _report(registry, kind, plural, on_event)
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True  # no rights on CRDs and namespaces are needed
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 10
    await kopf.operator(
        registry=registry,
        settings=settings,
        namespaces=list(namespaces),
        standalone=True,
        stop_flag=stop,
        ready_flag=ready,
    )


def _log_in(**kwargs: Any) -> kopf.ConnectionInfo:
    """kopf calls it on a thread, and again after a 401."""
    try:
        login = log_in()
    except UserError as error:
        raise kopf.LoginError(str(error)) from None
    scheme, _, token = login.authorization.partition(" ")
    return kopf.ConnectionInfo(
        server=login.server,
        ca_path=login.ca_path,
        insecure=not login.verify,
        scheme=scheme or None,
        token=token or None,
        certificate_path=login.certificate_path,
        private_key_path=login.key_path,
        proxy_url=login.proxy,
    )


def _report(registry: kopf.OperatorRegistry, kind: Kind, plural: str, on_event: OnEvent) -> None:
    async def report(*, type: str | None, body: kopf.Body, **_: Any) -> None:
        on_event(kind, type, dict(body))

    kopf.on.event(GROUP, VERSION, plural, id=kind, registry=registry)(report)
