"""How fetches ended, counted on from where the last call stopped."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import Outcome
from nephila_control import fetch_counts
from nephila_control.fetch_counts import BINS, FetchCounts, _Counts

from tests.storage.storage_rig import JOB, record, running


async def fill(directory, numbers, **fields):
    """Rows in a directory."""
    async with running(directory) as rig:
        for number in numbers:
            rig.send(record(number, url=f"http://a.test/{number}", **fields))
        await rig.storage.flush()


def numbers_of(found):
    """Outcome and reason → fetches."""
    return {(one.outcome, one.reason): one.fetches for one in found.counts}


async def test_each_fetch_is_counted_once_over_several_calls(tmp_path, monkeypatch):
    """An answer about a part of the table says so."""
    monkeypatch.setattr(fetch_counts, "READ", 4)
    counts = FetchCounts(tmp_path)
    assert counts.read(None).complete
    await fill(tmp_path, range(6))
    first = counts.read(None)
    assert (first.complete, numbers_of(first)) == (False, {("stored", ""): 4})
    await fill(tmp_path, range(6, 8), job="other", outcome=Outcome.FAILED, reason="http_404")
    assert counts.read(None).complete
    assert numbers_of(counts.read(None)) == {("stored", ""): 6, ("failed", "http_404"): 2}
    assert numbers_of(counts.read([JOB])) == {("stored", ""): 6}
    assert counts.read(["other"]).counts[0].words == "the server answered 404 (not found)"
    assert counts.read(["nobody"]).counts == []


@pytest.mark.parametrize("length_s", [50, 5_000, 500_000, 50_000_000])
def test_the_timeline_has_a_bounded_number_of_steps(length_s):
    """It loses no fetch when its steps grow."""
    counts = _Counts()
    for number in range(1000):
        counts.add(1_700_000_000 + length_s * number // 1000, "stored", "", 2)
    assert max(counts.bins) - min(counts.bins) < BINS
    assert sum(one["stored"] for one in counts.bins.values()) == 2000
    assert counts.step_s * BINS >= length_s
