"""Judge a crawl of the bench web by what the server saw. Exit 0 = clean, 1 = a violation, 2 = the input cannot be
judged.

usage: python -m benchmarks.web.judge --log LOG --manifest M [--db nephila.db] [--delay 1.0] [--concurrency 1]
[--slack 0.02] [--per-address 4] [--address-gap 0.25] [--all]

The log and the manifest are all it reads; the database is read only for lost, doubled and wrong rows.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.web.checks import CHECKS, Finding
from benchmarks.web.evidence import Case, Unusable, load_log, load_manifest, load_rows

_SHOWN = 8


def judge(case: Case) -> dict[str, Finding]:
    """Every check's finding by its name."""
    return {name: check(case) for name, check in CHECKS.items()}


def table(findings: dict[str, Finding], shown: int = _SHOWN) -> str:
    """The verdict as text: a line per check, under it what was wrong."""
    lines = []
    for name, finding in findings.items():
        verdict = "skip" if finding.skipped else "FAIL" if finding.violations else "ok"
        count = f"{len(finding.violations)} of {finding.judged}" if finding.violations else str(finding.judged)
        lines.append(f"{verdict:4}  {name:34} {count:>16}  {finding.skipped or finding.note}".rstrip())
        lines += [f"        {violation}" for violation in finding.violations[:shown]]
        if len(finding.violations) > shown:
            lines.append(f"        … and {len(finding.violations) - shown} more")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.web.judge", description="Judge a crawl by the server's log.")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument("--db", type=Path)
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument(
        "--slack", type=float, default=0.02, help="seconds by which the server's clock may see a gap too short"
    )
    parser.add_argument("--per-address", type=int, default=4, help="fetches at once on one server address; 0 = no rule")
    parser.add_argument("--address-gap", type=float, default=0.25, help="seconds between two starts there; 0 = no rule")
    parser.add_argument("--all", action="store_true", help="show every violation")
    args = parser.parse_args(argv)
    try:
        requests, closed = load_log(args.log)
        rows = load_rows(args.db) if args.db else None
        case = Case(
            load_manifest(args.manifest),
            requests,
            closed,
            rows,
            args.delay,
            args.concurrency,
            args.slack,
            args.per_address,
            args.address_gap,
        )
    except Unusable as error:
        print(f"cannot judge: {error}", file=sys.stderr)
        return 2
    findings = judge(case)
    print(table(findings, sys.maxsize if args.all else _SHOWN))
    broken = [name for name, finding in findings.items() if finding.violations]
    print(
        f"\n{len(case.requests)} requests on {len(case.by_host)} hosts: "
        + (f"{len(broken)} rules broken" if broken else "clean")
    )
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
