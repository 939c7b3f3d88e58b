"""Files of rules: which file owns a rule, and which answers of the API server concern the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import NotReadyError, UserError
from nephila_cluster.operator.cluster import ResourceRefused
from nephila_cluster.operator.config import OperatorConfig
from nephila_cluster.operator.ownership import LABEL, Ownership
from nephila_cluster.operator.reconcile_rule import FILE_ERROR
from nephila_cluster.operator.rule_files import RuleFiles

from tests.cluster.operator.rule_resources import Resources


def write(path: Path, *names: str, title: str = "h1") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "---\n".join(
            f"apiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {{name: {name}}}\n"
            f"spec:\n  match: {{url: '^https://a'}}\n  fields: {{title: {title}}}\n"
            for name in names
        )
    )


def rule_files(
    resources: Resources, *folders: Path, prune: bool = False, clock: ManualClock | None = None, release: str = ""
) -> RuleFiles:
    config, ownership = OperatorConfig(prune_rules=prune), Ownership(release)
    return RuleFiles(folders, resources, clock or ManualClock(), config, ownership, pod="operator-0")


async def test_a_rule_in_two_folders_belongs_to_the_first_and_the_other_file_is_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "configmap", tmp_path / "git"
    write(first / "shop.yaml", "shop", title="h1")
    write(second / "shop" / "rule.yaml", "shop", title="h2")
    write(second / "news" / "rule.yaml", "news")
    resources = Resources()
    files = rule_files(resources, first, second)
    await files.check()
    assert resources.title("shop") == "h1"
    assert sorted(resources.objects) == ["news", "shop"]
    (message,) = files.refused.values()
    assert list(files.refused) == [f"{second}/shop/rule.yaml"]
    assert message == f"{second}/shop/rule.yaml:1:1: the rule 'shop' comes twice, first in {first}/shop.yaml"
    assert resources.events == [message]


async def test_files_of_one_name_in_two_folders_are_different_files(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    write(first / "rule.yaml", "one")
    write(second / "rule.yaml", "two")
    resources = Resources()
    files = rule_files(resources, first, second)
    await files.check()
    (second / "rule.yaml").write_text("kind: ParseRool\n")
    await files.check()
    assert FILE_ERROR not in resources.objects["one"]["metadata"]["annotations"]
    assert FILE_ERROR in resources.objects["two"]["metadata"]["annotations"]


async def test_a_rule_stays_with_its_file_while_that_file_is_refused_or_another_comes_first(tmp_path: Path) -> None:
    write(tmp_path / "shop" / "rule.yaml", "shop", title="h1")
    resources = Resources()
    files = rule_files(resources, tmp_path)
    await files.check()
    write(tmp_path / "a" / "rule.yaml", "shop", title="h2")
    await files.check()
    assert list(files.refused) == ["a/rule.yaml"]
    (tmp_path / "shop" / "rule.yaml").write_text("kind: ParseRool\n")
    await files.check()
    assert sorted(files.refused) == ["a/rule.yaml", "shop/rule.yaml"]
    assert (resources.title("shop"), resources.owner("shop")) == ("h1", "shop/rule.yaml")
    (tmp_path / "shop" / "rule.yaml").unlink()
    await files.check()
    assert files.refused == {}
    assert (resources.title("shop"), resources.owner("shop")) == ("h2", "a/rule.yaml")


async def test_a_rule_that_is_deleted_or_edited_by_hand_is_soon_that_of_its_file_again(tmp_path: Path) -> None:
    write(tmp_path / "rule.yaml", "shop", title="h1")
    resources, clock = Resources(), ManualClock()
    files = rule_files(resources, tmp_path, clock=clock)
    await files.check()
    await files.check()
    for _ in range(2):
        resources.edit("shop", {**resources.objects["shop"]["spec"], "fields": {"title": {"css": "h9"}}})
        await files.check()
        assert resources.title("shop") == "h9"
        clock.advance(30.0)
        await files.check()
        assert resources.title("shop") == "h1"
        await files.check()
    del resources.objects["shop"]
    clock.advance(30.0)
    await files.check()
    assert resources.title("shop") == "h1"


async def test_a_rule_that_nobody_changed_is_not_written_again(tmp_path: Path) -> None:
    write(tmp_path / "rule.yaml", "shop")
    resources, clock = Resources(), ManualClock()
    files = rule_files(resources, tmp_path, clock=clock)
    for _ in range(3):
        await files.check()
    resources.fault = ResourceRefused("written")
    clock.advance(30.0)
    await files.check()
    assert files.refused == {}


async def test_a_rule_of_another_release_is_neither_taken_nor_pruned(tmp_path: Path) -> None:
    write(tmp_path / "rule.yaml", "shop")
    resources, clock = Resources(), ManualClock()
    one = rule_files(resources, tmp_path, release="one")
    await one.check()
    assert resources.objects["shop"]["metadata"]["labels"] == {LABEL: "one"}
    two = rule_files(resources, tmp_path, clock=clock, release="two", prune=True)
    await two.check()
    assert two.refused == {"rule.yaml": "rule.yaml:1:1: the rule 'shop' belongs to another release"}
    (tmp_path / "rule.yaml").unlink()
    await two.check()
    assert "shop" in resources.objects


async def test_a_rule_twice_in_one_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "rule.yaml", "shop", "shop")
    resources = Resources()
    files = rule_files(resources, tmp_path)
    await files.check()
    assert resources.objects == {}
    assert "'shop'" in files.refused["rule.yaml"]


@pytest.mark.parametrize("fault", [ResourceRefused("the spec is too large"), NotReadyError("it refuses connections")])
async def test_only_a_refusal_of_the_api_server_concerns_the_file(tmp_path: Path, fault: UserError) -> None:
    write(tmp_path / "rule.yaml", "shop")
    resources = Resources()
    resources.fault = fault
    files = rule_files(resources, tmp_path)
    await files.check()
    refused = isinstance(fault, ResourceRefused)
    assert files.refused == ({"rule.yaml": f"rule.yaml:1:1: {fault}"} if refused else {})
    resources.fault = None
    await files.check()
    assert sorted(resources.objects) == ([] if refused else ["shop"])
