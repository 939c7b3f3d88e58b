"""Pruning of rules whose file is gone: only while every folder of rules exists."""

from __future__ import annotations

from typing import Any

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila_cluster.operator.config import OperatorConfig
from nephila_cluster.operator.ownership import Ownership
from nephila_cluster.operator.rule_files import FILE, RuleFiles


class Resources:
    """The ParseRules of a namespace: one, from a file."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def rules(self) -> list[dict[str, Any]]:
        """See `RuleResources`."""
        return [{"metadata": {"name": "shop", "annotations": {FILE: "shop/rule.yaml"}}}]

    async def delete_rule(self, name: str) -> None:
        """See `RuleResources`."""
        self.deleted.append(name)


@pytest.mark.parametrize(("exists", "deleted"), [(False, []), (True, ["shop"])])
async def test_an_absent_folder_prunes_nothing(tmp_path, exists, deleted):
    """A repository that is not synchronised yet looks like one without rules."""
    folder = tmp_path / "current"
    if exists:
        folder.mkdir()
    resources = Resources()
    files = RuleFiles(
        [folder], resources, ManualClock(), OperatorConfig(prune_rules=True), Ownership(), pod="operator-0"
    )
    await files.check()
    assert resources.deleted == deleted
    folder.mkdir(exist_ok=True)
    await files.check()
    assert resources.deleted == ["shop"]
