"""The finer reason of a fault reaches the row, the summary and the person who waits for the first page."""

from __future__ import annotations

import json

import pytest
from nephila.kernel.messages import FetchKind
from nephila.kernel.reasons.table import Reason, row_of

from tests.scheduler.world import Answer, World


@pytest.mark.parametrize("robots", [True, False], ids=["robots.txt fails first", "the page fails"])
async def test_the_cause_of_a_tls_fault_is_in_the_row(tmp_path, robots):
    """Also where the page itself was never requested; the reason stays the coarse one."""
    world = World(tmp_path, lambda _: Answer(reason="tls", cause="tls_expired", detail="certificate: expired"), tries=2)
    await world.start()
    world.crawl("https://a.test/", robots=robots)
    world.run()
    (row,) = world.rows.values()
    assert world.outcomes() == {"https://a.test/": "failed(tls)"}
    assert json.loads(row.meta)["cause"] == "tls_expired"
    counters = world.scheduler.frontier.counters
    assert dict(counters.causes) == {"tls_expired": 1}
    assert counters.first_fault.startswith("https://a.test/")
    assert "try 1 of 2 failed (tls)" in counters.first_fault
    assert "expired" in counters.first_fault
    await world.scheduler.close()


async def test_the_first_try_that_fails_is_kept(tmp_path):
    """Long before the last one; the first fault stays."""

    def web(request):
        return Answer(body=b"") if request.kind is FetchKind.ROBOTS else Answer(reason="connect", detail="refused")

    world = await World(tmp_path, web, tries=3).start()
    world.crawl("http://a.test/", "http://b.test/")
    world.run()
    first = world.scheduler.frontier.counters.first_fault
    assert "try 1 of 3 failed (connect)" in first
    assert first.endswith("(refused)")
    assert all(not row.meta for row in world.rows.values()), "no finer reason, no metadata"
    await world.scheduler.close()


def test_every_cause_of_tls_has_a_row_with_the_reason_of_rows():
    """It retries and pauses as `tls` does, and its words name a remedy or why there is none."""
    causes = [reason for reason in Reason if reason.value.startswith("tls_")]
    assert len(causes) == 7
    for cause in causes:
        row, coarse = row_of(cause), row_of(Reason.TLS)
        assert (row.reported_as, row.retry, row.verdict) == ("tls", coarse.retry, coarse.verdict)
        assert row.unreachable
