"""DNS: a cache hit and bytes per name at 10^6 names beside two rivals; a crawl of 5,000 hosts with and without it.

The cache beside a dict with expiry and aiohttp's table. Time is CPU time of hits in random order; memory is that of a
process of its own, before and after the names are put, without the texts of names and answers, which all need.
The crawl: `nephila crawl` over hosts h0.test … on 127.x.y.z, looked up at a DNS server that answers after 20 ms with a
TTL of 0, so that c-ares caches nothing. Off is `dns.ttl_s` 0: only concurrent look-ups of one name share a query.

    python -m benchmarks.bench_dns [--only cache|crawl] [--names 1000000] [--hosts 5000] [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from nephila.downloader.dns.hash_tree import HashTree

from benchmarks.measure import resident_bytes
from benchmarks.report import RESULTS, save, table, versions
from tests.dns_server import DnsServer

DELAY_S = 0.02
PAGES = 3
HITS = 300_000


# ---- cache


def hash_tree(names: list[str], answers: list[Any]) -> Callable[[str], Any]:
    """The cache of the downloader."""
    tree: HashTree[Any] = HashTree(len(names) + 1)
    for name, answer in zip(names, answers, strict=True):
        tree.put(name, answer, 0.0, 300.0, 86_400.0)
    return lambda name: tree.get(name, 1.0)


def plain_dict(names: list[str], answers: list[Any]) -> Callable[[str], Any]:
    """A dict with expiry: no weights, no refresh, no stale answers, no bound."""
    known = {name: (answer, 300.0) for name, answer in zip(names, answers, strict=True)}

    def get(name: str) -> Any:
        found = known.get(name)
        return found[0] if found is not None and found[1] > 1.0 else None

    return get


def aiohttp_table(names: list[str], answers: list[Any]) -> Callable[[str], Any]:
    """The cache of aiohttp's connector; it stores lists of dicts."""
    from aiohttp.connector import _DNSCacheTable

    cache = _DNSCacheTable(ttl=300, max_size=len(names) + 1)
    for name, answer in zip(names, answers, strict=True):
        cache.add(
            (name, 80), [{"hostname": name, "host": answer[0][0], "port": 80, "family": 2, "proto": 6, "flags": 0}]
        )

    def get(name: str) -> Any:
        key = (name, 80)
        return None if cache.expired(key) else cache.next_addrs(key)

    return get


CACHES = {"hash_tree": hash_tree, "dict": plain_dict, "aiohttp": aiohttp_table}


def one_cache(kind: str, count: int) -> dict[str, Any]:
    """In a process of its own."""
    names = [f"host{number}.example{number % 977}.org" for number in range(count)]
    answers = [((f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}",), 0) for n in range(count)]
    before, began = resident_bytes(), time.process_time()
    get = CACHES[kind](names, answers)
    put_s, memory = time.process_time() - began, resident_bytes() - before
    rng = random.Random(7)
    asked = [names[rng.randrange(count)] for _ in range(HITS)]
    hot = [names[rng.randrange(1000)] for _ in range(HITS)]
    rows: dict[str, Any] = {
        "cache": kind,
        "bytes_per_name": round(memory / count),
        "put_us": round(put_s / count * 1e6, 2),
    }
    for label, sample in (("hit_us_random", asked), ("hit_us_1000_hosts", hot)):
        began = time.process_time()
        for name in sample:
            get(name)
        rows[label] = round((time.process_time() - began) / HITS * 1e6, 2)
    return rows


# ---- crawl


class Web(asyncio.Protocol):
    """Every host has PAGES pages; the first links to the others."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request; heads arrive whole on loopback."""
        for head in data.split(b"\r\n\r\n")[:-1]:
            path = head.split(b" ", 2)[1]
            host = head.lower().partition(b"\r\nhost:")[2].split(b"\r\n", 1)[0].strip()
            status, body = b"200 OK", b"<title>%s%s</title><p>text of %s on %s</p>" % (host, path, path, host)
            if path == b"/robots.txt":
                status, body = b"404 Not Found", b""
            elif path == b"/":
                body += b"".join(b'<a href="/%d">x</a>' % number for number in range(1, PAGES))
            self.transport.write(
                b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)
            )


def write(path: str, lines: Iterable[str]) -> None:
    """A text file."""
    Path(path).write_text("".join(f"{line}\n" for line in lines))


async def one_crawl(label: str, hosts: int, settings: dict[str, str]) -> dict[str, Any]:
    """One crawl over all hosts."""
    loop = asyncio.get_running_loop()
    web = await loop.create_server(Web, "0.0.0.0", 0, backlog=4096)
    port = web.sockets[0].getsockname()[1]
    names: dict[str, object] = {
        f"h{n}.test": (f"127.{n >> 14 & 63}.{n >> 7 & 127}.{(n & 127) + 1}",) for n in range(hosts)
    }
    async with DnsServer(names, DELAY_S, ttl_s=0) as dns:
        with tempfile.TemporaryDirectory() as folder:
            seeds = f"{folder}/seeds.txt"
            write(seeds, (f"http://{name}:{port}/" for name in names))
            command = (
                *(sys.executable, "-m", "nephila", "crawl", "--seeds", seeds, "--out", f"{folder}/out"),
                *("--allow-private", "--delay", "0", "--workers", "0", "--quiet"),
            )
            environment = {**os.environ, "NEPHILA_DOWNLOADER__DNS__SERVERS": json.dumps([dns.address]), **settings}
            began = time.monotonic()
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            process = await asyncio.create_subprocess_exec(*command, env=environment)
            code = await asyncio.wait_for(process.wait(), 550)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took = time.monotonic() - began
            with contextlib.closing(sqlite3.connect(f"{folder}/out/nephila.db")) as db:
                stored = db.execute("SELECT count(*) FROM pages WHERE outcome = 'stored'").fetchone()[0]
        queries = sum(dns.asked.values())
    web.close()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "cache": label,
        "exit_code": code,
        "stored": stored,
        "of": hosts * PAGES,
        "seconds": round(took, 1),
        "pages_per_s": round(stored / took),
        "cpu_s": round(cpu, 1),
        "cpu_ms_per_page": round(1000 * cpu / max(stored, 1), 2),
        "queries": queries,
    }


def main() -> None:
    """Measure, print, store the raw result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=("cache", "crawl"))
    parser.add_argument("--names", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=5000)
    parser.add_argument("--child", choices=tuple(CACHES), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(one_cache(arguments.child, arguments.names)))
        return
    result: dict[str, Any] = {"versions": versions("aiohttp", "aiodns", "pycares")}
    if arguments.only != "crawl":
        command = [sys.executable, "-m", "benchmarks.bench_dns", "--names", str(arguments.names), "--child"]
        result["cache"] = [
            json.loads(subprocess.run([*command, kind], check=True, capture_output=True).stdout) for kind in CACHES
        ]
        print(f"{arguments.names:,} names")
        print(table(list(result["cache"][0]), [list(row.values()) for row in result["cache"]]))
    if arguments.only != "cache":
        off = {"NEPHILA_DOWNLOADER__DNS__TTL_S": "0"}
        result["crawl"] = [
            asyncio.run(one_crawl(label, arguments.hosts, settings)) for label, settings in (("on", {}), ("off", off))
        ]
        print(f"{arguments.hosts:,} hosts, {PAGES} pages each, DNS server of {1000 * DELAY_S:g} ms")
        print(table(list(result["crawl"][0]), [list(row.values()) for row in result["crawl"]]))
    print(save("dns", result, arguments.out))


if __name__ == "__main__":
    main()
