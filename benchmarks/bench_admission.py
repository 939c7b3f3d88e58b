"""Floods of large pages in containers of 256 MB to 2 GB: is the crawl ever killed for memory?

    python -m benchmarks.bench_admission [--limits MB…] [--sizes BYTES…] [--servers fast late slow] [--without]

A row per container, size of the pages and kind of server. `fast` sends at once, with a Content-Length. `late` waits for
2 s, longer than the first interval of the admission, and then sends at once without a Content-Length. `slow` sends
4 MB/s on each connection. `--without` adds a row without admission for each container, at the largest size.

The server runs outside of the cgroup. The crawl is the program as installed, on one process, with 100 fetches at once.
It needs a writable cgroup hierarchy of the memory controller, of version 1 or 2; without one it ends with a line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path("/sys/fs/cgroup")
HOSTS = 100
LIMITS_MB = (256, 400, 512, 800, 2048)
SIZES = (10_000, 1_000_000, 9_000_000, 20_000_000)
KINDS = ("fast", "late", "slow")
LATE_S = 2.0
SLOW_BYTES_PER_S = 4_000_000
PIECE = 1 << 16
FLOOD_BYTES = 720_000_000
"""Sum of the pages of a row, within `PAGES`."""
PAGES = (30, 200)
PARAGRAPH = b"<p>The harbour was closed for a week, and ships waited outside until the storm was over.</p>\n"


class Group:
    """A cgroup with a limit of memory, for the duration of a crawl."""

    def __init__(self, limit: int) -> None:
        unified = (ROOT / "cgroup.controllers").exists()
        base = ROOT if unified else ROOT / "memory"
        self.path = base / f"nephila-bench-{os.getpid()}"
        self.path.mkdir()
        (self.path / ("memory.max" if unified else "memory.limit_in_bytes")).write_text(str(limit))
        with contextlib.suppress(OSError):
            (self.path / ("memory.swap.max" if unified else "memory.swappiness")).write_text("0")
        self._events = self.path / ("memory.events" if unified else "memory.oom_control")
        self._peak = self.path / ("memory.peak" if unified else "memory.max_usage_in_bytes")

    def enter(self) -> None:
        """Move the calling process into the group."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def close(self) -> tuple[int, int]:
        """Remove the group; the highest use of memory, page cache included, and the processes killed for memory."""
        peak = kills = 0
        with contextlib.suppress(OSError):
            peak = int(self._peak.read_text())
        with contextlib.suppress(OSError):
            kills = int(dict(line.split() for line in self._events.read_text().splitlines())["oom_kill"])
        for _ in range(100):
            try:
                self.path.rmdir()
                break
            except OSError:
                time.sleep(0.05)
        return peak, kills


def serve(port: Any, size: int, kind: str) -> None:
    """Answer every request with a page of `size` bytes, as `kind` of server."""
    body = PARAGRAPH * (size // len(PARAGRAPH))
    framing = b"Transfer-Encoding: chunked" if kind == "late" else b"Content-Length: %d"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                page = b"<title>%s</title>" % head.split()[1]
                if kind == "late":
                    await asyncio.sleep(LATE_S)
                length = framing if kind == "late" else framing % (len(page) + len(body))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%s\r\n\r\n" % length)
                for part in (page, *(body[start : start + PIECE] for start in range(0, len(body), PIECE))):
                    writer.write(b"%x\r\n%s\r\n" % (len(part), part) if kind == "late" else part)
                    await writer.drain()
                    if kind == "slow":
                        await asyncio.sleep(len(part) / SLOW_BYTES_PER_S)
                if kind == "late":
                    writer.write(b"0\r\n\r\n")
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 20)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    asyncio.run(run())


@contextlib.contextmanager
def server(size: int, kind: str = "fast") -> Iterator[int]:
    """The port of a server in a process of its own."""
    port = multiprocessing.Value("i", 0)
    process = multiprocessing.Process(target=serve, args=(port, size, kind), daemon=True)
    process.start()
    while not port.value:
        time.sleep(0.01)
    try:
        yield port.value
    finally:
        process.terminate()
        process.join()


def crawl(port: int, pages: int, limit: int, admission: bool) -> dict[str, Any]:
    """One crawl; `limit` 0: without a cgroup."""
    group = Group(limit) if limit else None
    with tempfile.TemporaryDirectory() as folder:
        seeds = Path(folder) / "seeds.txt"
        seeds.write_text("".join(f"http://h{n % HOSTS}.test/{n}\n" for n in range(pages)))
        command = [
            *(
                sys.executable,
                "-m",
                "nephila",
                "crawl",
                "--seeds",
                str(seeds),
                "--out",
                f"{folder}/out",
                "--delay",
                "0",
            ),
            *("--max-depth", "0", "--ignore-robots", "--allow-private", "--host-map", f"*.test=127.0.0.1:{port}"),
            *("--workers", "0", "--concurrency", "100", "--quiet"),
        ]
        started = time.monotonic()
        done = subprocess.run(
            command,
            env={**os.environ, "NEPHILA_DOWNLOADER__ADMISSION__ENABLED": str(admission).lower()},
            preexec_fn=group.enter if group is not None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        seconds = time.monotonic() - started
        count = 0
        with contextlib.suppress(sqlite3.Error):
            stored = sqlite3.connect(f"{folder}/out/nephila.db").execute(
                "SELECT count(*) FROM pages WHERE outcome='stored'"
            )
            count = stored.fetchone()[0]
    peak, kills = group.close() if group is not None else (0, 0)
    return {
        "limit_bytes": limit,
        "admission": admission,
        "exit": done.returncode,
        "killed": kills,
        "stored": count,
        "seconds": round(seconds, 2),
        "pages_per_s": round(count / seconds, 2),
        "peak_bytes": peak,
        "error": done.stderr[-300:] if done.returncode not in (0, -9) else "",
    }


def pages_of(size: int) -> int:
    """Pages of a row."""
    return min(max(FLOOD_BYTES // size, PAGES[0]), PAGES[1])


def main() -> int:
    """Print one row per crawl and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", type=int, nargs="+", default=LIMITS_MB, metavar="MB")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="BYTES")
    parser.add_argument("--servers", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--without", action="store_true")
    arguments = parser.parse_args()
    try:
        Group(LIMITS_MB[0] << 20).close()
    except OSError as error:
        print(f"no cgroup with a limit of memory can be made here ({error}); run as root where {ROOT} is writable")
        return 1
    rows = []
    for size, kind in itertools.product(arguments.sizes, arguments.servers):
        with server(size, kind) as port:
            for limit in arguments.limits:
                for admission in (True, False) if arguments.without and size == max(arguments.sizes) else (True,):
                    row = {"page_bytes": size, "server": kind, "pages": pages_of(size)}
                    row |= crawl(port, pages_of(size), limit << 20, admission)
                    rows.append(row)
                    print(json.dumps(row), flush=True)
    with_admission = [row for row in rows if row["admission"]]
    killed = sum(row["killed"] > 0 for row in with_admission)
    whole = sum(row["stored"] == row["pages"] for row in with_admission)
    print(
        f"with admission: {killed} of {len(with_admission)} crawls lost a process for memory, {whole} stored all pages"
    )
    result = {"load": os.getloadavg(), "rows": rows}
    name = time.strftime("benchmarks/results/%Y%m%dT%H%M%SZ-admission.json", time.gmtime())
    Path(name).write_text(json.dumps(result, indent=1) + "\n")
    print(name)
    return 1 if killed else 0


if __name__ == "__main__":
    sys.exit(main())
