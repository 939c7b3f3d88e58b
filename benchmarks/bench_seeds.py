"""A file of seeds: the time until the first request and until all are admitted.

usage: python -m benchmarks.bench_seeds [--lines 1000000] [--workers N] [--directory DIR] [--profile]

The real reader, bus and scheduler with its log in files, in the order in which `nephila crawl --seeds FILE` calls them.
Nothing is fetched: requests stay without an outcome, so at most `concurrency` of them are sent. CPU seconds of the
process, and wall time. Each line names a host of its own; one line in a hundred is no URL and has to be reported.

With --workers, groups admit the seeds: the real main process and its groups, with a paused job. CPU seconds of both.
"""

import argparse
import asyncio
import cProfile
import gc
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.job_document import job_of
from nephila.kernel.documents.job_schema import JobSpec, Politeness, Scope
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import JOBS, REQUESTS
from nephila.programs.crawl.seeds import all_seeds, publish
from nephila.programs.groups.group_assembly import GroupAssembly
from nephila.programs.option_table import defaults
from nephila.programs.service_configs import make_configs
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.standalone import Scheduler

from benchmarks import measure, report

JOB = "bench"
BAD = 100
"""One line in so many is no URL."""


def write_lines(path: Path, lines: int) -> None:
    with path.open("w") as file:
        for n in range(lines):
            file.write("no url\n" if n % BAD == BAD - 1 else f"http://www.host-{n}.test/archive/article-about-no-{n}\n")


async def admit(file: Path, directory: Path) -> dict[str, Any]:
    """Admit the seeds of a file; the figures."""
    clock = SystemClock()
    bus = LocalBus(clock)
    scheduler = Scheduler(SchedulerConfig(directory=str(directory)), bus, clock)
    first: list[tuple[float, float]] = []
    requests = []

    def on_request(delivery: Any) -> None:
        requests.append(delivery)
        if not first:
            first.append((time.perf_counter() - began, time.process_time() - cpu))

    bus.subscribe(REQUESTS, "bench", on_request, credits=1 << 30)
    await scheduler.start()
    job = job_of(JOB, JobSpec(scope=Scope(mode="host"), politeness=Politeness(delay="1s")))
    job.generation = 1
    bus.publish(JOBS, 0, job)
    await asyncio.sleep(0)
    base = measure.resident_bytes()
    began, cpu = time.perf_counter(), time.process_time()
    bad: list[tuple[str, str]] = []
    await publish(all_seeds(job, (), str(file), bad), bus, scheduler.add_seeds)
    await scheduler.durable()
    took = time.perf_counter() - began, time.process_time() - cpu
    state = scheduler.frontier.jobs[JOB]
    figures = {
        "seen": len(state.seen),
        "bad": len(bad),
        "bad_last": bad[-1][0] if bad else "",
        "first_request_s": first[0][0],
        "first_request_cpu_s": first[0][1],
        "admitted_s": took[0],
        "admitted_cpu_s": took[1],
        "us_per_line": took[1] / (len(state.seen) + len(bad)) * 1e6,
        "grown_mb": (measure.resident_bytes() - base) / 2**20,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    await scheduler.close()
    return figures


async def admit_by_groups(file: Path, directory: Path, workers: int) -> dict[str, Any]:
    """Have groups admit the seeds of a file; the figures."""
    clock = SystemClock()
    bus = LocalBus(clock)
    options = {**defaults(), "workers": workers}
    configs = make_configs(options, directory, ("sqlite",), paced=False, divided=True)
    assembly = GroupAssembly(configs, clock, bus, on_fatal=fail, on_turn=lambda: None)
    bad: list[tuple[str, str]] = []
    async with assembly.running():
        job = job_of(JOB, JobSpec(scope=Scope(mode="host"), politeness=Politeness(delay="1s")))
        job.generation, job.paused = 1, True
        bus.publish(JOBS, 0, job)
        await assembly.frontier.durable()
        began, cpu, started = time.perf_counter(), time.process_time(), _cpu_s(assembly.processes.pids)
        await publish(all_seeds(job, (), str(file), bad), bus, assembly.frontier.add_seeds)
        while not assembly.frontier.idle:
            await assembly.frontier.durable()
        took, main_cpu_s = time.perf_counter() - began, time.process_time() - cpu
        group_cpu_s = _cpu_s(assembly.processes.pids) - started
        queued = assembly.frontier.queued
    return {
        "seen": queued,
        "bad": len(bad),
        "bad_last": bad[-1][0] if bad else "",
        "admitted_s": took,
        "main_cpu_s": main_cpu_s,
        "group_cpu_s": group_cpu_s,
        "us_per_line": (main_cpu_s + group_cpu_s) / (queued + len(bad)) * 1e6,
        "peak_main_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _cpu_s(pids: list[int]) -> float:
    return sum(measure.ticks_of(pid) / os.sysconf("SC_CLK_TCK") for pid in pids)


def fail(error: BaseException) -> None:
    raise error


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_seeds", description="A file of seeds.")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--directory", help="where the files go; a temporary directory when not given")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--workers", type=int, default=0, help="groups that admit; 0: one process")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=args.directory) as folder:
        if args.one:
            gc.freeze()
            gc.set_threshold(50_000, 20, 100)  # as the program does
            given = Path(args.one), Path(folder)
            work = admit_by_groups(*given, args.workers) if args.workers else admit(*given)
            print(json.dumps(asyncio.run(work)))
            return 0
        file = Path(folder, "seeds.txt")
        write_lines(file, args.lines)
        if args.profile:
            with cProfile.Profile() as profile:
                asyncio.run(admit(file, Path(folder, "log")))
            pstats.Stats(profile).sort_stats("tottime").print_stats(35)
            return 0
        command = [sys.executable, "-m", "benchmarks.bench_seeds", "--one", str(file), "--directory", folder]
        command += ["--workers", str(args.workers)]
        runs = [json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
                for _ in range(args.runs)]  # fmt: skip
    columns = list(runs[0])
    print(report.table(columns, [[run[column] for column in columns] for run in runs]))
    figures = {"lines": args.lines, "workers": args.workers, "runs": runs}
    print(f"raw: benchmarks/results/{report.save('seeds', figures).name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
