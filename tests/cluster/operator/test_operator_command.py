"""`nephila service operator`: its settings, its log lines, and the ends that are one line."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SERVER = {"operator": {"server": "http://127.0.0.1:1"}, "metrics_port": 0}

LOGS = """
import logging, sys
from nephila_cluster.operator import command
async def log_at_each_level(settings, top):
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logging.getLogger("nephila_cluster.operator").log(level, "a line")
command._run = log_at_each_level
command.operator(sys.argv[-1])
"""
"""An operator that logs and ends."""


def run(folder: Path, values: dict[str, Any], *program: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and log lines of an operator that finds no Kubernetes, or of another program. It ends by itself."""
    config = folder / "operator.json"
    config.write_text(json.dumps(values))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NEPHILA_", "KUBE"))}
    environment |= {"HOME": str(folder), "KUBECONFIG": str(folder / "absent")}
    done = subprocess.run(
        [sys.executable, *(program or ("-m", "nephila", "service", "operator")), "--config", str(config)],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == ""
    return done.returncode, [json.loads(line) for line in done.stderr.splitlines()]


@pytest.mark.parametrize(("member", "named"), [("op-7", "op-7"), ("", socket.gethostname())])
def test_log_lines_name_the_member(tmp_path: Path, member: str, named: str) -> None:
    """By the settings, or by the host: the pod."""
    code, lines = run(tmp_path, {**SERVER, "member": member})
    assert code == 1
    assert {(line["service"], line["member"]) for line in lines} == {("operator", named)}
    assert lines[-1]["message"] == "there is neither a service account nor a kubeconfig"


@pytest.mark.parametrize(
    ("level", "written"),
    [("debug", ["debug", "info", "warning", "error"]), ("Warning", ["warning", "error"]), ("error", ["error"])],
)
def test_the_level_of_the_log_is_that_of_the_settings(tmp_path: Path, level: str, written: list[str]) -> None:
    """Lines below it are not written; upper case does not count."""
    code, lines = run(tmp_path, {**SERVER, "log_level": level}, "-c", LOGS)
    assert (code, [line["level"] for line in lines if line["message"] == "a line"]) == (0, written)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({**SERVER, "log_level": "loud"}, "log_level 'loud' is none of debug, info, warning, error"),
        ({"operator": {}}, "operator.server is missing"),
        ({**SERVER, "operator": {"servr": "http://a/"}}, "servr"),
    ],
)
def test_wrong_settings_are_one_line_and_exit_code_2(tmp_path: Path, values: dict[str, Any], says: str) -> None:
    """As with every other program."""
    code, lines = run(tmp_path, values)
    assert (code, [line["level"] for line in lines]) == (2, ["critical"])
    assert says in lines[0]["message"]
    assert "exception" not in lines[0]
