"""The body and headers of a delivery, as Standard Webhooks 1.0 specifies them. Pure.

The signature is HMAC-SHA256 over id, time and body. The id is that of the change, so a receiver recognises a delivery
that it has already processed; the time is that of the attempt, so a receiver can refuse an old one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

import msgspec
from nephila import __version__

from nephila_harvest.change_feed import FeedRow

_encode = msgspec.json.Encoder().encode


def body_of(row: FeedRow) -> bytes:
    """The JSON document of a change; the same bytes at each attempt."""
    change = row.change
    return _encode(
        {"type": f"page.{change.change}", "timestamp": change.at, "data": {"seq": row.seq, **change._asdict()}}
    )


def signature(key: bytes, id: str, timestamp: int, body: bytes) -> str:
    """The value of the header webhook-signature."""
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def headers_of(key: bytes, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of an attempt."""
    return {
        "Content-Type": "application/json",
        "User-Agent": f"Nephila/{__version__}",
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(key, id, timestamp, body),
    }
