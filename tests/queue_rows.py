"""Rows of the queue in the log of the scheduler."""

from __future__ import annotations

from typing import Any

from nephila.kernel.messages import QueuedUrl
from nephila.scheduler.jobs.queue_entry import Entry, pack


def queue_row(job: str, url_key: bytes, url: str, host: str, **fields: Any) -> QueuedUrl:
    """A row with a new entry; `fields` of it."""
    return QueuedUrl(job, host, pack(Entry(url_key, url=url, **fields)))
