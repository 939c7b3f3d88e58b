"""A rule as a commit: its files alone, the same files no second time, nothing through a link."""

from __future__ import annotations

import subprocess

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila_rules.working_copy import commit, is_working_copy

FILES = [("rule.yaml", "kind: ParseRule\n"), ("page.html", "<p>x\n")]


def git(directory, *words: str) -> str:
    """A command."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@a.test")
    return subprocess.run(
        ["git", *identity, "-C", str(directory), *words], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def copy(tmp_path):
    """A working copy with a change of somebody else in its index."""
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "config", "user.name", "A")
    git(tmp_path, "config", "user.email", "a@a.test")
    (tmp_path / "rules").mkdir()
    (tmp_path / "other").write_text("x")
    git(tmp_path, "add", "other")
    return tmp_path / "rules"


def test_the_files_of_the_rule_are_committed_and_no_others(copy):
    """With the message, whatever is staged beside them."""
    made = commit(copy, "shop/../x y", FILES, "A rule")
    assert made.folder == "shop-..-x-y"
    assert git(copy, "log", "-1", "--format=%H %s", "--name-only").split() == [
        made.id, "A", "rule", "rules/shop-..-x-y/page.html", "rules/shop-..-x-y/rule.yaml",
    ]  # fmt: skip
    assert git(copy, "status", "--porcelain").split() == ["A", "other"] or "A  ../other" in git(copy, "status", "-s")


def test_the_same_files_are_no_second_commit(copy):
    """A changed one is."""
    first = commit(copy, "shop", FILES, "A rule")
    assert commit(copy, "shop", FILES, "again").id == ""
    changed = commit(copy, "shop", [("rule.yaml", "kind: Other\n"), FILES[1]], "-m hostile")
    assert changed.id not in ("", first.id)
    assert git(copy, "log", "-1", "--format=%s").strip() == "-m hostile"


def test_a_link_and_a_directory_without_git_are_refused(copy, tmp_path_factory):
    """Nothing is written."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (copy / "shop").symlink_to(elsewhere)
    with pytest.raises(UserError, match="is a link"):
        commit(copy, "shop", FILES, "A rule")
    assert not is_working_copy(elsewhere)
    with pytest.raises(UserError, match="no working copy"):
        commit(elsewhere, "shop", FILES, "A rule")
    assert list(elsewhere.iterdir()) == []
