"""The hostile web in its full size: generated, served, crawled and judged from the server's log. Exit 0 when clean.

usage: python -m benchmarks.bench_judge [--delay 0.25] [--max-wait 600] [--max-depth 1000] [--pages 1500] [--hosts 24]
       [--keep DIR] [--results DIR]

Depth does not bound the traps here, so that what the crawler itself sees in them does. The pages that must be found
stand in the manifest. The verdict is written beside the other results, with the machine.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import report
from benchmarks.plainweb import listening
from tools.system import free_port

ROOT = Path(__file__).parents[1]


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_judge", description="Crawl the hostile web and judge it.")
    parser.add_argument("--delay", default="0.25")
    parser.add_argument("--max-wait", default="600", help="seconds a host may make the crawl wait at its end")
    parser.add_argument("--max-depth", default="1000")
    parser.add_argument("--pages", default="1500")
    parser.add_argument("--hosts", default="24")
    parser.add_argument("--keep", type=Path, help="work here and leave everything")
    parser.add_argument("--results", type=Path, default=report.RESULTS)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        return run(args, args.keep or Path(temporary))


def run(args: argparse.Namespace, folder: Path) -> int:
    """Everything in *folder*; returns the judge's exit code."""
    web, log, out = folder / "web", folder / "log", folder / "out"
    shape = ["--pages", args.pages, "--hosts", args.hosts, "--max-depth", args.max_depth]
    port = free_port()
    module("benchmarks.web.generate", str(web), *shape, "--port", str(port), check=True)
    took_s = crawl(args, web, log, out, port)
    judging = ["--log", str(log), "--manifest", str(web), "--db", str(out), "--delay", args.delay]
    verdict = module("benchmarks.web.judge", *judging, capture_output=True)
    text = head(args, took_s) + verdict.stdout + verdict.stderr
    args.results.mkdir(parents=True, exist_ok=True)
    path = args.results / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-judge.txt"
    path.write_text(text)
    print(f"{text}\n{path}")
    return verdict.returncode


def crawl(args: argparse.Namespace, web: Path, log: Path, out: Path, port: int) -> float:
    """Serve the web and crawl it; returns the seconds it took."""
    server = subprocess.Popen(
        _python("benchmarks.web.serve", str(web), "--port", str(port), "--log", str(log)), cwd=ROOT
    )
    try:
        while not listening(port, "127.0.1.1"):
            if server.poll() is not None:
                raise SystemExit("the bench server ended")
            time.sleep(0.05)
        words = json.loads((web / "manifest.json").read_text())["crawl"]
        pace = ["--delay", args.delay, "--max-wait", args.max_wait]
        before = time.monotonic()
        module("nephila", "crawl", *words, *pace, "--out", str(out.resolve()), "--quiet", check=True)
        return time.monotonic() - before
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(10)


def head(args: argparse.Namespace, took_s: float) -> str:
    """What was run, and where."""
    limits = f"delay {args.delay} s, max depth {args.max_depth}, max wait {args.max_wait} s"
    return f"{json.dumps(report.machine())}\n{limits}: crawled in {took_s:.0f} s\n\n"


def module(
    name: str, *words: str, check: bool = False, capture_output: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a module to its end, from the repository's root."""
    return subprocess.run(_python(name, *words), cwd=ROOT, check=check, capture_output=capture_output, text=True)


def _python(name: str, *words: str) -> list[str]:
    return [sys.executable, "-m", name, *words]


if __name__ == "__main__":
    raise SystemExit(main())
