"""Metrics of the sender of webhooks. The label `webhook` has a value for each webhook of the file."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Metric

from nephila_harvest.webhooks.sender import WebhookSender

METRICS: tuple[Metric[WebhookSender], ...] = (
    Metric(
        "deliveries_total",
        "Changes that the receiver has accepted.",
        lambda s: dict(s.delivered),
        "webhook",
        counter=True,
    ),
    Metric(
        "failed_attempts_total",
        "Attempts that the receiver has refused or not answered. A rise: see nephila webhooks list.",
        lambda s: dict(s.failed),
        "webhook",
        counter=True,
    ),
    Metric(
        "dead_letters_total",
        "Changes that became dead letters. A rise: repair the receiver and replay them.",
        lambda s: dict(s.dead),
        "webhook",
        counter=True,
    ),
    Metric(
        "failing_seconds",
        "Time since a receiver began to fail, 0 while it accepts. Its changes wait for so long.",
        lambda s: s.failing,
        "webhook",
    ),
)
