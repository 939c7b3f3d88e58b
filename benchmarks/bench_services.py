"""CPU per page of the four services as programs over Kafka and PostgreSQL: each of ours, and beside them broker,
database and web server.

usage: python -m benchmarks.bench_services --web DIR [--repeat 3] [--concurrency 100] [--delay 0]
       [--against SERVICES] [--idle 5] [--keep DIR] [--services storage,fetchparse,scheduler] [--save]
       [--kafka '{}'] [--and-kafka '{"beat_s": 0}'] [--log]

Work: as in bench_pages, but a system that stands already is told of it by `nephila crawl --bootstrap`: a durable
frontier, a row with title, text and metadata per page in PostgreSQL. A process' CPU is read from /proc when all are
ready and again when the crawl says that it is done, so a start is not in it and the wait for that word is. The services
share the machine with the broker, the database and the web server. `--against` names the folder `services` of another
checkout: both are run in turn, so that a ratio is of one minute of the machine. `--and-kafka` does the same with other
settings of the bus. `--log` serves by our own server and reads its log: the least gap between two requests of a host.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from benchmarks import measure, plainweb, report
from benchmarks.web.evidence import load_log
from tools.system import READY_S, SERVICES, System, cpu_s

PARTITIONS = 16
BESIDE = ("broker", "database", "web server")


def settings(concurrency: int, kafka: Mapping[str, Any]) -> dict[str, Any]:
    """The content of system.yaml; as a crawl of one program is set in bench_pages. `kafka`: settings of the bus."""
    return {
        **({"kafka": dict(kafka)} if kafka else {}),
        "scheduler": {"concurrency": concurrency, "per_address": 0, "address_gap_s": 0},
        "downloader": {
            "concurrency": concurrency,
            "limits": {"per_address": 0, "address_gap_s": 0},
            "dns": {"allow_private": True, "host_map": ["*.bench.test=127.0.0.1"]},
        },
        "storage": {},
    }


def meter(system: System, servers: list[int]) -> dict[str, float]:
    """CPU seconds so far of each part."""
    assert system.broker.process is not None
    return {
        **{member.service: cpu_s(member.pid) for member in system.members.values()},
        "broker": cpu_s(system.broker.process.pid),
        "database": system.database.cpu_s(),
        "web server": sum(map(cpu_s, servers)),
    }


def stored(system: System) -> set[str]:
    """URLs that have a row with a page. Raises `SystemExit` for a URL with two."""
    with psycopg.connect(system.store) as link:
        found = [url for (url,) in link.execute("SELECT url FROM pages WHERE outcome = 'stored'").fetchall()]
    if len(found) != len(set(found)):
        raise SystemExit(f"{len(found) - len(set(found))} rows are there twice")
    return set(found)


def gaps(log: Path, delay_s: float, since: int) -> tuple[dict[str, float], int]:
    """What the log of the server says of its requests from number `since` on, and their number with those before: the
    gaps between the end of a request and the start of the next one of its host."""
    requests = load_log(log)[0]
    ended: dict[str, float] = {}
    found = []
    for request in sorted(requests[since:], key=lambda request: request.start):
        if request.host in ended:
            found.append(request.start - ended[request.host])
        ended[request.host] = max(request.end, ended.get(request.host, 0.0))
    short = sum(gap < delay_s for gap in found)
    return {"gaps": len(found), "short": short, "least": min(found, default=0.0), "median": median(found)}, len(
        requests
    )


def once(
    web: plainweb.PlainWeb, args: argparse.Namespace, folder: Path, services: str, kafka: Mapping[str, Any]
) -> dict[str, Any]:
    """One system, one crawl."""
    system = System(folder, settings(args.concurrency, kafka), partitions=args.partitions)
    if services:
        system.environment["PYTHONPATH"] = services
    servers = args.server_pids or measure.named("nginx")
    try:
        system.open()
        members = [system.add(service) for service in args.services.split(",")]
        for member in members:
            system.start(member)
        system.wait_ready(*members, within_s=READY_S + args.partitions / 2)
        ready = meter(system, servers)
        began = time.monotonic()
        result = system.nephila(*crawl(web, system, args.delay))
        wall_s = time.monotonic() - began
        spent = difference(meter(system, servers), ready)
        urls = stored(system)
        if urls != web.urls:
            raise SystemExit(f"{len(urls)} of {len(web.urls)} pages: {result}")
        before, idle_from = meter(system, servers), time.monotonic()
        time.sleep(args.idle)
        idle = difference(meter(system, servers), before)
        idle_s = max(time.monotonic() - idle_from, 1e-9)
        log: dict[str, float] = {}
        if args.log:
            log, args.logged = gaps(args.log_file, args.delay, args.logged)
        return {
            "services": "against" if services or kafka is args.and_kafka else "here",
            "log": log,
            "pages": len(urls),
            "wall_s": wall_s,
            "cpu_s": spent,
            "start_cpu_s": {name: ready[name] for name in args.services.split(",")},
            "idle_share": {name: idle[name] / idle_s for name in idle},
        }
    finally:
        system.close()


def crawl(web: plainweb.PlainWeb, system: System, delay_s: float) -> list[str]:
    """The words of the crawl."""
    words = ["crawl", web.start, "--bootstrap", system.broker.address, "--scope", "any", "--include", r"\.bench\.test"]
    return [*words, "--ignore-robots", "--delay", f"{delay_s:g}", "--json", "--quiet"]


def difference(now: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """What was spent between two readings."""
    return {name: now[name] - before[name] for name in now}


def summary(runs: list[dict[str, Any]]) -> dict[str, float]:
    """CPU-ms per page of each part, medians of the runs; `ours` is the median of the sums."""
    services = tuple(reversed(runs[0]["start_cpu_s"]))
    per_page = {name: median(run["cpu_s"][name] * 1000 / run["pages"] for run in runs) for name in (*services, *BESIDE)}
    ours = median(sum(run["cpu_s"][name] for name in services) * 1000 / run["pages"] for run in runs)
    rows = {"ours": ours, **per_page, "pages/s": median(run["pages"] / run["wall_s"] for run in runs)}
    idle = median(run["idle_share"]["broker"] * run["wall_s"] * 1000 / run["pages"] for run in runs)
    rows["broker less idle"] = rows["broker"] - idle
    for name in runs[0]["log"]:
        rows[name] = median(run["log"][name] for run in runs)
    return {name: round(value, 3) for name, value in rows.items()}


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    options = argparse.ArgumentParser(prog="benchmarks.bench_services", description="What the services cost per page.")
    options.add_argument("--web", type=Path, required=True, help="a plain web (python -m benchmarks.web.plain DIR)")
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--concurrency", type=int, default=100)
    options.add_argument("--delay", type=float, default=0.0, help="seconds between requests to a host")
    options.add_argument("--partitions", type=int, default=PARTITIONS)
    options.add_argument("--against", default="", help="folder `services` of another checkout, run in turn with this")
    options.add_argument("--services", default=",".join(SERVICES), help="programs to run, the end of the route first")
    options.add_argument("--idle", type=float, default=5.0, help="seconds to watch the system with nothing to do")
    options.add_argument("--keep", type=Path, help="leave logs here")
    options.add_argument("--save", action="store_true", help="write the raw result")
    options.add_argument("--kafka", type=json.loads, default={}, help="settings of the bus, JSON")
    options.add_argument("--and-kafka", type=json.loads, help="run with these settings of the bus as well, in turn")
    options.add_argument("--log", action="store_true", help="judge the gaps by the log of the server")
    args = options.parse_args(argv)
    web = plainweb.read(args.web)
    runs: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory() as temporary,
        plainweb.Serving(web, Path(temporary) / "server", Path(temporary) / "log" if args.log else None) as server,
    ):
        args.log_file, args.logged = Path(temporary) / "log", 0
        args.server_pids = [server.pid] if server.pid else []
        for number in range(args.repeat):
            ways = [(services, args.kafka) for services in dict.fromkeys((args.against, ""))]
            if args.and_kafka is not None:
                ways.append(("", args.and_kafka))
            for way, (services, kafka) in enumerate(ways):
                folder = (args.keep or Path(temporary)) / f"run-{number}-{way}"
                runs.append(run := once(web, args, folder, services, kafka))
                print(json.dumps({"run": number, "services": run["services"], **summary([run])}), flush=True)
                if not args.keep:
                    shutil.rmtree(folder)
        kind = server.kind
    show(runs)
    if args.save:
        about = {"concurrency": args.concurrency, "delay_s": args.delay, "partitions": args.partitions, "server": kind}
        rows = {
            kind: summary([run for run in runs if run["services"] == kind]) for kind in {r["services"] for r in runs}
        }
        known = report.versions("aiokafka", "protobuf", "psycopg", "uvloop", "msgspec", "zstandard")
        path = report.save("services", {**about, "versions": known, "rows": rows, "runs": runs})
        print(f"raw: benchmarks/results/{path.name}")
    return 0


def show(runs: list[dict[str, Any]]) -> None:
    """The table: a row per part; with --against the other's figure and the ratio."""
    here = [run for run in runs if run["services"] == "here"]
    other = [run for run in runs if run["services"] == "against"]
    now, before = summary(here), summary(other) if other else {}
    head = ["CPU-ms per page", "here", "idle %", *(["against", "x"] if other else [])]
    rows = []
    for name, value in now.items():
        idle = median(run["idle_share"][name] for run in here) * 100 if name in here[0]["idle_share"] else ""
        more = [before[name], f"{value / before[name]:.2f}" if before[name] else "-"] if other else []
        rows.append([name, value, idle, *more])
    print(report.table(head, rows))


if __name__ == "__main__":
    raise SystemExit(main())
