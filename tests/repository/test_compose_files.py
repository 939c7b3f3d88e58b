"""Compose files are read by Compose's own library, as `docker compose config` reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.required import required
from tools.compose import config
from tools.install import Missing

ROOT = Path(__file__).parents[2]
MAIN = ROOT / "compose.yaml"
MORE = [path for path in sorted((ROOT / "examples").rglob("*.yaml")) if re.search(r"(?m)^services:", path.read_text())]
CASES = [pytest.param([MAIN], id="compose")]
CASES += [pytest.param([MAIN, path], id=path.stem) for path in MORE]


@pytest.mark.parametrize("files", CASES)
def test_compose_reads_the_file(files: list[Path]) -> None:
    with required(Missing):
        project = config(files)
    services = project["services"]
    assert {"scheduler", "downloader", "parser", "storage"} <= services.keys()
    for name, service in services.items():
        replicas = service.get("deploy", {}).get("replicas")
        assert replicas in (None, service.get("scale")), f"{name}: two numbers of replicas"
        assert set(service.get("depends_on", {})) <= services.keys(), name
        assert set(service.get("networks", {})) <= project["networks"].keys(), name


def test_a_mistake_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "compose.yaml"
    path.write_text("services: {a: {imgae: b}}\n")
    with required(Missing), pytest.raises(ValueError, match="imgae"):
        config([path])
