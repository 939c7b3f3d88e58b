"""Microseconds of CPU per unit of every hot stage; stages that are not there are shown as absent.

usage: python -m benchmarks.bench_micro [--only WORDS] [--seconds 0.5]

Each stage is run in rounds of its call until *seconds* of CPU time are used; the least of five rounds counts, as the
others hold what the machine did beside.
"""

import argparse
import time
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks import report
from benchmarks.micro_stages import STAGES, Setup, Work

_ROUNDS = 5


@dataclass(frozen=True)
class Timing:
    """µs of CPU per unit: the least and the median of the rounds; *absent* has the cause when there is none."""

    least_us: float = 0.0
    median_us: float = 0.0
    absent: str = ""


def timed(work: Work, seconds: float) -> Timing:
    """Calibrate, then run the rounds."""
    work.call()
    once = max(_cpu_of(work, 1), 1e-7)
    calls = max(1, int(seconds / _ROUNDS / once))
    rounds = sorted(_cpu_of(work, calls) / calls / work.units * 1e6 for _ in range(_ROUNDS))
    return Timing(rounds[0], rounds[len(rounds) // 2])


def _cpu_of(work: Work, calls: int) -> float:
    started = time.process_time()
    for _ in range(calls):
        work.call()
    return time.process_time() - started


def measure(setup: Setup, seconds: float) -> Timing:
    """One stage; a module that is not there, or has changed its shape, makes it absent and stops nothing."""
    with ExitStack() as stack:
        try:
            return timed(setup(stack), seconds)
        except (ImportError, AttributeError, TypeError) as error:
            return Timing(absent=f"{type(error).__name__}: {error}")


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_micro", description="CPU per hot stage.")
    parser.add_argument("--only", default="", help="stages whose name holds these words")
    parser.add_argument("--seconds", type=float, default=0.5)
    args = parser.parse_args(argv)
    timings = {name: measure(setup, args.seconds) for name, setup in STAGES.items() if args.only in name}
    rows = [(n, "absent" if t.absent else t.least_us, "" if t.absent else t.median_us) for n, t in timings.items()]
    print(report.table(("stage", "µs", "median"), rows))
    for name, timing in timings.items():
        if timing.absent:
            print(f"absent: {name}: {timing.absent}")
    raw = {name: vars(timing) for name, timing in timings.items()}
    path = report.save("micro", {"versions": report.versions("nephila", "uvloop", "msgspec"), "stages": raw})
    print(f"raw: benchmarks/results/{path.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
