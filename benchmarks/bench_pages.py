"""CPU per page, side by side with the peers that are installed: the same web, the same work, one core each, one after
another.

usage: python -m benchmarks.bench_pages --web DIR [--peers-venv VENV] [--colly BIN] [--spider BIN] [--only
nephila,colly] [--repeat 1] [--edit-hosts]

Work: all pages from page 0, title and links of each; a row per page. Nephila does it twice: with everything on (durable
frontier, SQLite with title, text, structure and metadata), and without text, as spider-rs does. The server is pinned to
the first core, the crawler to the last; user + system time of the crawler's process tree is compared.
"""

import argparse
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks import measure, plainweb, report
from benchmarks.peers import Peer, find

PART = ".bench.test:"
_KEPT = ("aiohttp", "httptools", "uvloop", "selectolax", "msgspec", "nephila")


@dataclass
class Runner:
    """How one crawler is run and how its result is read."""

    name: str
    command: Callable[[Path], list[str]]
    urls: Callable[[Path], Iterable[str]]


OURS: Final = {"nephila": [], "nephila without text": ["--main-text", "none"]}
"""Runs of Nephila and their words."""


def nephila(
    web: plainweb.PlainWeb, program: list[str], concurrency: int, extra: list[str], name: str = "nephila"
) -> Runner:
    """Our own crawl, with the words of the contract."""

    def command(out: Path) -> list[str]:
        return [
            *program,
            "crawl",
            web.start,
            "--scope",
            "any",
            "--include",
            r"\.bench\.test",
            "--ignore-robots",
            "--allow-private",
            "--delay",
            "0",
            "--concurrency",
            str(concurrency),
            "--host-map",
            "*.bench.test=127.0.0.1",
            "--quiet",
            "--out",
            str(out),
            *extra,
        ]

    return Runner(name, command, stored_urls)


def stored_urls(out: Path) -> list[str]:
    """The URLs of the stored rows."""
    path = out / "nephila.db"
    if not path.exists():
        return []
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        return [url for (url,) in connection.execute("SELECT url FROM pages WHERE outcome = 'stored'")]
    finally:
        connection.close()


def peer_runner(peer: Peer, web: plainweb.PlainWeb, concurrency: int) -> Runner:
    """A peer's runner program."""
    return Runner(peer.name, lambda out: [*peer.command, web.start, PART, str(out), str(concurrency)], line_urls)


def line_urls(out: Path) -> list[str]:
    """The URLs of a file of JSON lines."""
    return [json.loads(line)["url"] for line in out.read_text().splitlines()] if out.exists() else []


def once(runner: Runner, web: plainweb.PlainWeb, folder: Path) -> dict[str, Any]:
    """One run: what it cost and whether it got exactly the pages there are."""
    out, log = folder / "out", folder / "log"
    # Crawlee keeps its queue in this directory, else in the working directory.
    env = {**os.environ, "CRAWLEE_STORAGE_DIR": str(folder / "storage")}
    cost = measure.run(runner.command(out), measure.cores()[1], log=log, env=env)
    urls = list(runner.urls(out))
    got = frozenset(urls)
    tail = log.read_text(errors="replace")[-400:] if cost.code else ""
    return {
        "crawler": runner.name,
        "pages": len(urls),
        "lost": len(web.urls - got),
        "extra": len(got - web.urls),
        "doubled": len(urls) - len(got),
        "cpu_ms_per_page": round(cost.per_page(len(urls)), 4),
        "pages_per_s": round(len(urls) / cost.wall_s, 1),
        "cost": cost.as_json(),
        **({"error": tail} if tail else {}),
    }


def measured(runners: list[Runner], web: plainweb.PlainWeb, repeat: int, folder: Path) -> list[dict[str, Any]]:
    """All runs, in rounds, so that a busy minute of the machine does not hit one crawler only."""
    runs = []
    for number in range(repeat):
        for runner in runners:
            place = folder / f"{number}-{runner.name}"
            place.mkdir()
            runs.append(once(runner, web, place))
            print(
                f"  {runner.name}: {runs[-1]['cpu_ms_per_page']} CPU-ms/page, {runs[-1]['pages']} pages",
                file=sys.stderr,
                flush=True,
            )
            shutil.rmtree(place)
    return runs


def print_table(runs: list[dict[str, Any]], absent: list[Peer]) -> None:
    """The table and the ratios to nephila's best run."""
    names = list(dict.fromkeys(run["crawler"] for run in runs))
    best = {name: min(_of(runs, name, "cpu_ms_per_page")) for name in names}
    ours = best.get("nephila")
    rows = []
    for name in sorted(names, key=best.__getitem__):
        of = [run for run in runs if run["crawler"] == name]
        wrong = sum(run["lost"] + run["extra"] + run["doubled"] for run in of)
        ratio = f"{best[name] / ours:.1f} x" if ours else "-"
        rss = max(run["cost"]["peak_rss_mb"] for run in of)
        rows.append(
            (
                name,
                best[name],
                median(_of(runs, name, "cpu_ms_per_page")),
                ratio,
                median(_of(runs, name, "pages_per_s")),
                rss,
                of[-1]["pages"],
                wrong,
            )
        )
    print(
        report.table(("crawler", "CPU-ms/page", "median", "to nephila", "pages/s", "peak MB", "pages", "wrong"), rows)
    )
    for peer in absent:
        print(f"{peer.name}: not installed ({peer.hint})")
    for run in runs:
        if "error" in run:
            print(f"{run['crawler']} ended with {run['cost']['code']}: {run['error'].strip().splitlines()[-1:]}")


def _of(runs: list[dict[str, Any]], name: str, key: str) -> list[float]:
    return [float(run[key]) for run in runs if run["crawler"] == name]


def usable_peers(args: argparse.Namespace, web: plainweb.PlainWeb) -> tuple[list[Peer], list[Peer]]:
    """(installed, absent); without names in the hosts file no peer can find the web."""
    wanted = args.only.split(",") if args.only else None
    peers = [p for p in find(args.peers_venv, args.colly, args.spider) if wanted is None or p.name in wanted]
    missing = plainweb.missing_names(web) if peers else []
    if missing and args.edit_hosts:
        plainweb.add_names(missing)
    elif missing:
        hint = f"the hosts file lacks {len(missing)} names such as {missing[0]}; --edit-hosts adds them"
        return [], [Peer(p.name, (), hint) for p in peers]
    return [p for p in peers if p.command], [p for p in peers if not p.command]


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(prog="benchmarks.bench_pages", description="CPU per page beside the peers.")
    options.add_argument("--web", type=Path, required=True, help="a plain web (python -m benchmarks.web.plain DIR)")
    options.add_argument("--peers-venv", type=Path, help="a virtual environment with scrapy and crawlee")
    options.add_argument("--colly", type=Path)
    options.add_argument("--spider", type=Path)
    options.add_argument("--only", help="names, separated by commas: nephila, scrapy, crawlee, colly, spider-rs")
    options.add_argument("--repeat", type=int, default=1)
    options.add_argument("--concurrency", type=int, default=100)
    options.add_argument("--edit-hosts", action="store_true", help="add the web's names to the hosts file")
    options.add_argument("--nephila", default=f"{sys.executable} -m nephila", help="how nephila is called")
    options.add_argument("--extra", default="", help="more words for `nephila crawl`")
    return options


def main(argv: list[str] | None = None) -> int:
    """The command line; exit 1 when nephila did not get exactly the pages there are."""
    args = parser().parse_args(argv)
    web = plainweb.read(args.web)
    installed, absent = usable_peers(args, web)
    runners = [peer_runner(peer, web, args.concurrency) for peer in installed]
    program = args.nephila.split()
    if args.only is None or "nephila" in args.only.split(","):
        words = args.extra.split()
        ours = [nephila(web, program, args.concurrency, words + more, name) for name, more in OURS.items()]
        runners = ours + runners
    with tempfile.TemporaryDirectory() as folder, plainweb.Serving(web, Path(folder) / "server") as server:
        runs = measured(runners, web, args.repeat, Path(folder))
    print_table(runs, absent)
    data = {
        "pages": len(web.files),
        "concurrency": args.concurrency,
        "server": server.kind,
        "versions": report.versions(*_KEPT),
    }
    path = report.save("pages", {**data, "runs": runs, "not_installed": [p.name for p in absent]})
    print(f"raw: benchmarks/results/{path.name}")
    return int(any(r["lost"] or r["extra"] or r["doubled"] or r["cost"]["code"] for r in runs if r["crawler"] in OURS))


if __name__ == "__main__":
    raise SystemExit(main())
