"""What a server does beside sending a stored body: waiting, dripping, flooding, lying, hanging up, pages without end.
One function per word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from benchmarks.web import endless, wire

if TYPE_CHECKING:
    from benchmarks.web.connection import Connection

Action = dict[str, Any]
Behaviour = Callable[["Connection", Action, dict[str, str]], Awaitable[None]]
_FOREVER_S = 86_400.0
_BLOCK = b"<p>" + b"endless words " * 4681 + b"</p>"


async def body(conn: Connection, action: Action, fields: dict[str, str]) -> None:
    """A stored body after its latency, in pieces, or after some failures first."""
    assert conn.record is not None
    if "latency_s" in action:
        await asyncio.sleep(action["latency_s"])
    if "first" in action and _failures_left(conn, action):
        first = action["first"]
        if first["status"] == 0:
            conn.transport.abort()
            return
        conn.plain({"do": "body", **first}, fields)
    elif "pieces" in action:
        await _in_pieces(conn, action)
    else:
        conn.plain(action, fields)


def _failures_left(conn: Connection, action: Action) -> bool:
    assert conn.record is not None
    key = (conn.record["host"], conn.record["path"])
    conn.shared.seen[key] = conn.shared.seen.get(key, 0) + 1
    return conn.shared.seen[key] <= int(action["first"]["times"])


async def _in_pieces(conn: Connection, action: Action) -> None:
    data = conn.shared.content.body(action)
    step = -(-len(data) // action["pieces"])
    await _start(conn, action, 200, len(data))
    for at in range(0, len(data), step):
        if at:  # with the last byte the answer is over, for us as for who reads it
            await asyncio.sleep(action["pause_s"])
        await conn.send(data[at : at + step])
    conn.end(close=False)


async def _start(conn: Connection, action: Action, status: int, length: int | None) -> None:
    assert conn.record is not None
    conn.record["status"] = status
    await conn.send(wire.head(action, status, length))


async def never(conn: Connection, action: Action, fields: dict[str, str]) -> None:
    """Take the request and say nothing."""
    await asyncio.sleep(_FOREVER_S)


async def drip_head(conn: Connection, action: Action, fields: dict[str, str]) -> None:
    """A header line now and then; the head never ends."""
    await conn.send(b"HTTP/1.1 200 OK\r\n")
    await _for_ever(conn, b"X-Wait: a bit longer\r\n", action["pause_s"])


async def drip(conn: Connection, action: Action, fields: dict[str, str]) -> None:
    """A byte now and then, of a body that is said to be long."""
    await _start(conn, action, 200, 10_000_000)
    await _for_ever(conn, b"x", action["pause_s"])


async def _for_ever(conn: Connection, data: bytes, pause_s: float) -> None:
    while True:
        await conn.send(data)
        await asyncio.sleep(pause_s)


async def endless_body(conn: Connection, action: Action, fields: dict[str, str]) -> None:
    """Up to *length* bytes as fast as the client takes them."""
    said = action["length"] if action.get("say", True) else None
    await _start(conn, action, 200, said)
    data = wire.chunk(_BLOCK) if action.get("chunked") else _BLOCK
    for _ in range(action["length"] // len(_BLOCK)):
        await conn.send(data)
    conn.end(close=True)


async def endless_head(conn: Connection, action: Action, fields: dict[str, str]) -> None:
    """Header lines without end, as fast as the client takes them (a gigabyte at most)."""
    await conn.send(b"HTTP/1.1 200 OK\r\n")
    lines = b"".join(b"X-Head-%d: %s\r\n" % (i, b"y" * 1000) for i in range(60))
    for _ in range((1 << 30) // len(lines)):
        await conn.send(lines)
    conn.end(close=True)


async def bomb(conn: Connection, action: Action, fields: dict[str, str]) -> None:
    """A megabyte that unpacks to a gibibyte."""
    # Off the loop: its checksum takes a quarter of a second, and what others ask meanwhile must be logged in time.
    data = await asyncio.to_thread(wire.bomb)
    await _start(conn, {**action, "coding": "gzip"}, 200, len(data))
    await conn.send(data)
    conn.end(close=False)


async def truncate(conn: Connection, action: Action, fields: dict[str, str]) -> None:
    """Half of the body, then the end of the connection, or silence if it is to hang."""
    data = conn.shared.content.body(action)
    await _start(conn, action, 200, len(data))
    half = data[: len(data) // 2]
    await conn.send(wire.chunk(bytes(half)) if action.get("chunked") else half)
    if action.get("hang"):
        await asyncio.sleep(_FOREVER_S)
    conn.end(close=True)


async def abort(conn: Connection, action: Action, fields: dict[str, str]) -> None:
    """Hang up without an answer."""
    conn.transport.abort()


async def raw(conn: Connection, action: Action, fields: dict[str, str]) -> None:
    """Bytes that are no answer, or a wrong one."""
    await conn.send(action["text"].encode("latin-1"))
    conn.end(close=True)


async def endless_page(conn: Connection, action: Action, fields: dict[str, str]) -> None:
    """A page of a web without end."""
    assert conn.record is not None
    data = endless.page(action, conn.record["path"])
    await _start(conn, action, 200, len(data))
    await conn.send(data)
    conn.end(close=False)


async def next_redirect(conn: Connection, action: Action, fields: dict[str, str]) -> None:
    """On to the next."""
    assert conn.record is not None
    location = endless.next_redirect(action, conn.record["path"])
    await _start(conn, {**action, "location": location}, 302, 0)
    conn.end(close=False)


BEHAVIOURS: dict[str, Behaviour] = {
    "body": body,
    "never": never,
    "drip_head": drip_head,
    "drip": drip,
    "endless": endless_body,
    "endless_head": endless_head,
    "bomb": bomb,
    "truncate": truncate,
    "abort": abort,
    "raw": raw,
    "next_redirect": next_redirect,
    **dict.fromkeys(endless.LINKS, endless_page),
}
