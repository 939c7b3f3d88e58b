"""`helm upgrade --reuse-values` renders a newer chart with the values of an older one: one line says so."""

from __future__ import annotations

import copy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.test_chart import CHART, OPERATORS, helm, template

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
NEWEST = ("browser", "api.ingress", "api.httpRoute", "monitoring.serviceMonitor")


def sections(value: dict[str, Any], path: str = "") -> list[str]:
    """Paths of all sections of the values, which a template reads from."""
    below = {f"{path}{key}": item for key, item in value.items() if isinstance(item, dict) and item}
    return [one for name, item in below.items() for one in (name, *sections(item, f"{name}."))]


def without(path: str, values: dict[str, Any]) -> dict[str, Any]:
    older = copy.deepcopy(values)
    *folders, last = path.split(".")
    here = older
    for name in folders:
        here = here[name]
    del here[last]
    return older


def reused(folder: Path, values: dict[str, Any]) -> str:
    """The error of this chart with these values and none of its own."""
    chart = folder / "nephila"
    shutil.copytree(CHART, chart, dirs_exist_ok=True)
    (chart / "values.yaml").write_text(yaml.safe_dump(values))
    command = [helm(), "template", "web", str(chart), *OPERATORS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    return done.stderr


def test_values_without_the_newest_keys_are_refused_by_name(tmp_path: Path) -> None:
    older = VALUES
    for path in NEWEST:
        older = without(path, older)
    error = reused(tmp_path, older)
    assert "the value browser.enabled is missing: these values are of an older chart" in error
    assert "--reset-then-reuse-values" in error
    assert "nil pointer" not in error


@pytest.mark.parametrize(
    "path", [*NEWEST, "kafka.external.tls", "rules", "networkPolicy.bucket", "crawler.drainSeconds"]
)
def test_a_missing_key_is_named_whatever_template_reads_it(tmp_path: Path, path: str) -> None:
    error = reused(tmp_path, without(path, VALUES))
    assert f"the value {path}" in error
    assert "nil pointer" not in error


def test_the_list_has_each_section_of_the_values() -> None:
    lines = (CHART / "files" / "values.txt").read_text().split()
    known = {".".join(line.split(".")[: n + 1]) for line in lines for n in range(line.count(".") + 1)}
    ends = ("requests", "limits", "seccompProfile")
    assert {path for path in sections(VALUES) if not any(end in path.split(".") for end in ends)} <= known


def test_parts_of_resources_may_be_taken_away() -> None:
    done = template("--set-json", 'downloader.resources={"limits": null}')
    assert done.returncode == 0, done.stderr
