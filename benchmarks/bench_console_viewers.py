"""What viewers of the console cost the program that crawls: CPU of its process with N open screens, and with none.

    python -m benchmarks.bench_console_viewers [--viewers 200] [--seconds 20] [--screen /jobs/news]

The console serves in this process over a socket, on a program with a paused job. A second process holds the
connections and reads. Printed: CPU seconds per second of this process, events and bytes per viewer; then the same
without viewers.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from nephila.control.http.server import tcp_server

from tests.console.console_rig import console

CLIENT = """
import asyncio, sys
port, path, cookie, viewers = sys.argv[1:]
events = size = 0

async def view():
    global events, size
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    writer.write(f"GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nCookie: {cookie}\\r\\n\\r\\n".encode())
    while data := await reader.read(1 << 20):
        events += data.count(b"event: part")
        size += len(data)

async def main():
    tasks = [asyncio.ensure_future(view()) for _ in range(int(viewers))]
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    print(events, size, sum(task.done() for task in tasks), flush=True)
    for task in tasks:
        task.cancel()

asyncio.run(main())
"""


async def measure(viewers: int, seconds: float, screen: str) -> None:
    """Print two lines."""
    with tempfile.TemporaryDirectory() as name:
        async with console(Path(name)) as rig:
            browser = await rig.opened()
            rig.turning.cancel()
            server = tcp_server(rig.application, "127.0.0.1", 0, "-")
            await server.open()
            cookie = "; ".join(f"nephila_{server.port}={value}" for value in browser.cookies.values())
            path = f"/console/live?at={quote('/console' + screen, safe='')}"
            given = (str(server.port), path, cookie, str(viewers))
            pipe = asyncio.subprocess.PIPE
            client = await asyncio.create_subprocess_exec(sys.executable, "-c", CLIENT, *given, stdin=pipe, stdout=pipe)
            await asyncio.sleep(3)
            began, cpu = time.monotonic(), time.process_time()
            await asyncio.sleep(seconds)
            passed, used = time.monotonic() - began, time.process_time() - cpu
            out, _ = await client.communicate(b"\n")
            events, size, lost = map(int, out.split())
            print(f"{viewers} viewers of {screen}: {100 * used / passed:.2f} % CPU, {events} events of"
                  f" {size / max(events, 1) / 1024:.1f} KB, {lost} connections lost")  # fmt: skip
            await asyncio.sleep(0.5)
            began, cpu = time.monotonic(), time.process_time()
            await asyncio.sleep(seconds)
            print(f"none: {100 * (time.process_time() - cpu) / (time.monotonic() - began):.2f} % CPU")
            await server.close()


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--screen", default="/jobs/news")
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    asyncio.run(measure(given.viewers, given.seconds, given.screen))


if __name__ == "__main__":
    main()
