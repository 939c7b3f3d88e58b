"""Messages between Scrapy processes and the program that has their frontier, over DIR/frontier.sock.

A frame is its length in four bytes and a MessagePack array that begins with the name of the message. `Hello`,
`Enqueue`, `Ask`, `CountRequests` and `Settle` are answered in their order; `Fetched`, `RobotsFetched` and `Done` are
not answered.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec
from nephila.kernel.messages import FetchRequest

SOCKET: Final = "frontier.sock"
VERSION: Final = 1
HEAD: Final = struct.Struct(">I")
MAX_FRAME: Final = 64 * 1024 * 1024


class _Message(msgspec.Struct, array_like=True, tag=True):
    pass


class Hello(_Message):
    """The first message: a spider begins."""

    version: int
    job: str
    """Name of the spider: its requests are a job of the frontier."""
    spec: dict[str, Any]
    """Fields of `spec` of the CrawlJob."""
    agent: str
    """Product token for robots.txt; empty when robots.txt is not obeyed."""


class Enqueue(_Message):
    """Queue a request. Answer: `Queued`."""

    url: str
    """The URL has no fragment."""
    variant: str
    """Distinguishes requests of one URL: method and body, or the number of a repetition. Empty: the page itself."""
    priority: int
    """0-255, the highest first."""
    depth: int
    data: bytes
    """The serialised request, which only its sender reads."""


class Ask(_Message):
    """Ask for one request that may be fetched now. Answer: `Lease` or `Nothing`."""


class CountRequests(_Message):
    """Answer: `Counts`."""


class Settle(_Message):
    """Answer: `Settled`, when all messages before survive a power cut."""


class Fetched(_Message):
    """The download of a lease has ended, with a response or without: its host may be fetched from again."""

    url_key: bytes
    attempt: int
    status: int = 0
    """0: no response."""
    retry_after: str = ""
    """The header of the response."""
    started_at: float = 0.0
    """Seconds since 1970 UTC; 0: nothing was sent to the host."""
    size_bytes: int = 0


class RobotsFetched(_Message):
    """The robots.txt of a lease, or why there is none."""

    url_key: bytes
    attempt: int
    status: int = 0
    body: bytes = b""
    retry_after: str = ""
    started_at: float = 0.0


class Done(_Message):
    """These requests are processed: all that follows from them is queued."""

    url_keys: list[bytes]


class Queued(_Message):
    """Whether the request is new. `error`: its URL cannot be in a frontier."""

    new: bool
    error: str = ""


class Lease(_Message):
    """A request to fetch now."""

    url_key: bytes
    attempt: int
    url: str
    data: bytes
    robots: bool = False
    """It is a robots.txt: `RobotsFetched` answers it."""


class Nothing(_Message):
    """No request may be fetched now; ask again after so many seconds, or after a change."""

    wait_s: float


class Counts(_Message):
    """Counts of the borrower's job."""

    queued: int
    elsewhere: int
    """Requests that other processes hold and that may lead to further ones."""


class Settled(_Message):
    """Everything received before is durable. To `Hello`: `error` says why the spider cannot begin."""

    error: str = ""


Sent = Hello | Enqueue | Ask | CountRequests | Settle | Fetched | RobotsFetched | Done
Answer = Queued | Lease | Nothing | Counts | Settled

encode: Final = msgspec.msgpack.Encoder().encode
decode_sent: Final = msgspec.msgpack.Decoder(Sent).decode
decode_answer: Final = msgspec.msgpack.Decoder(Answer).decode


def frame(message: Sent | Answer) -> bytes:
    """Raises `ValueError` for a message that is too large."""
    data = encode(message)
    if len(data) > MAX_FRAME:
        raise ValueError(f"a request has at most {MAX_FRAME:,} bytes, not {len(data):,}")
    return HEAD.pack(len(data)) + data


def lease_of(request: FetchRequest, data: bytes, *, robots: bool) -> Lease:
    return Lease(request.url_key, request.attempt, request.url.partition("#")[0], data, robots)
