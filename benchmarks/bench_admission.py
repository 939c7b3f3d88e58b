"""A flood of large pages in a container of 512 MB: with admission, without it, and without a limit of memory.

    python -m benchmarks.bench_admission [--pages N] [--bytes N] [--limit BYTES]

The server runs outside of the cgroup. The crawl is the program as installed, on one process, with 100 fetches at once.
It needs a writable cgroup hierarchy of the memory controller, of version 1 or 2; without one it ends with a line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
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
        self._peak = self.path / ("memory.peak" if unified else "memory.max_usage_in_bytes")

    def enter(self) -> None:
        """Move the calling process into the group."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def close(self) -> int:
        """Remove the group; the highest use of memory, page cache included."""
        try:
            peak = int(self._peak.read_text())
        except OSError:
            peak = 0
        for _ in range(100):
            try:
                self.path.rmdir()
                break
            except OSError:
                time.sleep(0.05)
        return peak


def serve(port: Any, size: int) -> None:
    """Answer every request with a page of `size` bytes."""
    body = PARAGRAPH * (size // len(PARAGRAPH))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                page = b"<title>%s</title>" % head.split()[1]
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
                    % (len(page) + len(body))
                )
                writer.write(page)
                for start in range(0, len(body), 1 << 16):
                    writer.write(body[start : start + (1 << 16)])
                    await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 20)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    asyncio.run(run())


@contextlib.contextmanager
def server(size: int) -> Iterator[int]:
    """The port of a server in a process of its own."""
    port = multiprocessing.Value("i", 0)
    process = multiprocessing.Process(target=serve, args=(port, size), daemon=True)
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
            env={**os.environ, "NEPHILA_DOWNLOADER__ADMISSION": str(admission).lower()},
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
    return {
        "limit_bytes": limit,
        "admission": admission,
        "exit": done.returncode,
        "killed": done.returncode == -9,
        "stored": count,
        "seconds": round(seconds, 2),
        "pages_per_s": round(count / seconds, 2),
        "peak_bytes": group.close() if group is not None else 0,
        "error": done.stderr[-300:] if done.returncode not in (0, -9) else "",
    }


def main() -> int:
    """Print one row per crawl and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=150)
    parser.add_argument("--bytes", type=int, default=10_000_000)
    parser.add_argument("--limit", type=int, default=512 << 20)
    arguments = parser.parse_args()
    try:
        Group(arguments.limit).close()
    except OSError as error:
        print(f"no cgroup with a limit of memory can be made here ({error}); run as root where {ROOT} is writable")
        return 1
    rows = []
    with server(arguments.bytes) as port:
        for limit, admission in ((0, True), (arguments.limit, True), (arguments.limit, False)):
            row = crawl(port, arguments.pages, limit, admission)
            rows.append(row)
            print(json.dumps(row), flush=True)
    free, limited = rows[0]["pages_per_s"], rows[1]["pages_per_s"]
    print(f"throughput with the limit: {100 * limited / free:.0f} % of that without; killed: {rows[1]['killed']}")
    result = {"pages": arguments.pages, "bytes": arguments.bytes, "load": os.getloadavg(), "rows": rows}
    name = time.strftime("benchmarks/results/%Y%m%dT%H%M%SZ-admission.json", time.gmtime())
    Path(name).write_text(json.dumps(result, indent=1) + "\n")
    print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
