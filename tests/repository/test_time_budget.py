"""Time by folder of tests: what is summed, and when a run is red for it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.time_budget import BUDGETS_S, OTHER, UNKNOWN_S, TimeBudget, folder_of, lines

TESTS = Path(__file__).parents[1]


def test_a_folder_above_its_budget_is_named():
    """Slowest first; a folder without a budget has a small one."""
    table, over = lines({"api": 5.0, "new": 61.0, "cli": 90.0}, {"api": 10.0, "cli": 60.0})
    assert [line.split()[0] for line in table] == ["cli", "new", "api"]
    assert over == ["cli", "new"]


def test_a_test_belongs_to_its_first_folder():
    """Files of tests/ itself are one folder."""
    assert folder_of("tests/scheduler/jobs/test_scope.py::test_a[x/y]") == "scheduler"
    assert folder_of("tests/test_it.py::test_a") == OTHER


def test_budgets_are_of_folders_that_exist():
    """A deleted folder leaves the table."""
    assert all((TESTS / folder).is_dir() for folder in BUDGETS_S)


@pytest.mark.parametrize("more_s", [-1.0, 1.0])
def test_a_run_above_a_budget_is_red(more_s):
    """All phases of a test count; tests that failed decide first."""
    plugin = TimeBudget()
    for part in (UNKNOWN_S / 2, UNKNOWN_S / 2 + more_s):
        plugin.pytest_runtest_logreport(SimpleNamespace(nodeid="tests/no-such-folder/test_a.py::test_b", duration=part))
    session = SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    plugin.pytest_sessionfinish(session)
    assert session.exitstatus == (pytest.ExitCode.OK if more_s < 0 else pytest.ExitCode.TESTS_FAILED)
    interrupted = SimpleNamespace(exitstatus=pytest.ExitCode.INTERRUPTED)
    plugin.pytest_sessionfinish(interrupted)
    assert interrupted.exitstatus == pytest.ExitCode.INTERRUPTED
