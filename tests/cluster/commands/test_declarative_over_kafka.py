"""Jobs and rules of a folder, as a commit holds them, published to the topics: once, changed, pruned."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from nephila_cluster.kafka.admin import topics as admin

from tests.contracts.buses import config_for

ROOT = Path(__file__).parents[3]
JOB = """apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {{name: {name}}}
spec: {{seeds: ["https://{name}.test/"], schedule: "{schedule}"}}
"""


@pytest.fixture
def settings(broker, tmp_path):
    """The settings file of the services of an empty system."""
    config = config_for(broker)
    asyncio.run(admin.apply(config))
    path = tmp_path / "system.yaml"
    path.write_text(f"bootstrap: {config.bootstrap}\npartitions: 4\nkafka: {{prefix: {config.prefix}}}\n")
    return str(path)


def test_recurring_jobs_of_a_folder(nephila, settings, tmp_path):
    """A repeated apply changes nothing, a changed schedule is a new generation, --prune deletes what has no file."""
    folder = tmp_path / "jobs"
    (folder / "daily").mkdir(parents=True)
    (folder / "daily" / "news.yaml").write_text(JOB.format(name="news", schedule="0 6 * * *"))
    (folder / "shop.yml").write_text(JOB.format(name="shop", schedule="0 4 * * 1"))
    (folder / "README.md").write_text("No job.")
    apply = ("jobs", "apply", "-f", str(folder), "--bootstrap", settings)
    first = nephila(*apply)
    assert first.code == 0, first.err
    assert [line.partition(" (")[0] for line in first.out.splitlines()] == ["news: created", "shop: created"]
    again = [line.replace("created", "unchanged") for line in first.out.splitlines()]
    assert nephila(*apply).out.splitlines() == again
    (folder / "shop.yml").write_text(JOB.format(name="shop", schedule="0 5 * * 1"))
    news, shop = nephila(*apply).out.splitlines()
    assert (news, shop.partition(" (")[0]) == (again[0], "shop: changed")
    document = json.loads(nephila("jobs", "get", "shop", "--bootstrap", settings).out)["document"]
    assert document["spec"]["schedule"] == "0 5 * * 1"
    (folder / "shop.yml").unlink()
    nephila(*apply)
    assert jobs_of(nephila, settings) == ["news", "shop"]
    assert nephila(*apply, "--prune").out.splitlines() == [again[0], "shop: deleted (generation 4)"]
    assert jobs_of(nephila, settings) == ["news"]
    (folder / "daily" / "news.yaml").write_text("kind: CrawlJob\n")
    assert nephila(*apply, "--prune").code == 2
    assert jobs_of(nephila, settings) == ["news"]


def jobs_of(nephila, settings):
    """Names of the jobs of a system."""
    return [one["name"] for one in json.loads(nephila("jobs", "list", "--bootstrap", settings, "--json").out)]


def test_rules_of_a_folder_replace_all_others(nephila, settings, tmp_path):
    """With --prune a rule whose file is gone is deleted; without, it stays. A wrong rule changes nothing."""
    folder = tmp_path / "rules"
    for name in ("news", "shop"):
        shutil.copytree(ROOT / "rules" / name, folder / name)
    deploy = ("rules", "deploy", str(folder), "--bootstrap", settings)
    first = nephila(*deploy)
    assert first.code == 0, first.err
    before = set(nephila("rules", "list", "--bootstrap", settings).out.splitlines())
    shutil.rmtree(folder / "shop")
    nephila(*deploy)
    assert set(nephila("rules", "list", "--bootstrap", settings).out.splitlines()) == before
    pruned = nephila(*deploy, "--prune").out.splitlines()
    assert [line.partition(":")[0] for line in pruned if ": deleted" in line]
    after = set(nephila("rules", "list", "--bootstrap", settings).out.splitlines())
    assert after < before
    (folder / "news" / "rule.yaml").write_text("kind: ParseRule\n")
    refused = nephila(*deploy, "--prune")
    assert refused.code != 0
    assert set(nephila("rules", "list", "--bootstrap", settings).out.splitlines()) == after


def test_a_folder_without_jobs_is_one_line(nephila, tmp_path):
    """It names what was looked for."""
    ran = nephila("jobs", "apply", "-f", str(tmp_path), "--bootstrap", "127.0.0.1:1")
    assert (ran.code, ran.out) == (2, "")
    assert "has no file *.yaml, *.yml, *.json" in ran.err
