"""Files for the public host: they can be read, and name what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tools.helm import HELM
from tools.images import IMAGES

ROOT = Path(__file__).parents[2]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def test_the_workflow_runs_what_runs_elsewhere():
    """One script, with the history that tests of changes need, and no right to write."""
    file = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    (job,) = file["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert job["steps"][0]["with"]["fetch-depth"] == 0
    assert file["permissions"] == {"contents": "read"}


def test_a_release_has_signed_images_for_two_architectures():
    """Only the jobs that push may write, and nothing is emulated."""
    file = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    assert file[True] == {"push": {"tags": ["v*.*.*"]}}  # `on` is a word for true in YAML 1.1
    assert file["permissions"] == {"contents": "read"}
    machines = {one["arch"]: one["runner"] for one in file["jobs"]["images"]["strategy"]["matrix"]["include"]}
    assert machines == {"amd64": "ubuntu-24.04", "arm64": "ubuntu-24.04-arm"}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    runs = " ".join(step.get("run", "") for job in file["jobs"].values() for step in job["steps"])
    assert set(re.findall(r"make ([a-z-]+)", runs)) <= targets
    assert {"cosign sign", "cosign attest"} <= set(re.findall(r"cosign \w+", runs))


def test_a_release_signs_what_it_has_pushed():
    """Images by the names under which they were pushed, with the bill of the pushed ones, and both charts."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    pushed, signed, charts = (
        "\n".join(step.get("run", "") for step in jobs[name]["steps"]) for name in ("images", "sign", "charts")
    )
    assert "--repository $REGISTRY/nephila --tag" in pushed
    (names,) = re.findall(r"for name in (.*); do", signed)
    assert set(names.split()) == {*IMAGES, "browser"}
    assert "image=$REGISTRY/nephila-$name" in signed
    assert "image=$REGISTRY/nephila-$(basename" in signed
    assert "--images --repository $REGISTRY/nephila" in signed
    (setup,) = [step["with"] for step in jobs["charts"]["steps"] if "setup-helm" in step.get("uses", "")]
    assert setup == {"version": HELM.version}
    assert {"make chart-packages", "helm push", "cosign sign"} <= set(
        re.findall(r"make chart-packages|helm push|cosign sign", charts)
    )


def test_a_release_has_wheels_for_each_system():
    """Built on machines of their own, tested without Rust at run time; only the jobs that push may write."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    assert jobs["wheels"]["strategy"]["matrix"]["runner"] == [
        *("ubuntu-24.04", "ubuntu-24.04-arm", "macos-15", "windows-2025"),
    ]
    (build,) = [step for step in jobs["wheels"]["steps"] if "cibuildwheel" in step.get("uses", "")]
    assert build["env"]["CIBW_CONFIG_SETTINGS"] == "--build-option=--py-limited-api=cp311"
    assert "permissions" not in jobs["wheels"]


@pytest.mark.parametrize("path", [path for path in FORMS if path.stem != "config"], ids=lambda path: path.stem)
def test_forms_have_what_the_host_requires(path):
    """Name, description, and a label for each field, whose id is unique."""
    form = yaml.safe_load(path.read_text())
    assert form["name"]
    assert form["description"]
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    assert all(field["attributes"]["label"] for field in form["body"])


def test_hooks_call_programs_of_the_environment():
    """So their versions are those of `make check`; nothing is downloaded."""
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repo["repo"] == "local"
    assert {hook["language"] for hook in repo["hooks"]} == {"system"}
    assert all(hook["entry"].startswith((".venv/bin/", "make ")) for hook in repo["hooks"])
