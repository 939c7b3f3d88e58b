"""The longest callback of the event loop while a crawl meets servers and pages that mean harm; aim: 50 ms of CPU.

usage: python -m benchmarks.bench_callbacks [--only WORD] [--workers N]

A server of its own has one hostile answer per host and sends each when the crawl is idle; `nephila crawl` fetches them
one after the other on asyncio's loop (uvloop does not let its callbacks be timed) in a child process that notes CPU
time of each callback of its main thread. A callback counts for the answer that was sent last before it ended. Prints a
line per answer: the longest callback in ms of CPU, the sum of those over 5 ms, and which callback it was.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import brotli
import zstandard

from benchmarks.measure import ticks_of

AIM_MS = 50.0
NOTED_S = 0.001
MOMENT_S = 0.1
TIME_S = 300
HTML = b"Content-Type: text/html\r\n"
WORDS = b"<p>The quick brown fox jumps over the lazy dog.</p>\n"
HOSTILE = (
    b"<div>", b"<b>", b"<a href=x>", b"<p><b><i>", b"<table><tr><td>", b"<table>x", b"<p a=1 b=2 c=3 d=4>", b"&amp;",
    b"&#x41;", b"<", b"<a href='", b"<!--", b"<!-- -->", b"<svg>", b"<math><mi>", b"<select><option>", b"<template>",
    b"<form>", b"</p>", b"</div></b>", b"<title>", b"<script>", b"<script></script>", b"\xe4\xfc ", b"\0",
    b"<meta name=description content=x>", b"<base href=/x>", b"<img src=x srcset='a 1x, b 2x'>", b"<frameset>",
    b"<ul><li>", b"<font size=1>", b"<a><b></a></b>", b"<nobr>", b"<applet>", b"<button>", b"<h1>",
)  # fmt: skip
Talk = Callable[[asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes, *headers: bytes, kind: bytes = HTML) -> bytes:
    """A response of known length."""
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"HTTP/1.1 200 OK\r\n" + kind + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


def coded(coding: bytes, body: bytes) -> bytes:
    """A response with a content coding."""
    return answer(body, b"Content-Encoding: " + coding)


def chunks(one: bytes, size: int) -> bytes:
    """A chunked response of about `size` bytes, the same chunk again and again."""
    head = b"HTTP/1.1 200 OK\r\n" + HTML + b"Transfer-Encoding: chunked\r\n\r\n"
    return head + one * (size // len(one)) + b"0\r\n\r\n"


def endless(head: bytes, again: bytes) -> Talk:
    """A server that repeats one answer until the client closes."""

    async def talk(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(again * (1 + 65_536 // len(again)))
            await writer.drain()

    return talk


def bits(pattern: str, size: int) -> bytes:
    """A stream of deflate bits, the first bit lowest, `size` bytes long."""
    text = pattern * (size * 8 // len(pattern) + 1)
    return int(text[: size * 8][::-1], 2).to_bytes(size, "little")


def dynamic_blocks(size: int) -> bytes:
    """Deflate blocks with a code table each and next to nothing in them."""
    data = bytes(range(256))
    out = b""
    pack = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    while len(out) < 4096:
        out += pack.compress(data[:3] * 30 + data[len(out) % 200 :][:9]) + pack.flush(zlib.Z_FULL_FLUSH)
    return out * (size // len(out))


def zstd_blocks(block: bytes, count: int) -> bytes:
    """A zstd frame of raw or RLE blocks without end mark."""
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * count


def cases() -> dict[str, bytes | Talk]:
    """Hostile answers by name; those named robots are served as /robots.txt of a host of their own."""
    member = gzip.compress(b"", mtime=0)
    found: dict[str, bytes | Talk] = {
        "an ordinary page": answer(WORDS * 1_500),
        "chunks of one byte": chunks(b"1\r\nx\r\n", 1_500_000),
        "chunks of one byte, LF behind": chunks(b"1\r\nx\n", 1_500_000),
        "chunks with extensions": chunks(b"1;" + b"e" * 1_000 + b"\r\nx\r\n", 8_000_000),
        "chunks without end": endless(chunks(b"1\r\nx\r\n", 6)[:-5], b"1\r\nx\r\n"),
        "100 Continue without end": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        "a head of one header": b"HTTP/1.1 200 OK\r\n" + b"a:\n" * 21_000 + b"\r\n",
        "a head of one header, long": b"HTTP/1.1 200 OK\r\n" + b"a:aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n" * 2_000 + b"\r\n",
        "a head of folded lines": b"HTTP/1.1 200 OK\r\na: b\n" + b" c\n" * 21_000 + b"\r\n",
        "a head of X-Robots-Tag": b"HTTP/1.1 200 OK\r\n" + b"X-Robots-Tag: x\n" * 4_000 + HTML + b"\r\n<p>text",
        "Retry-After of 60 KB": b"HTTP/1.1 404 No\r\nRetry-After: " + b"1 " * 30_000 + b"\r\n\r\n",
        "trailers": chunks(b"5\r\nhello\r\n", 100)[:-2] + b"a: b\r\n" * 2_700 + b"\r\n",
        "empty gzip members": coded(b"gzip", member * 50_000),
        "empty gzip members in gzip": coded(b"gzip, gzip", gzip.compress(member * 1_000_000)),
        "a gzip bomb": coded(b"gzip", gzip.compress(bytes(40 << 20))),
        "gzip to 30 MB": coded(b"gzip", gzip.compress((WORDS + os.urandom(12).hex().encode()) * 430_000, 1)),
        "empty stored blocks": coded(b"deflate", b"\x78\x9c" + b"\x00\x00\x00\xff\xff" * 400_000),
        "empty fixed blocks": coded(b"deflate", b"\x78\x9c" + bits("0100000000", 2_000_000)),
        "blocks with a table each": coded(b"deflate", b"\x78\x9c" + dynamic_blocks(2_000_000)),
        "a brotli bomb": coded(b"br", brotli.compress(bytes(30 << 20))),
        "brotli to 30 MB": coded(b"br", brotli.compress((WORDS + os.urandom(12).hex().encode()) * 430_000, quality=2)),
        "zstd of empty blocks": coded(b"zstd", zstd_blocks(b"\x00\x00\x00", 1_000_000)),
        "zstd of RLE blocks": coded(b"zstd", zstd_blocks(b"\x02\x00\x10a", 100_000)),
        "zstd of empty frames": coded(b"zstd", zstandard.compress(b"") * 200_000),
        "zstd to 30 MB": coded(b"zstd", zstandard.compress((WORDS + os.urandom(12).hex().encode()) * 430_000)),
        "robots.txt of 26,000 rules": answer(
            b"User-agent: *\n" + b"".join(b"Disallow: /%x\n" % number for number in range(26_000)), kind=b""
        ),
        "robots.txt of stars": answer(b"User-agent: *\n" + b"Disallow: /*a*a*a*a*a*a*a*a*b$\n" * 15_000, kind=b""),
        "robots.txt of one line": answer(b"User-agent: *\nDisallow: /" + b"*a" * 240_000, kind=b""),
        "robots.txt of user agents": answer(b"User-agent: bot%d\n" * 1 + b"User-agent: x\n" * 34_000, kind=b""),
        "12,000 links": answer(b"".join(b"<a href=/out/%d>x</a> " % number for number in range(12_000))),
        "1 MB in one link": answer(b"<a href='/" + b"x" * (1 << 20) + b"'>x</a>"),
        "1 MB of one title": answer(b"<title>" + b"word " * 210_000 + b"</title>"),
        "JSON-LD 100,000 deep": answer(
            b'<script type="application/ld+json">' + b'{"a":[' * 100_000 + b"]}" * 100_000 + b"</script>"
        ),
        "1 MB of undeclared bytes": answer(bytes(range(0x80, 0x100)) * 8_192),
        "1 MB of undeclared Cyrillic": answer("Съешь ещё этих мягких французских булок. ".encode("cp1251") * 25_000),
        "1 MB of broken UTF-8": answer(b"\xe4\xb8" * 500_000, kind=b"Content-Type: text/html; charset=utf-8\r\n"),
        "1 MB of text/plain": answer(b"word " * 210_000, kind=b"Content-Type: text/plain\r\n"),
        "a sitemap of 40,000 URLs": answer(
            b"<urlset>" + b"".join(b"<url><loc>/s/%d</loc></url>" % n for n in range(40_000)) + b"</urlset>",
            kind=b"Content-Type: application/xml\r\n",
        ),
        "a feed of 5 MB": answer(
            b"<rss><channel>" + b"<item><title>t</title><link>/f</link></item>" * 110_000 + b"</channel></rss>",
            kind=b"Content-Type: application/rss+xml\r\n",
        ),
        "options": answer(b"<select>" + b"<option>x" * 116_000),
        "tags in tags": answer(b"<b><i><u><a>" * 80_000),
    }
    for pattern in HOSTILE:
        found[f"1 MB of {pattern.decode('latin-1')[:40]}"] = answer(pattern * ((1 << 20) // len(pattern)))
    return found


class HostileServer:
    """Serves the cases and notes when each was requested."""

    def __init__(self, found: dict[str, bytes | Talk]) -> None:
        self.found = found
        self.asked: list[tuple[float, str]] = []
        self._names = list(found)
        self.pid = 0

    def links(self) -> bytes:
        """The page from which all cases are linked."""
        urls = [f"http://c{number}.test/" for number in range(len(self._names))]
        return answer("".join(f"<a href='{url}'>x</a> " for url in urls).encode())

    async def respond(self, head: str) -> bytes | Talk:
        """What a request gets."""
        path = head.split(" ", 2)[1]
        host = head.lower().partition("\nhost:")[2].split()[0].partition(":")[0]
        if host == "start.test" or not host[1:].partition(".")[0].isdigit():
            return self.links() if path == "/" else b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
        name = self._names[int(host[1:].partition(".")[0])]
        if name.startswith("robots") is (path == "/robots.txt"):
            await self._idle()
            self.asked.append((time.monotonic(), name))
            return self.found[name]
        return answer(b"<p>nothing to see") if path == "/" else b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"

    async def _idle(self) -> None:
        """Wait until the crawl has nothing to do: what follows belongs to the next answer."""
        before = -1
        for _ in range(100):
            ticks = ticks_of(self.pid)
            if ticks - before <= 1:
                break
            before = ticks
            await asyncio.sleep(MOMENT_S)

    async def on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, closed after each hostile answer."""
        try:
            while True:
                said = await self.respond((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
                if callable(said):
                    await said(writer)
                    return
                writer.write(said)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def name_of(callback: Any) -> str:
    """What a person can look for; a step of a task has the name of its coroutine."""
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return f"task {getattr(task.get_coro(), '__qualname__', '')}"
    return getattr(callback, "__qualname__", type(callback).__name__)


def child(out: str, arguments: list[str]) -> None:
    """Run the command line on asyncio's loop and write [end, CPU seconds, name] of each callback over NOTED_S."""
    sys.modules["uvloop"] = None  # type: ignore[assignment]
    noted: list[tuple[float, float, str]] = []
    run = asyncio.Handle._run
    asyncio.Task = asyncio.tasks.Task = asyncio.tasks._PyTask  # type: ignore[attr-defined, misc] # whose steps have names

    def timed(handle: Any) -> None:
        started = time.thread_time()
        run(handle)
        spent = time.thread_time() - started
        if spent >= NOTED_S:
            noted.append((time.monotonic(), spent, name_of(handle._callback)))

    asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
    from nephila.__main__ import main as command_line

    sys.argv = ["nephila", *arguments]
    try:
        command_line()
    finally:
        Path(out).write_text(json.dumps(noted))


def noted_in(out: str) -> list[Any]:
    """See `child`."""
    found: list[Any] = json.loads(Path(out).read_text())
    return found


async def measure(found: dict[str, bytes | Talk], workers: int) -> tuple[list[Any], list[Any]]:
    """Requests with their times, and the notes of the child, of one crawl of all cases."""
    hostile = HostileServer(found)
    server = await asyncio.start_server(hostile.on_connection, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/noted.json"
        options = [
            *("crawl", "http://start.test/", "--out", f"{folder}/out", "--scope", "any", "--delay", "0"),
            *("--max-depth", "1", "--host-map", f"*.test=127.0.0.1:{port}", "--allow-private", "--quiet"),
            *("--workers", str(workers), "--concurrency", "1", "--max-wait", "5", "--max-time", str(TIME_S)),
            *("--exclude", r"\.test/(s|out)/"),
        ]
        command = [sys.executable, "-m", "benchmarks.bench_callbacks", "--child", out, "--", *options]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
        hostile.pid = process.pid
        await process.wait()
        server.close()
        return hostile.asked, noted_in(out)


def main() -> None:
    """See the module."""
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[4:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose names contain this word")
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    found = {name: said for name, said in cases().items() if options.only in name}
    asked, noted = asyncio.run(measure(found, options.workers))
    longest: dict[str, tuple[float, str]] = dict.fromkeys(found, (0.0, ""))
    sums = dict.fromkeys(found, 0.0)
    for ended, spent, callback in noted:
        before = [name for at, name in asked if at <= ended]
        if before:
            longest[before[-1]] = max(longest[before[-1]], (spent * 1e3, callback))
            sums[before[-1]] += spent * 1e3 if spent > 0.005 else 0.0
    for name, (spent, callback) in sorted(longest.items(), key=lambda item: -item[1][0]):
        unasked = "" if any(name == one for _, one in asked) else "  NOT ASKED FOR"
        print(f"{spent:8.1f} ms  {sums[name]:9.1f} ms over 5  {name:34} {callback}{unasked}")
    worst = max(spent for spent, _ in longest.values())
    print(f"longest callback: {worst:.1f} ms of CPU ({'within' if worst <= AIM_MS else 'over'} the aim of {AIM_MS:g})")


if __name__ == "__main__":
    main()
