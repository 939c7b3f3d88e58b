"""Proxies: the cost of a pick at 10^4 proxies and the spread per domain; a crawl through 50 of which 20 fail.

The pick beside two rivals: a random proxy of a list, and one round-robin over all domains. All three respect slots.
The crawl: `nephila crawl` over 20 hosts through 50 proxies on loopback, each with a source address of its own, which
the site counts. 5 lie from the start; half-way 10 die and the site bans 5. Judged from the database and from the site.

    python -m benchmarks.bench_proxies [--only pick|crawl] [--pages 60] [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from nephila.downloader.proxies.endpoint import parse_endpoint
from nephila.downloader.proxies.pool import ProxyNeed, ProxyPool
from nephila.downloader.proxies.proxy import Proxy
from nephila.downloader.proxies.selector import parse_selector

from benchmarks.report import RESULTS, save, table
from tests.proxy_server import Mood, ProxyServer

HOSTS, PROXIES = 20, 50
DIE, LIE, BAN = range(10), range(10, 15), range(15, 20)
BAN_STATUS = b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\nbanned"


# ---- pick


def pool_of(count: int) -> ProxyPool:
    """Proxies that all work."""
    pool = ProxyPool(slots=4)
    pool.replace("list", [parse_endpoint(f"http://10.{n >> 16}.{n >> 8 & 255}.{n & 255}:8080") for n in range(count)])
    rng = random.Random(7)
    for proxy in pool.proxies():
        proxy.addresses = (proxy.endpoint.host,)
        pool.check_passed(proxy, rng.uniform(0.05, 2.0), 0.0)
    return pool


def measure_pick(count: int, domains: int, picks: int) -> list[dict[str, Any]]:
    """Microseconds of a pick with 100 requests in flight, and the largest share of a domain's requests at one proxy."""
    pool = pool_of(count)
    selector, proxies = parse_selector("any"), list(pool.proxies())
    names = [f"host{number}.example" for number in range(domains)]
    turn = iter(range(1 << 62))

    def ring(host: str, now: float) -> Proxy | None:
        return pool.pick(selector, ProxyNeed(host, True), (), now)

    def randomly(host: str, now: float) -> Proxy | None:
        while True:
            proxy = proxies[int(random.random() * count)]
            if proxy.used < 4:
                return proxy

    def round_robin(host: str, now: float) -> Proxy | None:
        while True:
            proxy = proxies[next(turn) % count]
            if proxy.used < 4:
                return proxy

    return [one_rule(pool, rule, names, picks) for rule in (ring, randomly, round_robin)]


def one_rule(
    pool: ProxyPool, rule: Callable[[str, float], Proxy | None], names: list[str], picks: int
) -> dict[str, Any]:
    """One rule over all domains in turn; results change the scores, so that rings are sorted now and then."""
    in_flight: list[Proxy] = []
    first_s: list[float] = []
    spent, used = 0, {name: Counter[str]() for name in names}
    for number in range(picks):
        host, now = names[number % len(names)], number / 1000
        began = time.thread_time_ns()
        proxy = rule(host, now)
        spent += time.thread_time_ns() - began
        assert proxy is not None
        pool.start_use(proxy)
        used[host][proxy.name] += 1
        if number < 20 * len(names):
            first_s.append(proxy.response_s)
        in_flight.append(proxy)
        if len(in_flight) > 100:
            ended = in_flight.pop(0)
            pool.end_use(ended)
            pool.succeeded(ended, ended.response_s)
    for proxy in in_flight:
        pool.end_use(proxy)
    per_domain = picks / len(names)
    return {
        "rule": rule.__name__,
        "pick_us": round(spent / picks / 1000, 2),
        "requests_per_domain": per_domain,
        "proxies_per_domain": round(mean(len(counts) for counts in used.values()), 1),
        "most_by_one_proxy": max(max(counts.values()) for counts in used.values()),
        "response_s_of_first_20": round(mean(first_s), 3),
    }


# ---- crawl


class Site:
    """20 hosts of pages that link to each other, and an echo page; counts requests by host and source address."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        self.served: Counter[tuple[str, str]] = Counter()
        self.banned: set[str] = set()
        self.refused: Counter[str] = Counter()
        self.on_page: Callable[[], None] = lambda: None
        self.port = 0

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")[0]
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                path = head.split(" ", 2)[1]
                host = head.lower().split("\r\nhost:", 1)[1].split("\r\n", 1)[0].strip().partition(":")[0]
                writer.write(self._answer(host, path, head, peer))
                await writer.drain()
        writer.close()

    def _answer(self, host: str, path: str, head: str, peer: str) -> bytes:
        status = "200 OK"
        if path.startswith("/echo"):
            body = f"{peer}\n{head}"
        elif path == "/robots.txt":
            status, body = "404 Not Found", ""
        elif peer in self.banned:
            self.refused[peer] += 1
            return BAN_STATUS
        else:
            self.served[host, peer] += 1
            self.on_page()
            number = int(path.strip("/") or 0)
            links = "".join(f'<a href="/{n}">{n}</a> ' for n in (2 * number + 1, 2 * number + 2) if n < self._pages)
            body = f"<title>{host} {number}</title><p>Page {number} of {host}: {'text ' * 50}</p>{links}"
        return f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


async def crawl(pages: int, folder: Path) -> dict[str, Any]:
    """One crawl of HOSTS x `pages` pages."""
    site = Site(pages)
    await site.start()
    proxies = [ProxyServer(source=f"127.0.1.{number + 1}") for number in range(PROXIES)]
    for proxy in proxies:
        await proxy.start()
    for number in LIE:
        proxies[number].become(Mood.LYING)
    half = HOSTS * pages // 2

    def fail_half_way() -> None:
        if sum(site.served.values()) == half:
            for number in DIE:
                proxies[number].become(Mood.DEAD)
            site.banned = {f"127.0.1.{number + 1}" for number in BAN}

    site.on_page = fail_half_way
    listed = folder / "proxies.txt"
    listed.write_text("".join(f"{proxy.url()}\n" for proxy in proxies))
    seeds = folder / "seeds.txt"
    seeds.write_text("".join(f"http://host{number}.test/\n" for number in range(HOSTS)))
    environment = {
        **os.environ,
        "NEPHILA_DOWNLOADER__PROXIES": json.dumps([f"file {listed} class=datacenter"]),
        "NEPHILA_DOWNLOADER__PROXY_CHECK_URL": "http://echo.test/echo",
        "NEPHILA_DOWNLOADER__PROXY_POOL": str(folder / "pool.json"),
    }
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nephila", "crawl", "--seeds", str(seeds), "--out", str(folder / "out")),
        *("--allow-private", "--host-map", f"*=127.0.0.1:{site.port}", "--delay", "0", "--workers", "0", "--quiet"),
        env=environment,
    )
    code = await asyncio.wait_for(process.wait(), 600)
    took = time.monotonic() - began
    for proxy in proxies:
        await proxy.close()
    return {"exit_code": code, "seconds": round(took, 1), **judge(site, pages, folder)}


def judge(site: Site, pages: int, folder: Path) -> dict[str, Any]:
    """The rows of the database, the requests at the site, the state of the pool."""
    with contextlib.closing(sqlite3.connect(folder / "out" / "nephila.db")) as db:
        outcomes = dict(
            db.execute(
                "SELECT outcome || CASE reason WHEN '' THEN '' ELSE ':' || reason END, count(*) FROM pages GROUP BY 1"
            )
        )
        wrong = db.execute("SELECT count(*) FROM pages WHERE title LIKE 'Best offers%'").fetchone()[0]
    stored = folder / "pool.json"
    pool = json.loads(stored.read_bytes())["proxies"] if stored.exists() else []
    states = Counter(row["state"] for row in pool)
    by_host: dict[str, Counter[str]] = {}
    for (host, peer), count in site.served.items():
        by_host.setdefault(host, Counter())[peer] += count
    spread = {
        host: {"proxies": len(counts), "requests": sum(counts.values()), "most_by_one": max(counts.values())}
        for host, counts in sorted(by_host.items())
    }
    direct = sum(count for (_, peer), count in site.served.items() if not peer.startswith("127.0.1."))
    return {
        "pages": HOSTS * pages,
        "outcomes": outcomes,
        "wrong_pages": wrong,
        "direct_requests": direct,
        "bans_seen": sum(site.refused.values()),
        "requests": sum(site.served.values()),
        "states": dict(states),
        "spread": spread,
    }


def main() -> None:
    """Measure, print, store the raw result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=("pick", "crawl"))
    parser.add_argument("--pages", type=int, default=60, help="pages per host")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    result: dict[str, Any] = {}
    if arguments.only != "crawl":
        result["pick"] = measure_pick(10_000, 100, 200_000)
        print("10,000 proxies, 100 domains, 200,000 picks, 100 in flight")
        print(table(list(result["pick"][0]), [list(row.values()) for row in result["pick"]]))
    if arguments.only != "pick":
        with tempfile.TemporaryDirectory() as folder:
            result["crawl"] = asyncio.run(crawl(arguments.pages, Path(folder)))
        shown = {key: value for key, value in result["crawl"].items() if key != "spread"}
        print(json.dumps(shown, indent=1))
        rows = [[host, *values.values()] for host, values in result["crawl"]["spread"].items()]
        print(table(["host", "proxies", "requests", "most by one"], rows))
    print(save("proxies", result, arguments.out))


if __name__ == "__main__":
    main()
