"""The sender of webhooks as a program of its own (`nephila webhooks run`), and as a part of `nephila up`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nephila.kernel.process.stop_signals import stopped_by
from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.storage.source import Source

from nephila_harvest.webhooks.config import read_webhooks
from nephila_harvest.webhooks.sender import WebhookSender
from nephila_harvest.webhooks.store import WebhookStore
from nephila_harvest.webhooks.transport import HttpTransport

if TYPE_CHECKING:
    from starlette.applications import Starlette

GRACE_S = 15.0
"""Time for attempts in flight after a signal."""
POLL_S = 0.2
"""Interval of the check whether every change is delivered."""


def build_sender(path: Path, source: Source, clock: Clock) -> WebhookSender:
    """The sender of a file's webhooks. Raises `UsageError` in one line for a wrong file."""
    config = read_webhooks(path)
    transport = HttpTransport(config.allow_addresses, config.timeout_s)
    return WebhookSender(config, source, WebhookStore(source), transport, clock)


def health_application(sender: WebhookSender) -> Starlette:
    """/healthz, /readyz and /metrics of the sender."""
    from nephila.kernel.runtime.metrics import MetricsCollector, exposition, registry_of
    from nephila_control.http.application import application

    from nephila_harvest.webhooks.metrics import METRICS

    registry = registry_of([MetricsCollector("webhooks", sender, METRICS)])

    async def metrics() -> tuple[bytes, str]:
        return exposition(registry)

    return application(None, unready=lambda: sender.unready, metrics=metrics)


async def send(
    path: Path,
    source: Source,
    *,
    once: bool,
    ready: Callable[[WebhookSender], None],
    metrics_port: int | None = None,
) -> WebhookSender:
    """Deliver until a signal, or with `once` until every change is delivered. `metrics_port`: port of health and
    metrics; None: no server. Raises `UserError`."""
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    sender = build_sender(path, source, SystemClock())
    server = None
    if metrics_port is not None:
        from nephila_control.http.server import tcp_server

        server = tcp_server(health_application(sender), "", metrics_port, "--metrics-port")
    with stopped_by(loop, lambda _: over.set()):
        try:
            await sender.start()
            if server is not None:
                await server.open()
            ready(sender)
            while not over.is_set() and not (once and await sender.idle()):
                try:
                    await asyncio.wait_for(over.wait(), POLL_S if once else None)
                except TimeoutError:
                    continue
            await sender.drain(GRACE_S)
        finally:
            await sender.close()
            if server is not None:
                await server.close()
    return sender
