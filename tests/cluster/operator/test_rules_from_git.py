"""Rules from a git repository in a volume that changes as under git-sync 4: a worktree for each commit below
ROOT/.worktrees, and a symbolic link that is replaced by a rename."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.runtime.clock import ManualClock
from nephila_cluster.operator.config import OperatorConfig
from nephila_cluster.operator.ownership import Ownership
from nephila_cluster.operator.rule_files import CHECK_S, RuleFiles

from tests.cluster.operator.rule_resources import Resources

VALUES = Path(__file__).parents[3] / "charts" / "nephila" / "values.yaml"
RULE = """\
apiVersion: nephila.dev/v1
kind: ParseRule
metadata: {{name: shop}}
spec:
  match: {{url: '^https://a'}}
  fields: {{title: {css}}}
"""


def git(folder: Path, *words: str) -> str:
    """One git command without the settings of the user."""
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.test", "-c", "commit.gpgsign=false", *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


class Repository:
    """The repository of the rules, and the volume of the pod."""

    def __init__(self, folder: Path) -> None:
        self.work, self.root = folder / "work", folder / "volume"
        for one in (self.work, self.root):
            one.mkdir()
        git(self.work, "init", "-q", "-b", "main")
        git(self.root, "init", "-q")

    def commit(self, css: str, text: str = "", *, amend: bool = False) -> str:
        """A commit of one rule; its hash. `text`: the file instead."""
        (self.work / "rules" / "shop").mkdir(parents=True, exist_ok=True)
        (self.work / "rules" / "shop" / "rule.yaml").write_text(text or RULE.format(css=css))
        git(self.work, "add", "-A")
        git(self.work, "commit", "-q", "-m", "rule", *(["--amend"] if amend else []))
        return git(self.work, "rev-parse", "HEAD")

    def sync(self) -> None:
        """One round of git-sync."""
        git(self.root, "fetch", "-q", "--depth", "1", "--force", str(self.work), "main")
        commit = git(self.root, "rev-parse", "FETCH_HEAD")
        tree, link = self.root / ".worktrees" / commit, self.root / "current"
        if link.exists() and link.resolve() == tree.resolve():
            return
        git(self.root, "worktree", "add", "-q", "--force", "--detach", str(tree), commit)
        old = link.resolve() if link.exists() else None
        new = self.root / "tmp-link"
        new.symlink_to(Path(".worktrees") / commit)
        new.replace(link)
        if old is not None:
            shutil.rmtree(old)
            git(self.root, "worktree", "prune")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_a_commit_becomes_the_rule_and_a_bad_one_only_its_error(tmp_path: Path) -> None:
    """Good, bad, repaired, and a rewritten history; each is in effect at the check after the round of git-sync."""
    repository, resources = Repository(tmp_path), Resources()
    folder = repository.root / "current" / "rules"
    files = RuleFiles((folder,), resources, ManualClock(), OperatorConfig(), Ownership(), pod="operator-0")
    await files.check()
    assert resources.objects == {}
    repository.commit("h1")
    repository.sync()
    await files.check()
    assert (resources.title("shop"), resources.error("shop")) == ("h1", "")
    repository.commit("", "apiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {name: shop}\nspec:\n  feelds: {}\n")
    repository.sync()
    await files.check()
    assert resources.title("shop") == "h1"
    assert "shop/rule.yaml:5" in resources.error("shop")
    repository.commit("h2")
    repository.sync()
    await files.check()
    assert (resources.title("shop"), resources.error("shop")) == ("h2", "")
    repository.commit("h3", amend=True)
    repository.sync()
    await files.check()
    assert (resources.title("shop"), files.refused) == ("h3", {})


def test_a_commit_is_live_within_half_a_minute() -> None:
    """By the period of git-sync in the chart and that of the operator."""
    period = yaml.safe_load(VALUES.read_text())["rules"]["git"]["period"]
    assert seconds(period) + CHECK_S <= 30
