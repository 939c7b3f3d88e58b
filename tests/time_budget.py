"""How long the tests of each folder take, and how long they may.

Seconds are those of set-up, test and tear-down, summed over the processes of a run. With NEPHILA_TIME_BUDGET=1, as on
CI, a run of `make test` ends with a table, and a folder above its budget makes the run red. A budget is three
times what the folder took on two cores at load 8 to 17 (2026-11-23), since seconds on a shared machine vary as much;
60 s at least. It is raised in the commit that adds the slow test, with the reason.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping

import pytest

BUDGETS_S: Mapping[str, float] = {
    "adversary": 100,
    "api": 60,
    "benchmarks": 60,
    "browser": 300,
    "chaos": 60,
    "chart": 600,
    "cli": 250,
    "cluster": 900,
    "conformance": 100,
    "contracts": 300,
    "console": 260,
    "control": 300,
    "doors": 170,
    "downloader": 450,
    "e2e": 550,
    "formats": 60,
    "harvest": 150,
    "kernel": 300,
    "native": 250,
    "parser": 1000,
    "programs": 100,
    "repository": 300,
    "rules": 400,
    "scheduler": 1200,
    "storage": 300,
    "stores": 150,
    "tools": 150,
}
OTHER = "tests"
"""Folder of test files that stand in no folder."""
UNKNOWN_S = 60.0
"""Budget of a folder that the table does not have."""


def folder_of(nodeid: str) -> str:
    """First folder below tests/."""
    parts = nodeid.split("::", 1)[0].split("/")
    return parts[1] if len(parts) > 2 else OTHER


def lines(spent_s: Mapping[str, float], budgets_s: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """(the table, slowest folder first; the folders above their budgets)."""
    table, over = [], []
    for folder, seconds in sorted(spent_s.items(), key=lambda one: -one[1]):
        budget = budgets_s.get(folder, UNKNOWN_S)
        table.append(f"{folder:<14} {seconds:7.1f} s of {budget:5.0f} s{'' if seconds <= budget else '  ABOVE'}")
        if seconds > budget:
            over.append(folder)
    return table, over


class TimeBudget:
    """Plugin of the process that gathers the results."""

    def __init__(self) -> None:
        self.spent_s: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of a test."""
        self.spent_s[folder_of(report.nodeid)] += report.duration

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A folder above its budget fails a run that would have passed."""
        if session.exitstatus == pytest.ExitCode.OK and lines(self.spent_s, BUDGETS_S)[1]:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table."""
        table, over = lines(self.spent_s, BUDGETS_S)
        terminalreporter.section("time by folder (tests/time_budget.py)")
        for line in table:
            terminalreporter.write_line(line)
        if over:
            terminalreporter.write_line(f"above the budget: {', '.join(over)}", red=True)


def register(config: pytest.Config) -> None:
    """Watch a run that asks for it, in the process that has all results, but no repetition of single tests."""
    if os.environ.get("NEPHILA_TIME_BUDGET") and not hasattr(config, "workerinput") and not config.option.lf:
        config.pluginmanager.register(TimeBudget(), "time-budget")
