"""Which tests `make test-quick` runs for changed files."""

from __future__ import annotations

import subprocess

import pytest

from tools.quick_tests import changed, chosen


@pytest.mark.parametrize(
    ("name", "folders"),
    [
        ("services/nephila/scheduler/jobs/scope.py", ["tests/scheduler/jobs"]),
        ("services/nephila_rules/runtime/select.py", ["tests/rules/runtime"]),
        ("services/nephila_console/screens/jobs.py", ["tests/console"]),
        ("services/nephila/native/core/src/urls.rs", ["tests/native"]),
        ("services/nephila/__init__.py", []),
        ("charts/nephila/values.yaml", ["tests/chart"]),
        ("CHANGELOG.md", ["tests/repository"]),
        ("tests/repository/test_quick_tests.py", ["tests/repository/test_quick_tests.py", "tests/repository"]),
        ("tests/repository/test_that_is_gone.py", ["tests/repository"]),
        ("tests/conftest.py", []),
    ],
)
def test_a_file_leads_to_the_deepest_folder_that_mirrors_it(name, folders):
    """A changed test file comes before its folder."""
    assert chosen([name]) == folders


def test_each_folder_runs_once():
    """The deepest first: what is nearest to the change says most."""
    names = ["CHANGELOG.md", "README.md", "services/nephila/scheduler/jobs/scope.py"]
    assert chosen(names) == ["tests/scheduler/jobs", "tests/repository"]


def test_changes_since_the_branch_left_main_count(tmp_path):
    """Committed, uncommitted and new files; not what main has got since."""

    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.test", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    def commit(name: str) -> None:
        (tmp_path / name).write_text("1")
        git("add", name)
        git("commit", "-m", name)

    git("init", "-b", "main")
    commit("first")
    git("checkout", "-b", "mine")
    commit("committed")
    git("checkout", "main")
    commit("of-main")
    git("checkout", "mine")
    (tmp_path / "first").write_text("2")
    (tmp_path / "new").write_text("1")
    assert changed(None, tmp_path) == ["committed", "first", "new"]
    assert changed("HEAD", tmp_path) == ["first", "new"]
