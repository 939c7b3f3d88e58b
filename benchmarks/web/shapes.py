"""Plain webs of several shapes, made page by page when they are requested: what speed is measured on beside `plain.py`.

usage: python -m benchmarks.web.shapes NAME [--certificate PEM]        prints the port, then serves until it is ended

A page is a function of its number alone, so two million pages need no disk. No two pages have the same text.
"""

import argparse
import asyncio
import os
import random
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from benchmarks.web.prose import Prose
from benchmarks.web.serve import runner

TEMPLATES: Final = 48
HREF: Final = "\0"


@dataclass(frozen=True)
class Shape:
    """A web and the crawl of it."""

    name: str
    pages: int
    """Pages that exist."""
    crawled: int
    """Pages that a run stores, the first ones it finds."""
    hosts: int
    size: int
    """Mean bytes of a page."""
    links: int
    """Links of a page; two of them lead to its children in a binary tree, so all pages are reachable."""
    scheme: str = "http"
    closing: bool = False
    """The server closes each connection after one answer."""
    delay: str = "0"
    concurrency: int = 100


SHAPES: Final = {
    shape.name: shape
    for shape in (
        Shape("bench", 6_000, 6_000, 100, 79_000, 103),
        Shape("growing", 2_000_000, 6_000, 100, 79_000, 100),
        Shape("https", 6_000, 6_000, 100, 79_000, 103, scheme="https"),
        Shape("https-closing", 4_000, 4_000, 100, 30_000, 49, scheme="https", closing=True),
        Shape("small", 12_000, 12_000, 100, 5_000, 10),
        Shape("large", 1_000, 1_000, 100, 1_000_000, 300),
        Shape("polite", 10_000, 6_000, 500, 30_000, 49, delay="1s"),
    )
}


def targets(shape: Shape, n: int) -> Iterator[int]:
    """The pages that page *n* links to: its two children, then others at random."""
    yield (2 * n + 1) % shape.pages
    yield (2 * n + 2) % shape.pages
    rng = random.Random(n)
    for _ in range(shape.links - 2):
        yield int(rng.random() * shape.pages)


class Pages:
    """Bodies of one shape. A request costs some 50 µs, most of it for the choice of the links."""

    def __init__(self, shape: Shape, port: int) -> None:
        self.shape = shape
        self._base = f"{shape.scheme}://h%d.bench.test:{port}/p/%d.html"
        prose = Prose(7)
        rng = random.Random(7)
        self._templates = [
            prose.page("Page \1", [HREF] * shape.links, int(shape.size * rng.uniform(0.4, 1.6)))
            .decode()
            .replace("&#8211;", "\1")
            .split(HREF)
            for _ in range(TEMPLATES)
        ]

    def url(self, n: int) -> str:
        """The URL of page *n*."""
        return self._base % (n % self.shape.hosts, n)

    def body(self, n: int) -> bytes:
        """The page of that number."""
        parts = self._templates[n % TEMPLATES]
        urls = [self.url(target) for target in targets(self.shape, n)]
        mixed = [text for pair in zip(parts, urls, strict=False) for text in pair]
        return "".join([*mixed, parts[-1]]).replace("\1", f"{n} {n * 2654435761 % 2**32:x}").encode()


class Connection(asyncio.Protocol):
    """HTTP/1.1 as far as a crawler needs it."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._data = b""
        self._closing = pages.shape.closing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            path = self._data[:end].split(b" ", 2)[1]
            self._data = self._data[end + 4 :]
            self._transport.write(self._answer(path))
            if self._closing:
                self._transport.close()
                return

    def _answer(self, path: bytes) -> bytes:
        name = path[3:-5]
        status, body = b"404 Not Found", b""
        if path.startswith(b"/p/") and name.isdigit() and int(name) < self._pages.shape.pages:
            status, body = b"200 OK", self._pages.body(int(name))
        close = b"Connection: close\r\n" if self._closing else b""
        return b"HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n%s\r\n%s" % (
            status,
            len(body),
            close,
            body,
        )


async def serve(shape: Shape, certificate: str) -> None:
    """Serve until the process is ended. The port is printed when it is open."""
    context = None
    if shape.scheme == "https":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    loop = asyncio.get_running_loop()
    pages: list[Pages] = []
    server = await loop.create_server(lambda: Connection(pages[0]), "127.0.0.1", 0, ssl=context, backlog=4096)
    port = server.sockets[0].getsockname()[1]
    pages.append(Pages(shape, port))
    print(port, flush=True)
    await server.serve_forever()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """(certificate and key of *.bench.test, the authority that signed it) as files."""
    import trustme

    authority = trustme.CA()
    own, ca = folder / "server.pem", folder / "ca.pem"
    authority.issue_cert("*.bench.test").private_key_and_cert_chain_pem.write_to_path(str(own))
    authority.cert_pem.write_to_path(str(ca))
    os.chmod(own, 0o600)
    return own, ca


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.web.shapes", description="Serve a plain web of one shape.")
    parser.add_argument("name", choices=sorted(SHAPES))
    parser.add_argument("--certificate", default="")
    args = parser.parse_args(argv)
    runner()(serve(SHAPES[args.name], args.certificate))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
