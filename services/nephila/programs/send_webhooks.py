"""The sender of webhooks as a program of its own (`nephila webhooks run`), and as a part of `nephila up`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from nephila.harvest.webhooks.config import read_webhooks
from nephila.harvest.webhooks.sender import WebhookSender
from nephila.harvest.webhooks.store import WebhookStore
from nephila.harvest.webhooks.transport import HttpTransport
from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.storage.source import Source

GRACE_S = 15.0
"""Time for attempts in flight after a signal."""
POLL_S = 0.2
"""Interval of the check whether every change is delivered."""


def build_sender(path: Path, source: Source, clock: Clock) -> WebhookSender:
    """The sender of a file's webhooks. Raises `UsageError` in one line for a wrong file."""
    config = read_webhooks(path)
    transport = HttpTransport(config.allow_addresses, config.timeout_s)
    return WebhookSender(config, source, WebhookStore(source), transport, clock)


async def send(path: Path, source: Source, *, once: bool, ready: Callable[[WebhookSender], None]) -> WebhookSender:
    """Deliver until a signal, or with `once` until every change is delivered. Raises `UserError`."""
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    sender = build_sender(path, source, SystemClock())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    try:
        await sender.start()
        ready(sender)
        while not over.is_set() and not (once and await sender.idle()):
            try:
                await asyncio.wait_for(over.wait(), POLL_S if once else None)
            except TimeoutError:
                continue
        await sender.drain(GRACE_S)
    finally:
        await sender.close()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
    return sender
