"""`nephila what-if` and its operation over rows that storage wrote."""

from __future__ import annotations

import hashlib
import json

import pytest
from nephila_control import what_if
from nephila_control.audit_types import CompareFrequencies

from tests.command_fixtures import Run
from tests.storage.storage_rig import record, running

DAY = 86_400.0
START = 1_800_000_000.0


@pytest.fixture
async def place(database_url, tmp_path):
    """Ten pages, fetched daily for twenty days; each has changed at every fourth fetch. One was fetched once."""
    async with running(tmp_path / "crawl", store=database_url) as rig:
        for day in range(21):
            rows = []
            for number in range(10):
                text = b"version %d" % (day // 4)
                at = START + day * DAY + number
                rows.append(record(number, day + 1, text=text, sha256=hashlib.sha256(text).digest(), fetched_at=at))
            rig.send(*rows)
            await rig.storage.flush()
        rig.send(record(11))
        await rig.storage.flush()
    return database_url or str(tmp_path / "crawl")


def test_shorter_intervals_find_more_in_time(nephila: Run, place):
    """At four times the requests."""
    found = json.loads(nephila("what-if", "6h", "1d", "1d@5", "--out", place, "--json").out)
    recorded, quarter, day, bound = found["outcomes"]
    assert (found["pages"], found["of"]) == (10, 10)
    assert found["days"] == pytest.approx(20, abs=0.01)
    assert recorded["requests"] == 200
    assert 40 <= recorded["changes"] <= 50  # the newest ones may be too young to be judged
    assert day["requests"] == pytest.approx(200, rel=0.05)
    assert quarter["requests"] == pytest.approx(800, rel=0.05)
    assert quarter["within"]["estimate"] == 1.0
    assert recorded["within"]["estimate"] < 0.8
    assert bound["requests"] == pytest.approx(97, abs=4)
    shown = nephila("what-if", "6h", "--out", place, "--within", "6h").out.splitlines()
    assert shown[0].split()[:2] == ["scenario", "requests"]
    assert shown[1].startswith("recorded")
    assert shown[2].startswith("6h")


def test_errors_are_one_line(nephila: Run, place):
    """No scenario, no such job, no time."""
    assert "is no scenario" in nephila("what-if", "often", "--out", place).err
    assert "nothing to replay" in nephila("what-if", "6h", "--out", place, "--job", "another").err
    assert nephila("what-if", "6h", "--out", place, "--within", "soon").code == 2


async def test_the_operation_has_the_same(tmp_path):
    """With the interval of the share."""
    async with running(tmp_path) as rig:
        for day in range(5):
            text = b"version %d" % day
            sha256 = hashlib.sha256(text).digest()
            rig.send(record(1, day + 1, text=text, sha256=sha256, fetched_at=START + day * DAY))
            await rig.storage.flush()
    found = what_if.compared(tmp_path, CompareFrequencies(scenarios=["6h"]))
    assert [one.name for one in found.outcomes] == ["recorded", "6h"]
    assert found.outcomes[1].found_in_time is not None
    assert found.outcomes[1].found_in_time.estimate == 1.0
