"""Alerts of the chart: promtool runs their unit tests, each alert has a section in the runbook and a test."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import yaml

from tests.required import required
from tools.install import Missing
from tools.prometheus import find

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "charts" / "nephila" / "alerts.yaml"
CASES = Path(__file__).with_name("alerts_test.yaml")
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    """Run promtool; the test is skipped, or fails on CI, where there is none."""
    with required(Missing):
        command = find("promtool")
    return subprocess.run([str(command), *words], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)


def test_the_rules_are_valid() -> None:
    done = promtool("check", "rules", str(ALERTS))
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_on_their_faults_and_only_then() -> None:
    done = promtool("test", "rules", str(CASES))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested_firing_and_silent() -> None:
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]
    for rule in RULES:
        expected = [bool(case["exp_alerts"]) for case in cases if case["alertname"] == rule["alert"]]
        assert set(expected) == {True, False}, rule["alert"]


def test_every_alert_has_a_section_in_the_runbook() -> None:
    for rule in RULES:
        document, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        headings = re.findall(r"^#+ (.*)$", (ROOT / document).read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
        assert anchor in anchors, rule["alert"]
