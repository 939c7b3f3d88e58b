"""Many hosts on loopback with their own DNS server, in a thread: slow pages, fields of a rule, refusals, robots."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.dns_server import DnsServer

ROBOTS = "User-agent: *\nDisallow: /secret\n"


class ManyHosts:
    """Every name ends at one server. `/0` links to all pages of its host, to a forbidden one and to a missing one."""

    def __init__(self, hosts: int, pages: int, answer_s: float) -> None:
        self.names = [f"h{number}.test" for number in range(hosts)]
        self.pages = pages
        self.answer_s = answer_s
        self.port = 0
        self.dns = ""
        self.requests = 0

    def seeds(self, first: int, last: int) -> list[str]:
        """First pages of some hosts."""
        return [f"http://{name}:{self.port}/0" for name in self.names[first:last]]

    def answer(self, path: str, host: str) -> bytes:
        """The response to a request."""
        self.requests += 1
        if path == "/robots.txt":
            return _response(200, "text/plain", ROBOTS)
        if path == "/busy":
            return _response(429, "text/plain", "slow down")
        number = path.removeprefix("/")
        if not number.isdigit() or int(number) >= self.pages:
            return _response(404, "text/plain", "no such page")
        links = [f"/{other}" for other in range(1, self.pages)] if number == "0" else []
        more = ["/secret", "/missing", *(["/busy"] if host.startswith("h0.") else [])] if links else []
        anchors = "".join(f'<a href="{link}">page</a>' for link in (*links, *more))
        text = f"<title>Page {number}</title><h1>Page {number} of {host}</h1><p>Some words.</p>{anchors}"
        return _response(200, "text/html", text)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").split("\r\n")
                host = next((line.split(":", 1)[1].strip() for line in lines if line.lower().startswith("host:")), "")
                await asyncio.sleep(self.answer_s)
                writer.write(self.answer(lines[0].split()[1], host))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def _response(status: int, media: str, body: str) -> bytes:
    head = f"HTTP/1.1 {status} x\r\nContent-Type: {media}\r\nContent-Length: {len(body.encode())}\r\n\r\n"
    return (head + body).encode()


@contextmanager
def serving(web: ManyHosts) -> Iterator[ManyHosts]:
    """Serve the web in a thread."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    over = asyncio.Event()

    async def main() -> None:
        server = await asyncio.start_server(web.serve, "127.0.0.1", 0)
        web.port = server.sockets[0].getsockname()[1]
        async with DnsServer(dict.fromkeys(web.names, ("127.0.0.1",))) as dns:
            web.dns = dns.address
            ready.set()
            await over.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    ready.wait(60)
    try:
        yield web
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()
