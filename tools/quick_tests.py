"""The tests of what was changed, for a minute at most (`make test-quick`).

    python -m tools.quick_tests [--base COMMIT] [--seconds 60] [--list]

Changed is what differs from the commit where this branch left main, uncommitted and new files included. A file of a
package leads to the deepest folder of tests/ that mirrors its folder; a test file to its folder; files of the
repository to tests/repository. Changed test files run first. After the given time no further test begins: this is no
substitute for `make test`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UNTIL = "NEPHILA_QUICK_UNTIL"
"""Variable with the instant (time.time) after which no test begins."""
CORE = "nephila"
ELSEWHERE = {
    "benchmarks": "benchmarks",
    "charts": "chart",
    "docker": "chart",
    "proto": "kernel",
    "rules": "parser/rules",
}
"""First folder of a file → folder of tests/; `repository` for all others."""


def changed(base: str | None, root: Path = ROOT) -> list[str]:
    """Files that differ from the base and still exist, and new ones."""
    if base is None:
        mains = [_git(root, "merge-base", "HEAD", name).strip() for name in ("origin/main", "main")]
        base = next((one for one in mains if one), "HEAD")
    names = _git(root, "diff", "--name-only", base) + _git(root, "ls-files", "--others", "--exclude-standard")
    return sorted(set(names.splitlines()))


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout


def chosen(files: Iterable[str], root: Path = ROOT) -> list[str]:
    """What pytest is given for changed files: test files, then folders, each once."""
    tests: dict[str, None] = {}
    folders: dict[str, None] = {}
    for name in files:
        parts = Path(name).parts
        if parts[0] == "tests" and parts[-1].startswith("test_") and (root / name).exists():
            tests[name] = None
        if folder := _folder(parts, root):
            folders[folder] = None
    return [*tests, *sorted(folders, key=lambda folder: (-folder.count("/"), folder))]


def _folder(parts: tuple[str, ...], root: Path) -> str | None:
    if parts[0] == "services":
        # tests/ mirrors the folders of the core, and each package beside it without its first word.
        inside = parts[2:-1] if parts[1] == CORE else (parts[1].removeprefix("nephila_"), *parts[2:-1])
    elif parts[0] == "tests":
        inside = parts[1:-1]
    else:
        inside = tuple(ELSEWHERE.get(parts[0], "repository").split("/"))
    for length in range(len(inside), 0, -1):
        if any((root / "tests").joinpath(*inside[:length]).glob("test_*.py")):
            return "/".join(("tests", *inside[:length]))
    # A file of tests/ or of the package itself belongs to all folders, so to none.
    return None


# ---- plugin of pytest, in each process


class _Count:
    failed = passed = 0


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the ends of tests."""
    _Count.failed += report.failed
    _Count.passed += report.passed and report.when == "call"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):  # type: ignore[no-untyped-def]
    """End the run after this test when the time is over."""
    result = yield
    if time.time() > float(os.environ[UNTIL]):
        item.session.shouldstop = "the time is over"
    return result


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that was ended by its time is as good as its tests."""
    if session.exitstatus == pytest.ExitCode.INTERRUPTED and time.time() > float(os.environ[UNTIL]):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if _Count.failed else pytest.ExitCode.OK


def main() -> int:
    """Run them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", help="commit to compare with (default: where this branch left main)")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", default=str((os.cpu_count() or 1) + 1))
    parser.add_argument("--list", action="store_true", help="print the folders and end")
    options = parser.parse_args()
    paths = chosen(changed(options.base))
    if options.list or not paths:
        print(*(paths or ["no file with tests was changed"]), sep="\n")
        return 0
    os.environ[UNTIL] = str(time.time() + options.seconds * 0.9)
    print(*paths)
    words = ["-n", options.workers, "-m", "not full", "-p", "tools.quick_tests", *paths]
    return int(pytest.main(words))


if __name__ == "__main__":
    raise SystemExit(main())
