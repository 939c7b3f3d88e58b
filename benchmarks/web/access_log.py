"""The server's log: one JSON line per finished request and one per closed connection. The judge's only witness.

A line is written when its request ends; lines reach the file within FLUSH_S, and all of them when the log is closed.
"""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

FLUSH_S = 0.05


class AccessLog:
    """Collects lines and writes them in batches, so that logging costs a request a few microseconds."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("a", buffering=1 << 20) if path else None
        self._lines: list[str] = []
        self._offset = time.time() - time.monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self.requests = 0

    def request(self, record: dict[str, Any]) -> None:
        """A finished request; the wall clock times are added here."""
        self.requests += 1
        record["event"] = "request"
        record["wall_start"] = record["t_start"] + self._offset
        record["wall_end"] = record["t_end"] + self._offset
        self._add(record)

    def closed(self, conn: int, peer: str, opened: float) -> None:
        """A connection that is gone."""
        self._add({"event": "close", "conn": conn, "peer": peer, "t_open": opened, "t_close": time.monotonic()})

    def close(self) -> None:
        """Write what is left."""
        if self._timer:
            self._timer.cancel()
        self._flush()
        if self._file:
            self._file.close()
            self._file = None

    def _add(self, record: dict[str, Any]) -> None:
        if self._file is None:
            return
        self._lines.append(json.dumps(record, separators=(",", ":")))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    def _flush(self) -> None:
        self._timer = None
        if self._file and self._lines:
            self._file.write("\n".join(self._lines) + "\n")
            self._file.flush()
            self._lines.clear()
