"""Build the hostile bench web: manifest.json for the judge, site.json and bodies.bin for the server. Same arguments,
same bytes.

usage: python -m benchmarks.web.generate OUT [--seed 7] [--pages 1500] [--hosts 24] [--port 8089] [--max-depth 8]
"""

import argparse
import shlex
from pathlib import Path

from benchmarks.web import (
    kinds_content,
    kinds_link,
    kinds_plain,
    kinds_redirect,
    kinds_robots,
    kinds_trap,
    kinds_trouble,
)
from benchmarks.web.site import Site
from benchmarks.web.town import Town

# What a hostile web is made of, beside its ordinary hosts.
KINDS = {
    "robots": kinds_robots.build,
    "trouble": kinds_trouble.build,
    "redirect": kinds_redirect.build,
    "trap": kinds_trap.build,
    "content": kinds_content.build,
    "link": kinds_link.build,
}


def build(
    seed: int = 7,
    pages: int = 1500,
    hosts: int = 24,
    port: int = 8089,
    max_depth: int = 8,
    kinds: tuple[str, ...] = tuple(KINDS),
) -> Site:
    """The site in memory; *pages* counts the ordinary pages, the hostile ones come on top."""
    site = Site(seed, port, max_depth)
    town = Town(site)
    kinds_plain.build(town, pages, hosts)
    for name in kinds:
        KINDS[name](town)
    return site


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.web.generate", description="Build the hostile bench web.")
    parser.add_argument("out", type=Path)
    for name, default in (("seed", 7), ("pages", 1500), ("hosts", 24), ("port", 8089), ("max-depth", 8)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--kinds", default=",".join(KINDS), help="which hostile kinds to build: " + ", ".join(KINDS))
    args = parser.parse_args(argv)
    kinds = tuple(filter(None, args.kinds.split(",")))
    if unknown := set(kinds) - KINDS.keys():
        parser.error(f"unknown kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    site = build(args.seed, args.pages, args.hosts, args.port, args.max_depth, kinds)
    site.write(args.out)
    (args.out / "crawl.sh").write_text(f'exec nephila crawl {shlex.join(site.crawl_arguments())} "$@"\n')
    print(
        f"{len(site.pages)} pages on {len(site.hosts)} hosts in {args.out}; "
        f"crawl it with: sh {args.out}/crawl.sh --delay 1 --out DIR"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
