"""A plain finite web: N pages on H hosts as files, every page reachable from page 0, nothing hostile. What speed is
measured on.

usage: python -m benchmarks.web.plain OUT [--pages 6000] [--hosts 100] [--port 8088] [--seed 7] [--size 80000]
[--links 100]

OUT/h<n % H>.bench.test/p/<n>.html; the exact URL set is http://h<n % H>.bench.test:PORT/p/<n>.html for n < N.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

from benchmarks.web.prose import Prose


def page_url(n: int, hosts: int, port: int) -> str:
    """The URL of page *n*."""
    return f"http://h{n % hosts}.bench.test:{port}/p/{n}.html"


def targets(n: int, pages: int, hosts: int, links: int, rng: random.Random) -> Iterator[int]:
    """The pages that page *n* links to: two children of a binary tree (so all are reachable), then two of three on its
    own host.
    """
    yield (2 * n + 1) % pages
    yield (2 * n + 2) % pages
    for i in range(links - 2):
        yield (n + hosts * rng.randrange(1, 50)) % pages if i % 3 else rng.randrange(pages)


def generate(out: Path, *, pages: int, hosts: int, port: int, seed: int, size: int, links: int) -> int:
    """Write the web under *out*; returns the bytes written."""
    rng, prose, written = random.Random(seed), Prose(seed), 0
    for host in range(hosts):
        (out / f"h{host}.bench.test" / "p").mkdir(parents=True, exist_ok=True)
    for n in range(pages):
        hrefs = [page_url(t, hosts, port) for t in targets(n, pages, hosts, links, rng)]
        body = prose.page(prose.title(), hrefs, int(size * rng.uniform(0.4, 1.6)))
        written += (out / f"h{n % hosts}.bench.test" / "p" / f"{n}.html").write_bytes(body)
    return written


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.web.plain", description="Write a plain finite web as files.")
    parser.add_argument("out", type=Path)
    for name, default in (
        ("pages", 6000),
        ("hosts", 100),
        ("port", 8088),
        ("seed", 7),
        ("size", 80_000),
        ("links", 100),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args(argv)
    written = generate(args.out, **{k: v for k, v in vars(args).items() if k != "out"})
    print(f"{args.pages} pages on {args.hosts} hosts, mean {written // args.pages} bytes, in {args.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
