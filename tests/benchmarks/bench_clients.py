"""Two tiny crawlers for the judge's tests: one keeps every rule, the other none. Both record what they did in a table
`pages`.
"""

import asyncio
import re
import sqlite3
from collections import defaultdict
from pathlib import Path
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

_HREF = re.compile(r'<a class="[^"]*" href="([^"#]+)"|<a href="([^"#]+)"')
_TITLE = re.compile(r"<title>([^<]*)</title>")


class TinyCrawler:
    """Breadth first over keep-alive connections. *polite*: robots.txt first and obeyed, one connection, a delay,
    Retry-After kept.
    """

    def __init__(self, port: int, delay_s: float, polite: bool) -> None:
        self.port, self.delay_s, self.polite = port, delay_s, polite
        self.rows: dict[str, tuple[str, str, str]] = {}
        self._seen: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._free_at: dict[str, float] = defaultdict(float)
        self._connections: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self._rules: dict[str, RobotFileParser] = {}

    async def crawl(self, seed: str) -> None:
        """Crawl everything that can be reached from *seed* on our own hosts."""
        await self._visit(seed)
        for _, writer in self._connections.values():
            writer.close()

    async def _visit(self, url: str) -> None:
        host = urlsplit(url).hostname or ""
        if url in self._seen or not host.endswith(".web.test"):
            return
        self._seen.add(url)
        links = await self._page(host, url)
        await asyncio.gather(*(self._visit(link) for link in links))

    async def _page(self, host: str, url: str) -> list[str]:
        if not self.polite:
            return self._record(url, *await self._get(host, url))
        async with self._locks[host]:
            if host not in self._rules:
                status, _, body = await self._paced(host, f"http://{host}:{self.port}/robots.txt")
                self._rules[host] = RobotFileParser()
                self._rules[host].parse(body.splitlines() if status == 200 else [])
            if not self._rules[host].can_fetch("tiny", url):
                self.rows[url] = ("denied", "robots", "")
                return []
            status, headers, body = await self._paced(host, url)
            if status == 429:
                await asyncio.sleep(float(headers["retry-after"]))
                status, headers, body = await self._paced(host, url)
            return self._record(url, status, headers, body)

    async def _paced(self, host: str, url: str) -> tuple[int, dict[str, str], str]:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._free_at[host] - loop.time()))
        answer = await self._get(host, url)
        self._free_at[host] = loop.time() + self.delay_s
        return answer

    def _record(self, url: str, status: int, headers: dict[str, str], body: str) -> list[str]:
        if 300 <= status < 400:
            self.rows[url] = ("dropped", "redirect", "")
            return [urljoin(url, headers["location"])]
        if status != 200:
            self.rows[url] = ("failed", f"http_{status}", "")
            return []
        title = _TITLE.search(body)
        self.rows[url] = ("stored", "", title[1] if title else "")
        return [urljoin(url, a or b) for a, b in _HREF.findall(body)]

    async def _get(self, host: str, url: str) -> tuple[int, dict[str, str], str]:
        kept = self._connections.pop(host, None)
        reader, writer = kept or await asyncio.open_connection("127.0.0.1", self.port)
        path = url.split(f":{self.port}", 1)[1]
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{self.port}\r\nUser-Agent: tiny\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers["content-length"]))
        if host in self._connections:
            writer.close()
        else:
            self._connections[host] = (reader, writer)
        return int(head[0].split()[1]), headers, body.decode()

    def write(self, path: Path) -> None:
        """The table as the contract names it."""
        rows = [("job", url, f"{i:032x}", *row) for i, (url, row) in enumerate(self.rows.items())]
        write_rows(path, rows)


def write_rows(path: Path, rows: list[tuple[str, str, str, str, str, str]]) -> None:
    """A database with (job, url, url_key, outcome, reason, title)."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE pages (job, url, url_key, outcome, reason, title)")
    connection.executemany("INSERT INTO pages VALUES (?,?,?,?,?,?)", rows)
    connection.commit()
    connection.close()
