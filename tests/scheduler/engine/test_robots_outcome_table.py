"""What an outcome of robots.txt does: a table over outcomes and tries, with the URLs and the pace of the host."""

from __future__ import annotations

from typing import Any

import pytest
from nephila.kernel.messages import FetchKind, FetchRequest, FetchResult, Politeness, Scope
from nephila.scheduler.politeness.robots import origin_of

from tests.scheduler.engine.outcome_rig import OutcomeRig

URL = "http://a.test/0"
FAILED = FetchResult.FAILED
AGAIN = "asked again, try {}"
UNDIALLED = {"started_at": 0.0}
TABLE: dict[str, tuple[dict[str, Any], str, str, float]] = {
    "rules": (
        {"result": FetchResult.FETCHED, "status": 200, "body": b"User-agent: *\nDisallow: /x"},
        "rules",
        "rules",
        1.0,
    ),
    "crawl delay": (
        {"result": FetchResult.FETCHED, "status": 200, "body": b"User-agent: *\nCrawl-delay: 8"},
        "rules",
        "rules",
        8.0,
    ),
    "404": ({"result": FAILED, "reason": "http_404", "status": 404}, "allow", "allow", 1.0),
    "redirect": ({"result": FetchResult.REDIRECT, "status": 301}, "allow", "allow", 1.0),
    "500": ({"result": FAILED, "reason": "http_500", "status": 500}, AGAIN.format(2), "disallow", 2.0),
    "503": ({"result": FAILED, "reason": "http_503", "status": 503}, AGAIN.format(2), "disallow", 60.0),
    "429": ({"result": FAILED, "reason": "http_429", "status": 429}, AGAIN.format(2), "disallow", 60.0),
    "timeout": ({"result": FAILED, "reason": "timeout"}, AGAIN.format(2), "disallow", 60.0),
    "dns": ({"result": FAILED, "reason": "dns"}, AGAIN.format(2), "failed", 2.0),
    "too large": ({"result": FAILED, "reason": "too_large", "status": 200}, "disallow", "disallow", 1.0),
    "denied": ({"result": FetchResult.DENIED, "reason": "address", **UNDIALLED}, "failed", "failed", 0.0),
    "given back": ({"result": FetchResult.UNSPECIFIED, **UNDIALLED}, AGAIN.format(1), AGAIN.format(3), 0.0),
    "expired": ({"result": FetchResult.EXPIRED, **UNDIALLED}, AGAIN.format(1), AGAIN.format(3), 0.0),
    "lost": ({"result": FetchResult.LOST}, AGAIN.format(1), AGAIN.format(3), 1.0),
    "lease expired": ({"result": FAILED, "reason": "lease_expired"}, AGAIN.format(2), "disallow", 2.0),
    "downloader gone": (
        {"result": FAILED, "reason": "lease_expired", "cause": "downloader_gone"},
        AGAIN.format(2),
        AGAIN.format(4),
        2.0,
    ),
    "not consumed": ({"result": FAILED, "reason": "not_consumed"}, AGAIN.format(2), AGAIN.format(4), 2.0),
}
"""Fields of the outcome; policy of the origin, or the next try, after the first and after the third; pause of the host,
whose delay is 1 s."""
LAST_PAUSE = {"500": 1.0, "dns": 1.0, "lease expired": 1.0, "downloader gone": 8.0, "not consumed": 8.0}
"""Pause after the third try, where it differs."""


def asked(attempt: int) -> tuple[OutcomeRig, FetchRequest]:
    """The robots.txt of a host is requested for this attempt, for a job with two URLs there."""
    rig = OutcomeRig()
    rig.job(URL, "http://a.test/1", politeness=Politeness(1.0, 1))
    request = rig.next_request()
    while request.attempt < attempt:
        rig.end(request, result=FAILED, reason="http_429", status=429, retry_after_s=5.0)
        request = rig.next_request()
    assert (request.url, request.kind) == ("http://a.test/robots.txt", FetchKind.ROBOTS)
    return rig, request


@pytest.mark.parametrize("attempt", [1, 3])
@pytest.mark.parametrize("name", TABLE)
def test_an_outcome_of_robots_txt(name: str, attempt: int) -> None:
    """An answer holds for all URLs of the origin and is in the log; without one it is asked for again."""
    fields, first, third, pause_s = TABLE[name]
    expected = first if attempt == 1 else third
    rig, request = asked(attempt)
    rig.frontier.pending.commits()
    rig.end(request, **fields)
    assert (len(rig.frontier.in_flight.leases), len(rig.frontier.in_flight), rig.host.in_flight) == (0, 0, 0)
    assert rig.pause_s == (pause_s if attempt == 1 else LAST_PAUSE.get(name, pause_s))
    logged = [text for commit in rig.frontier.pending.commits() for text in commit.robots]
    refused = fields.get("reason") in ("http_503", "http_429", "timeout")
    if "asked" in expected:
        assert not logged
        assert not rig.host.robots
        assert len(rig.frontier.readiness.prepared) == 0, "another host may be begun"
        following = rig.next_request()
        assert expected == AGAIN.format(following.attempt)
        assert following.kind is FetchKind.ROBOTS
        return
    assert [(text.origin, text.status, text.reason) for text in logged] == [
        (origin_of(URL, "a.test"), fields.get("status", 0), fields.get("reason", ""))
    ]
    assert rig.host.robots[origin_of(URL, "a.test")].policy == expected
    assert rig.host.robots_tries == 0
    assert len(rig.frontier.readiness.prepared) == (not refused), "its page is next, unless the host pauses"
    rig.pass_time(rig.pause_s + 1.0)
    found = rig.dispatch()
    if expected in ("rules", "allow"):
        assert [one.url for one in found] == [URL]
    else:
        reason = fields["reason"] if expected == "failed" else "robots"
        assert [one.url for one in found] == []
        assert {record.reason for record in rig.records} == {reason}


def test_jobs_that_wait_for_one_robots_txt_go_on_after_it() -> None:
    """A host that is held back for the page budget of a job is released where no robots.txt came."""
    rig = OutcomeRig(concurrency=2)
    rig.job(URL, "http://b.test/", politeness=Politeness(1.0, 1), scope=Scope(max_depth=-1, max_pages=1))
    (request,) = rig.dispatch()
    assert rig.dispatch() == []
    rig.end(request, result=FAILED, reason="connect")
    (other,) = rig.dispatch()
    assert {request.host, other.host} == {"a.test", "b.test"}
