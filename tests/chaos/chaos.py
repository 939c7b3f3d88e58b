"""The chaos show: a crawl over Kafka and PostgreSQL to which everything happens that may, judged by the server's log.

usage: python -m tests.chaos.chaos [--seed 7] [--scale full|small] [--hosts N] [--pages N] [--delay S] [--kills N]
       [--freezes N] [--broker-kills N] [--scales 2,5,3] [--schedulers 2] … [--topology fetchparse] [--every S]
       [--only SERVICE] [--standing S] [--beat S] [--keep DIR] [--save]

The project's own web, faults fixed per URL; the services as processes; kill -9, SIGSTOP, a broker that dies,
downloaders that come and go, in a seeded order, all before the last page. Exit 0 when no rule is broken, 1 when one is,
2 when the show could not be given. Logs stay in the folder that is printed at the end.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.plainweb import listening
from benchmarks.web.checks import Finding
from benchmarks.web.evidence import Case, Unusable, load_log, load_manifest
from tests.chaos import chaos_web
from tests.chaos.chaos_plan import TOPOLOGIES, Counts, Fault, plan
from tests.chaos.chaos_verdict import SLACK_S, Happened, Show, judge, load_rows, longest_silence
from tests.chaos.conductor import STANDING_S, Conductor
from tools.install import Missing
from tools.postgres import NoServer
from tools.system import NotReady, System, free_port

ROOT = Path(__file__).parents[2]
CRAWL_DELAY_S = 7
TICK_S = 0.1
SETTLE_S = 0.3
"""Until the server has written what it logged last."""
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "hosts": 100, "pages": 60, "delay": 5.0, "kills": 3, "freezes": 2, "broker_kills": 2, "scales": "2,5,3",
        "every": 13.0, "freeze": 20.0, "limit": 1800.0,
    },
    "small": {
        "hosts": 30, "pages": 30, "delay": 4.0, "kills": 1, "freezes": 1, "broker_kills": 1, "scales": "2,3",
        "every": 8.0, "freeze": 10.0, "limit": 600.0,
    },
}  # fmt: skip
SIZES = {"scheduler": 2, "downloader": 3, "parser": 2, "storage": 1}


def settings(hosts: dict[str, dict[str, Any]], folder: Path, beat_s: float) -> dict[str, Any]:
    """What system.yaml says: leases short enough for a show, time limits of a fetch below them."""
    maps = [f"{name}={host['address']}" for name, host in hosts.items()]
    blobs = str(folder / "blobs")
    return {
        "grace_s": 10,
        "kafka": {"blobs": blobs, "beat_s": beat_s},
        "scheduler": {
            "concurrency": 400,
            "start_by_s": 10,
            "lease_s": 30,
            "backoff_s": 5,
            "blobs": blobs,
            "snapshot_bytes": 64 << 10,
        },
        "downloader": {
            "dns": {"allow_private": True, "host_map": maps},
            "http": {"headers_timeout_s": 10, "idle_timeout_s": 8, "total_timeout_s": 20},
        },
        "storage": {},
    }


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    args = arguments(argv)
    folder = (args.keep or ROOT / "build" / "chaos" / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())).resolve()
    folder.mkdir(parents=True)
    counts = Counts(args.kills, args.freezes, args.broker_kills, tuple(int(n) for n in args.scales.split(",") if n))
    services = TOPOLOGIES[args.topology]
    faults = plan(
        args.seed,
        counts,
        first_s=args.first,
        every_s=args.every,
        services=services,
        struck=(args.only,) if args.only else services,
    )
    try:
        show, took_s = give(args, folder, faults)
    except (NotReady, Missing, NoServer, Unusable) as error:
        print(f"the show could not be given: {error}; logs are in {folder}", file=sys.stderr)
        return 2
    findings = judge(show)
    print(json.dumps(report.machine()))
    print(head(args, show, took_s))
    print(table(findings))
    broken = [name for name, finding in findings.items() if finding.violations]
    print(f"\n{f'{len(broken)} rules broken' if broken else 'no rule broken'}; logs: {folder}")
    if args.save:
        print(f"raw: benchmarks/results/{save(args, show, findings, took_s).name}")
    return 1 if broken else 0


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Options; what is not given is as the scale has it."""
    options = argparse.ArgumentParser(prog="tests.chaos.chaos", description="A crawl to which everything happens.")
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--scale", choices=SCALES, default="full")
    for name, kind in (("hosts", int), ("pages", int), ("delay", float), ("kills", int), ("freezes", int)):
        options.add_argument(f"--{name}", type=kind)
    options.add_argument("--broker-kills", type=int)
    options.add_argument("--scales", help="numbers of downloaders, one after the other; empty: no scaling")
    options.add_argument("--every", type=float, help="seconds between two faults, on average")
    options.add_argument("--freeze", type=float, help="seconds a SIGSTOP lasts")
    options.add_argument("--only", choices=sorted({*SIZES, "fetchparse"}), help="kill and freeze this service alone")
    options.add_argument("--standing", type=float, default=STANDING_S, help="seconds from a start to the next fault")
    options.add_argument("--first", type=float, default=8.0, help="seconds before the first fault")
    options.add_argument("--limit", type=float, help="seconds after which the show has failed")
    for service, size in SIZES.items():
        options.add_argument(f"--{service}s", type=int, default=size)
    options.add_argument(
        "--topology", choices=TOPOLOGIES, default="services", help="fetchparse: as many as downloaders"
    )
    options.add_argument("--partitions", type=int, default=16)
    options.add_argument("--beat", type=float, default=0.5, help="seconds of the beat of the bus; 0: none")
    options.add_argument("--keep", type=Path, help="work here; default build/chaos/TIME")
    options.add_argument("--save", action="store_true", help="write the raw result")
    args = options.parse_args(argv)
    for name, value in SCALES[args.scale].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    return args


def sizes(args: argparse.Namespace) -> dict[str, int]:
    """Members of each service at the start."""
    options = {"fetchparse": "downloaders"}
    return {service: getattr(args, options.get(service, f"{service}s")) for service in TOPOLOGIES[args.topology]}


def give(args: argparse.Namespace, folder: Path, faults: list[Fault]) -> tuple[Show, float]:
    """Serve the web, run the system, let everything happen; returns the evidence and the seconds it took."""
    web, log, port = folder / "web", folder / "access.log", free_port()
    site = chaos_web.build(args.seed, args.hosts, args.pages, crawl_delay_s=CRAWL_DELAY_S, port=port)
    site.write(web)
    manifest = load_manifest(web)
    system = System(folder / "system", settings(manifest["hosts"], folder, args.beat), partitions=args.partitions)
    conductor = Conductor(system, sizes(args), faults, freeze_s=args.freeze, standing_s=args.standing)
    server = serve(web, log, port)
    began = time.monotonic()
    try:
        system.open()
        conductor.begin()
        code = watch(args, conductor, crawl(args, system, site.seeds, folder), log)
        took_s = time.monotonic() - began
        conductor.close()
        rows = load_rows(system.store)
    finally:
        conductor.close()
        system.close()
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    requests, closed = load_log(log)
    case = Case(manifest, requests, closed, rows, args.delay, 1, SLACK_S, 0, 0.0)
    return Show(case, conductor.happened, len(faults), code, conductor.strangers), took_s


def serve(web: Path, log: Path, port: int) -> subprocess.Popen[bytes]:
    """The bench server; returns when it listens."""
    words = [sys.executable, "-m", "benchmarks.web.serve", str(web), "--port", str(port), "--log", str(log)]
    server = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 10
    while not listening(port, "127.0.2.1"):
        if server.poll() is not None or time.monotonic() > until:
            raise Unusable("the bench server did not start")
        time.sleep(0.05)
    return server


def crawl(args: argparse.Namespace, system: System, seeds: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """The program that tells the crawl and watches it."""
    words = ["crawl", *seeds, "--bootstrap", system.broker.address, "--scope", "any"]
    words += ["--include", r"\.chaos\.test", "--delay", str(args.delay), "--json"]
    command = [sys.executable, "-m", "nephila", *words]
    with (folder / "crawl.out").open("wb") as out, (folder / "crawl.err").open("wb") as err:
        return subprocess.Popen(command, cwd=system.folder, env=system.environment, stdout=out, stderr=err)


def watch(args: argparse.Namespace, conductor: Conductor, process: subprocess.Popen[bytes], log: Path) -> int | None:
    """Until the crawl ends; returns its exit code, or None when it did not in time."""
    began = said = time.monotonic()
    while process.poll() is None and time.monotonic() < began + args.limit:
        conductor.tick()
        time.sleep(TICK_S)
        if time.monotonic() > said + 15:
            said = time.monotonic()
            requests = log.read_bytes().count(b'"event":"request"')
            struck = len(conductor.happened)
            print(f"  {said - began:.0f} s: {requests} requests, {struck} faults, {conductor.left} to come", flush=True)
    time.sleep(SETTLE_S)
    if process.poll() is None:
        process.kill()
        process.wait()
        return None
    return process.returncode


def head(args: argparse.Namespace, show: Show, took_s: float) -> str:
    """What was done."""
    members = ", ".join(f"{size} {service}" for service, size in sizes(args).items())
    lines = [
        f"seed {args.seed}: {len(show.case.pages)} URLs on {args.hosts} hosts, delay {args.delay:g} s; {members}",
        f"took {took_s:.0f} s; longest time without a request {longest_silence(show):.1f} s",
    ]
    return "\n".join([*lines, *(f"  {line}" for line in result(show.happened))])


def result(happened: Any) -> list[str]:
    """How often each thing happened to whom, a line per kind."""
    found: dict[str, list[Happened]] = {}
    for one in happened:
        found.setdefault(one.what, []).append(one)
    return [f"{what}: {len(ones)} ({', '.join(one.member for one in ones)})" for what, ones in found.items()]


def table(findings: dict[str, Finding]) -> str:
    """A line per rule, under it what was wrong."""
    lines = []
    for name, finding in findings.items():
        bad = len(finding.violations)
        lines.append(f"{'FAIL' if bad else 'ok':4}  {name:34} {bad:>5} of {finding.judged:<6} {finding.note}".rstrip())
        lines += [f"        {violation}" for violation in finding.violations[:12]]
    return "\n".join(lines)


def save(args: argparse.Namespace, show: Show, findings: dict[str, Finding], took_s: float) -> Path:
    """The raw result."""
    first = min((r.start for r in show.case.requests), default=0.0)
    options = {name: value for name, value in vars(args).items() if name not in ("keep", "save")}
    rules = {name: {"judged": f.judged, "violations": f.violations, "note": f.note} for name, f in findings.items()}
    happened = [{"at_s": round(h.at - first, 2), "what": h.what, "member": h.member} for h in show.happened]
    data = {"options": options, "took_s": round(took_s, 1), "requests": len(show.case.requests), "happened": happened}
    return report.save("chaos", {**data, "rules": rules})


if __name__ == "__main__":
    raise SystemExit(main())
