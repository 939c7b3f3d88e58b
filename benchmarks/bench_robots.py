"""robots.txt: memory a file and time a decision, on real files and on hostile ones.

python -m benchmarks.bench_robots [ROBOTS]     a directory with robots-corpus.tar.gz; without: hostile files only
"""

from __future__ import annotations

import sys
import tarfile
import time
from pathlib import Path

from nephila.kernel.net.robots import Robots, parse
from nephila.native import IMPLEMENTATION

AGENT = "nephila"
PATHS = ("/", "/a/b/c.html?x=1", "/products/list/page/2?sort=asc&q=foo", "/wiki/Main_Page")
LONG = ("/x" + "ab/" * 60, "/" + "x" * 8_000, "/" + "abc" * 2_600)
HOSTILE = {
    "26,000 prefixes": [b"Disallow: /%07d" % number for number in range(26_000)],
    "26,000 whole paths": [b"Disallow: /%06d$" % number for number in range(26_000)],
    "26,000 with a star": [b"Disallow: /x*%05d" % number for number in range(26_000)],
    "25,000 with four stars": [b"allow /*a*b*c*%x" % number for number in range(25_000)],
    "30 of 8,000 stars": [b"allow /" + b"*a" * 8_000 + b"%d" % number for number in range(30)],
}


def microseconds(robots: Robots, paths: tuple[str, ...], rounds: int) -> float:
    """Mean time of a decision."""
    start = time.perf_counter()
    for _ in range(rounds):
        for path in paths:
            robots.allowed(AGENT, path)
    return (time.perf_counter() - start) / rounds / len(paths) * 1e6


def main(arguments: list[str]) -> None:
    """Print one line for each kind of file."""
    print(f"native core: {IMPLEMENTATION}\n{'':24} {'KB a file':>10} {'read ms':>9} {'us':>8} {'us, long path':>14}")
    for name, rules in HOSTILE.items():
        body = (b"User-agent: *\n" + b"\n".join(rules))[: 500 << 10]
        start = time.perf_counter()
        robots = parse(body)
        robots.rules(AGENT)
        read_ms = (time.perf_counter() - start) * 1e3
        short, long = microseconds(robots, PATHS, 20), max(microseconds(robots, (path,), 5) for path in LONG)
        print(f"{name:24} {robots.size_bytes / 1000:10.1f} {read_ms:9.1f} {short:8.1f} {long:14.1f}")
    for place in arguments[:1]:
        with tarfile.open(Path(place) / "robots-corpus.tar.gz") as archive:
            files = [handle.read() for member in archive if (handle := archive.extractfile(member)) is not None]
        start = time.perf_counter()
        known = [parse(body) for body in files]
        size = sum(robots.rules(AGENT) is not None and robots.size_bytes for robots in known) / len(known)
        read_ms = (time.perf_counter() - start) / len(known) * 1e3
        short = sum(microseconds(robots, PATHS, 3) for robots in known) / len(known)
        long = max(microseconds(robots, LONG, 1) for robots in known)
        print(f"{f'{len(known):,} real files':24} {size / 1000:10.1f} {read_ms:9.2f} {short:8.2f} {long:14.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
