"""Alerts of the chart: valid rules with a section of the runbook each, by its address on the site."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import yaml

from tests.required import required
from tools.install import Missing
from tools.prometheus import find
from tools.site import LATEST, place_of

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "nephila"
ALERTS = CHART / "alerts.yaml"
RUNBOOK = "docs/operations.md"
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    """Run promtool; the test is skipped, or fails on CI, where there is none."""
    with required(Missing):
        command = find("promtool")
    return subprocess.run([str(command), *words], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)


def test_the_rules_are_valid() -> None:
    done = promtool("check", "rules", str(ALERTS))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_links_a_section_of_the_runbook() -> None:
    """By an absolute address: an alert is read in a chat, far from the repository."""
    home = yaml.safe_load((CHART / "Chart.yaml").read_text())["home"]
    page = f"{home}/{LATEST}/{place_of(RUNBOOK).removesuffix('.md')}/"
    headings = re.findall(r"^#+ (.*)$", (ROOT / RUNBOOK).read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    for rule in RULES:
        address, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert address == page, rule["alert"]
        assert anchor in anchors, rule["alert"]
