"""`nephila topics`: made once, never silently different, one line for what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.contracts.buses import config_for


def test_apply_twice_then_list(nephila, broker):
    """The second time nothing changes; the list says what is there."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    first = nephila("topics", "apply", *where, "--partitions", "4")
    assert first.code == 0, first.err
    assert f"{config.prefix}jobs: created, 1 partitions" in first.out
    assert f"{config.prefix}pages: created, 4 partitions" in first.out
    again = nephila("topics", "apply", *where, "--partitions", "4", "--json")
    assert {row["created"] for row in map(json.loads, again.out.splitlines())} == {False}
    listed = [json.loads(line) for line in nephila("topics", "list", *where, "--json").out.splitlines()]
    assert {row["topic"].removeprefix(config.prefix): row["partitions"] for row in listed}["outcomes"] == 4


def test_another_number_of_partitions_is_refused(nephila, broker):
    """Before anything is changed, with the number that is right."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    nephila("topics", "apply", *where, "--partitions", "4")
    ran = nephila("topics", "apply", *where, "--partitions", "8")
    assert ran.code == 2
    assert f"topic {config.prefix}seeds has 4 partitions, not 8" in ran.err
    assert "--partitions 4" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (("--bootstrap", "127.0.0.1:1"), "no Kafka broker answers at 127.0.0.1:1", 1),
        (("--bootstrap", "nowhere"), "bootstrap 'nowhere' is not HOST:PORT", 2),
        (("--bootstrap", ""), "is not HOST:PORT", 2),
        (("--bootstrap", "a:1", "--partitions", "48"), "a power of two up to 65536, not 48", 2),
        (("--bootstrap", "a:1", "--prefix", "ä/"), "prefix", 2),
    ],
)
def test_what_is_wrong_is_one_line(nephila, arguments, says, code):
    """Place and remedy, no traceback."""
    ran = nephila("topics", "apply", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1


def test_nothing_but_the_one_line_is_said():
    """As a program of its own: the client library's log stays out of it."""
    command = [sys.executable, "-m", "nephila", "topics", "list", "--bootstrap", "127.0.0.1:1"]
    path = os.pathsep.join(sys.path)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": path})
    assert ran.returncode == 1
    assert ran.stderr.startswith("nephila: no Kafka broker answers")
    assert ran.stderr.count("\n") == 1


def test_the_environment_names_the_broker(nephila, monkeypatch):
    """NEPHILA_BOOTSTRAP where no option is given; an unknown setting is named."""
    monkeypatch.setenv("NEPHILA_BOOTSTRAP", "127.0.0.1:2")
    assert "at 127.0.0.1:2" in nephila("topics", "list").err
    monkeypatch.setenv("NEPHILA_KAFKA__SESION_S", "1")
    assert "did you mean 'session_s'" in nephila("topics", "list").err
