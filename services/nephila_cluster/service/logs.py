"""Structured logs of a service: one JSON object per line on standard error, with fields for its subject.

`about` returns the fields of a message that a person searches for (url, host, partition, fetch id). Text of a hostile
page in these fields stays inside a JSON string; it cannot start a line.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


def configure(service: str, member: str, level: str = "info") -> None:
    """Let all loggers of the program write JSON."""
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _named(service, member),
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(ensure_ascii=True),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def _named(service: str, member: str) -> Any:
    def add(logger: Any, method: str, event: dict[str, Any]) -> dict[str, Any]:
        event["service"], event["member"] = service, member
        return event

    return add


def about(message: Any, partition: int | None = None) -> dict[str, Any]:
    """Fields of a log line about one message, for `extra=`."""
    fields: dict[str, Any] = {} if partition is None else {"partition": partition}
    for name in ("job", "url", "host"):
        if value := getattr(message, name, ""):
            fields[name] = value
    if url_key := getattr(message, "url_key", b""):
        number, attempt = getattr(message, "fetch_no", 0), getattr(message, "attempt", 0)
        fields["fetch_id"] = f"{url_key.hex()}-{number}-{attempt}"
    return fields
