"""One connection: reads requests one after another, answers each by its action, logs its start and its end.

Start = the request's head is fully read. End = the last byte has left our buffer, or the connection is lost. Plain
bodies are written without a
task; a response that waits runs in a task, which ends with the connection.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

from benchmarks.web import behaviours, wire
from benchmarks.web.access_log import AccessLog
from benchmarks.web.content import Content

Action = dict[str, Any]
_MAX_HEAD = 1 << 20
_BODILESS = (204, 304)
_SIMPLE = {"body"}
_WAITS = ("latency_s", "pieces", "first")


OWN_PATH = "/.bench-token"
"""Not logged: it is no request of a crawler."""
TURN_S = 0.01
"""How often the server notes that its event loop runs."""


class Shared:
    """What all connections of a server share."""

    def __init__(self, content: Content, log: AccessLog, token: str = "") -> None:
        """`token`: what a bench that started the server is answered at OWN_PATH; empty: nothing."""
        self.content, self.log, self.token = content, log, token
        self.seen: dict[tuple[str, str], int] = {}
        self.open: set[Connection] = set()
        self._last = 0
        self._turned = time.monotonic()

    def turn(self) -> None:
        """Note that the event loop runs, from now on each TURN_S."""
        self._turned = time.monotonic()
        asyncio.get_running_loop().call_later(TURN_S, self.turn)

    def lateness(self, now: float) -> float:
        """The seconds for which what is read now may have waited, because the event loop stood still."""
        return round(max(0.0, now - self._turned - TURN_S), 4)

    def next_id(self) -> int:
        """A number for a new connection."""
        self._last += 1
        return self._last


class Connection(asyncio.Protocol):
    """The server's side of one TCP connection."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.id = shared.next_id()
        self.record: dict[str, Any] | None = None
        self._buffer = b""
        self._task: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._ending: tuple[bool] | None = None
        self._skip = 0
        self._opened = time.monotonic()
        self._peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transports have the methods, not the base class
        transport = self.transport
        transport.set_write_buffer_limits(high=0)
        self._peer = "{}:{}".format(*(transport.get_extra_info("peername") or ("?", 0))[:2])
        self._local = (transport.get_extra_info("sockname") or ("?",))[0]
        self.shared.open.add(self)

    def data_received(self, data: bytes) -> None:
        """More of a request; while one is being answered the next one waits."""
        self._buffer += data
        if self.record is None:
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone, or we closed."""
        self.shared.open.discard(self)
        if self._task:
            self._task.cancel()
        if self.record is not None:
            self.record["aborted"] = self._ending is None or not self._ending[0]
            self._write_record()
        self._drained.set()
        self.shared.log.closed(self.id, self._peer, self._opened)

    def pause_writing(self) -> None:
        """Something waits in our buffer."""
        self._drained.clear()

    def resume_writing(self) -> None:
        """All we wrote is in the kernel's hands."""
        self._drained.set()
        if self._ending is not None:
            self.end(close=self._ending[0])

    async def send(self, data: bytes | memoryview) -> None:
        """Write and wait until our buffer is empty."""
        if self.transport.is_closing():
            raise ConnectionResetError
        self.sent(data)
        await self._drained.wait()

    def sent(self, data: bytes | memoryview) -> None:
        """Write and count, without waiting."""
        if self.record is not None:
            self.record["bytes"] += len(data)
        if len(data):
            self.transport.write(data)

    def end(self, close: bool) -> None:
        """The answer is complete once the buffer is empty."""
        if self.transport.get_write_buffer_size():
            self._ending = (close,)
            return
        self._ending = None
        if self.record is not None:
            self._write_record()
        if close:
            self.transport.close()
        elif self._buffer:
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """Start the next request of the buffer, if its head is complete."""
        if self._skip:
            skipped = min(self._skip, len(self._buffer))
            self._skip -= skipped
            self._buffer = self._buffer[skipped:]
        if self.record is not None or self.transport.is_closing():
            return
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MAX_HEAD:
                self.transport.close()
            return
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        self._buffer = self._buffer[end + 4 :]
        self._begin(lines)

    def _begin(self, lines: list[str]) -> None:
        words = lines[0].split(" ")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if len(words) != 3:
            self.transport.close()
            return
        if self.shared.token and words[1] == OWN_PATH:
            token = self.shared.token.encode()
            self.transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(token) + token
            )
            self.transport.close()
            return
        self._skip = int(fields.get("content-length", "0") or 0)
        host = fields.get("host", "").rpartition(":")[0] or fields.get("host", "")
        now = time.monotonic()
        self.record = {
            "t_start": now,
            "late_s": self.shared.lateness(now),
            "host": host.lower(),
            "path": words[1],
            "method": words[0],
            "peer": self._peer,
            "address": self._local,
            "conn": self.id,
            "status": 0,
            "bytes": 0,
            "user_agent": fields.get("user-agent", ""),
            "aborted": False,
        }
        action = self.shared.content.find(host.lower(), words[1])
        self._answer(action, fields)

    def _answer(self, action: Action, fields: dict[str, str]) -> None:
        assert self.record is not None
        if action["do"] in _SIMPLE and not any(key in action for key in _WAITS):
            self.plain(action, fields)
            return
        self._task = asyncio.get_running_loop().create_task(self._run(action, fields))

    def plain(self, action: Action, fields: dict[str, str]) -> None:
        """A stored body at once; 304 where the client's validator is ours."""
        assert self.record is not None
        status = action.get("status", 200)
        if not_modified(action, fields):
            status = 304
        body = b"" if status in _BODILESS else wire.encoded(action, self.shared.content.body(action))
        said, self.record["retry_after_s"] = wire.retry_after(action.get("retry_after"))
        if said is None:
            del self.record["retry_after_s"]
        else:
            action = {**action, "retry_after": said}
        length = len(body) - action.get("extra", 0) if action.get("length", True) and status not in _BODILESS else None
        self.record["status"] = status
        self.sent(wire.head(action, status, length))
        if self.record["method"] != "HEAD":
            self.sent(body)
        self.end(close=bool(action.get("close")) or fields.get("connection", "").lower() == "close")

    async def _run(self, action: Action, fields: dict[str, str]) -> None:
        try:
            await behaviours.BEHAVIOURS[action["do"]](self, action, fields)
        except ConnectionError:
            self.transport.close()

    def _write_record(self) -> None:
        assert self.record is not None
        self.record["t_end"] = time.monotonic()
        self.shared.log.request(self.record)
        self.record = None


def not_modified(action: Action, fields: dict[str, str]) -> bool:
    """Whether the client holds the current version."""
    if "etag" in action and "if-none-match" in fields:
        tags = [tag.strip().removeprefix("W/") for tag in fields["if-none-match"].split(",")]
        return action["etag"].removeprefix("W/") in tags
    return "last_modified" in action and fields.get("if-modified-since") == action["last_modified"]
