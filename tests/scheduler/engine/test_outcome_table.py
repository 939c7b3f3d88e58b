"""What an outcome does: a table over outcomes, states of the URL and attempts; the pace of the host in each case."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace
from nephila.kernel.documents.budget_schema import HostBudget
from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.messages import FetchKind, FetchRequest, FetchResult, HostUse, Outcome, Render
from nephila.native import parse_url
from nephila.scheduler.frontier.frontier import PartitionSlice, TenantUse
from nephila.scheduler.frontier.host_state import TurnOutput
from nephila.scheduler.jobs.queue_entry import unpack

from tests.scheduler.engine.outcome_rig import ADDRESS, JOB, OutcomeRig, tries

URL = "http://a.test/0"
FAILED = FetchResult.FAILED
UNDIALLED = {"started_at": 0.0}
RETRY = "delayed 2 s, fetch 1, tries 1"
BEHIND = "behind, fetch 1, tries 1"
"""It took the time of its host: the other URLs of the host come first."""


class Row(NamedTuple):
    """An outcome and its effects on a leased URL and on its host."""

    fields: dict[str, Any]
    first: str
    """State of the URL after the first of three tries."""
    third: str
    """State of the URL after the third try."""
    pause_s: float
    """Seconds until the host may be fetched from; its delay is 1 s."""


def failed(reason: str, first: str, pause_s: float = 1.0, third: str = "", **fields: Any) -> Row:
    """A fetch that failed; after the third try there is a row, unless `third` differs."""
    return Row({"result": FAILED, "reason": reason, **fields}, first, third or f"failed({reason})", pause_s)


def same(state: str, pause_s: float, result: FetchResult, **fields: Any) -> Row:
    """An outcome whose effect does not depend on the attempt."""
    return Row({"result": result, **fields}, state, state, pause_s)


TABLE = {
    "fetched": same("fetched", 1.0, FetchResult.FETCHED, status=200),
    "not modified": same("fetched", 1.0, FetchResult.NOT_MODIFIED, status=304),
    "redirect": same("dropped(redirect)", 1.0, FetchResult.REDIRECT, status=301, location="http://b.test/"),
    "redirect to itself": same("queued, fetch 2, tries 0", 1.0, FetchResult.REDIRECT, status=302, location=URL),
    "redirect to no URL": same("failed(bad_redirect)", 1.0, FetchResult.REDIRECT, status=302, location="mailto:x@y"),
    "denied": same("denied(proxy_address)", 0.0, FetchResult.DENIED, reason="proxy_address", **UNDIALLED),
    "denied without a reason": same("denied(address)", 0.0, FetchResult.DENIED, **UNDIALLED),
    "content type": same("dropped(content_type)", 1.0, FetchResult.CONTENT_TYPE, status=200),
    "given back": Row(
        {"result": FetchResult.UNSPECIFIED, "reason": "busy", **UNDIALLED},
        "queued, fetch 1, tries 0",
        "queued, fetch 1, tries 2",
        0.0,
    ),
    "given back, proxies paused": Row(
        {"result": FetchResult.UNSPECIFIED, "reason": "proxy", "retry_after_s": 9.0, **UNDIALLED},
        "queued, fetch 1, tries 0",
        "queued, fetch 1, tries 2",
        9.0,
    ),
    "expired": Row(
        {"result": FetchResult.EXPIRED, **UNDIALLED}, "queued, fetch 1, tries 0", "queued, fetch 1, tries 2", 0.0
    ),
    "lost": Row(
        {"result": FetchResult.LOST, "reason": "downloader_gone"},
        "queued, fetch 1, tries 0",
        "queued, fetch 1, tries 2",
        1.0,
    ),
    "404": failed("http_404", "failed(http_404)", status=404),
    "410": failed("http_410", "failed(http_410)", status=410),
    "too large": failed("too_large", "failed(too_large)", status=200),
    "500": failed("http_500", RETRY, status=500),
    "503": failed("http_503", "queued, fetch 1, tries 1", 60.0, status=503),
    "429": failed("http_429", "queued, fetch 1, tries 1", 60.0, status=429),
    "429 with Retry-After": failed("http_429", "queued, fetch 1, tries 1", 7.0, status=429, retry_after_s=7.0),
    "500 with Retry-After": failed("http_500", "queued, fetch 1, tries 1", 7.0, status=500, retry_after_s=7.0),
    "timeout": failed("timeout", BEHIND, 60.0),
    "blocked": failed("blocked", "queued, fetch 1, tries 1", 60.0, status=403),
    "forbidden in a browser": failed("robots", "denied(robots)", third="denied(robots)"),
    "login page": failed("blocked", "failed(blocked)", status=200, cause="login_page"),
    **{reason: failed(reason, RETRY) for reason in ("dns", "connect", "tls", "disconnected", "proxy", "browser")},
    "lease expired": failed("lease_expired", BEHIND),
    "page that does not end": failed("timeout", BEHIND, cause="render_timeout"),
    "downloader gone": failed("lease_expired", RETRY, cause="downloader_gone", third="delayed 8 s, fetch 1, tries 3"),
    "not consumed": failed("not_consumed", RETRY, third="delayed 8 s, fetch 1, tries 3"),
}


def leased(attempt: int, **config: Any) -> tuple[OutcomeRig, FetchRequest]:
    """A host whose first URL is leased for this attempt; a second URL waits behind it, which keeps the delay known."""
    rig = OutcomeRig(**config)
    rig.job(URL, "http://a.test/1")
    request = rig.next_request()
    while request.attempt < attempt:
        rig.end(request, result=FAILED, reason="http_429", status=429, retry_after_s=5.0)
        request = rig.next_request()
        assert request.url == URL, "a retry comes before the URLs behind it"
    return rig, request


@pytest.mark.parametrize("attempt", [1, 3])
@pytest.mark.parametrize("name", TABLE)
def test_an_outcome_of_a_leased_url(name: str, attempt: int) -> None:
    """State, host, row and log after the first try and after the last."""
    row = TABLE[name]
    rig, request = leased(attempt)
    rig.frontier.pending.commits()
    begun = len(rig.records)
    rig.end(request, **row.fields)
    state = row.first if attempt == 1 else row.third
    assert rig.state(URL) == state
    assert rig.pause_s == row.pause_s
    assert (len(rig.frontier.in_flight.leases), rig.host.in_flight, len(rig.frontier.in_flight.leases)) == (0, 0, 0)
    rows = rig.records[begun:]
    assert len(rows) == ("(" in state)
    for record in rows:
        assert (record.fetch_no, record.attempt, record.status) == (1, attempt, row.fields.get("status", 0))
    commits = rig.frontier.pending.commits()
    assert any(commit.hosts for commit in commits) == (row.pause_s > 0), "a new pause is in the log"
    logged = [row for commit in commits for row in commit.queued if unpack(row.entry).url == URL]
    entries = [unpack(row.entry) for row in logged]
    assert [tries(entry.fetch_no, entry.attempts) for entry in entries] == state.split(", ", 1)[1:]
    assert all(one.head != state.startswith("behind") for one in logged)
    assert all((one.not_before > 0) == state.startswith("delayed") for one in logged)


def other_attempt(rig: OutcomeRig, request: FetchRequest) -> FetchRequest:
    return replace(request, attempt=2)


def other_fetch(rig: OutcomeRig, request: FetchRequest) -> FetchRequest:
    return replace(request, fetch_no=2)


def other_lease(rig: OutcomeRig, request: FetchRequest) -> FetchRequest:
    return replace(request, lease_until=request.lease_until - 30.0)


def fetched(rig: OutcomeRig, request: FetchRequest) -> FetchRequest:
    rig.end(request, result=FetchResult.FETCHED, status=200)
    return request


def ending(rig: OutcomeRig, request: FetchRequest) -> FetchRequest:
    rig.end(request, result=FAILED, reason="http_404", status=404)
    return request


def ended(rig: OutcomeRig, request: FetchRequest) -> FetchRequest:
    fetched(rig, request)
    rig.receipt(URL, 1)
    return request


def unknown_job(rig: OutcomeRig, request: FetchRequest) -> FetchRequest:
    return replace(request, job="other")


OTHER = (other_attempt, other_fetch, other_lease, fetched, ending, ended, unknown_job)


@pytest.mark.parametrize("state", OTHER, ids=lambda state: state.__name__)
@pytest.mark.parametrize("name", TABLE)
def test_a_late_outcome_changes_only_the_pace(name: str, state: Any) -> None:
    """Whatever it says, the URL stays as it is; a page that is known as lost is fetched again."""
    row = TABLE[name]
    rig, request = leased(1)
    request = state(rig, request)
    rig.pass_time(5.0)
    before, counts = rig.state(URL), (len(rig.frontier.in_flight.leases), rig.host.in_flight, len(rig.records))
    rig.frontier.pending.commits()
    rig.end(request, **row.fields)
    lost_page = row.fields["result"] is FetchResult.LOST and state is fetched
    assert rig.state(URL) == ("queued, fetch 1, tries 0" if lost_page else before)
    assert counts == (len(rig.frontier.in_flight.leases), rig.host.in_flight, len(rig.records))
    assert rig.pause_s == row.pause_s
    hosts = [host for commit in rig.frontier.pending.commits() for host in commit.hosts]
    assert bool(hosts) == (row.pause_s > 0), "a new pause is in the log"


@pytest.mark.parametrize("name", TABLE)
def test_an_outcome_of_a_deleted_job_frees_the_host_and_leaves_no_url(name: str) -> None:
    """Also where a job of the same name has been put since and waits for the same URL."""
    row = TABLE[name]
    rig, request = leased(1)
    rig.job(deleted=True)
    rig.job(URL)
    assert rig.state(URL) == "queued, fetch 2, tries 0"
    rig.end(request, **row.fields)
    assert rig.state(URL) == "queued, fetch 2, tries 0"
    assert (len(rig.frontier.in_flight.leases), rig.host.in_flight, len(rig.frontier.in_flight)) == (0, 0, 0)
    assert rig.pause_s == row.pause_s
    assert not rig.records


@pytest.mark.parametrize(("report_s", "state"), [(-0.001, "leased"), (0.0, BEHIND), (0.001, BEHIND)])
def test_a_report_that_a_lease_is_over_ends_only_leases_given_before_it(report_s: float, state: str) -> None:
    """A URL that was given back has the same attempt in its next lease."""
    rig, request = leased(1)
    given_at = rig.now + rig.frontier.time.utc_offset
    rig.pass_time(5.0)
    rig.end(request, result=FAILED, reason="lease_expired", ended_at=given_at + report_s)
    assert rig.state(URL) == state


@pytest.mark.parametrize(
    ("state", "receipt", "after"),
    [
        ("leased", 1, "leased"),
        ("fetched", 1, "ended"),
        ("fetched", 2, "fetched"),
        ("fetched", 0, "fetched"),
        ("ending", 1, "ended"),
        ("ending", 2, "failed(http_404)"),
    ],
)
def test_a_receipt_ends_the_fetch_that_it_names(state: str, receipt: int, after: str) -> None:
    """A receipt before its outcome ends the URL as soon as the outcome is there."""
    rig, request = leased(1)
    if state != "leased":
        {"fetched": fetched, "ending": ending}[state](rig, request)
    rig.receipt(URL, receipt)
    assert rig.state(URL) == after
    if state == "leased":
        fetched(rig, request)
        assert rig.state(URL) == "ended"
    assert rig.frontier.jobs[JOB].counts.ended.total() == (rig.state(URL) == "ended")


@pytest.mark.parametrize(
    ("answer", "backoff_s"),
    [
        ({"result": FetchResult.FETCHED, "status": 200}, 60.0),
        ({"result": FAILED, "reason": "http_404", "status": 404}, 60.0),
        ({"result": FAILED, "reason": "http_499", "status": 499}, 60.0),
        ({"result": FAILED, "reason": "http_500", "status": 500}, 120.0),
        ({"result": FAILED, "reason": "connect"}, 120.0),
        ({"result": FetchResult.UNSPECIFIED, "status": 200, **UNDIALLED}, 120.0),
    ],
)
def test_a_failure_is_no_answer(answer: dict[str, Any], backoff_s: float) -> None:
    """After an answer a 503 restarts the back-off; after anything else it doubles the pause."""
    rig, request = leased(1)
    unavailable = {"result": FAILED, "reason": "http_503", "status": 503}
    rig.end(request, **unavailable)
    rig.end(rig.next_request(), **answer)
    rig.end(rig.next_request(), **unavailable)
    assert rig.pause_s == backoff_s


def test_the_wait_before_a_retry_doubles_up_to_that_of_the_last_try() -> None:
    """A URL that loses its downloaders has nine tries."""
    rig, request = leased(1)
    waits = []
    for _ in range(8):
        rig.end(request, result=FAILED, reason="lease_expired", cause="downloader_gone")
        waits.append(rig.state(URL).split()[1])
        request = rig.next_try(URL)
    assert waits == ["2", "4", "8", "8", "8", "8", "8", "8"]
    rig.end(request, result=FAILED, reason="lease_expired", cause="downloader_gone")
    assert rig.state(URL) == "failed(lease_expired)"


def test_the_wait_before_a_retry_has_jitter() -> None:
    """Up to the share that is set, and not the same for each URL."""
    waits = set()
    rig = OutcomeRig(jitter=0.5)
    rig.job(*(f"http://a.test/{number}" for number in range(20)))
    for _ in range(20):
        request = rig.next_request()
        if request.attempt == 1:
            rig.end(request, result=FAILED, reason="connect")
            waits.add(float(rig.state(request.url).split()[1]))
        else:
            rig.end(request, result=FetchResult.FETCHED, status=200)
    assert 2.0 <= min(waits) < 2.2
    assert 2.8 < max(waits) <= 3.0


@pytest.mark.parametrize(("reason", "rooms"), [("busy", [0.25, 0.5, 1.0]), ("expired", [0.25, 0.25, 0.25])])
def test_a_request_that_is_given_back_as_busy_makes_its_address_wait_longer(reason: str, rooms: list[float]) -> None:
    """The downloader knows of fetches there that the scheduler does not."""
    rig = OutcomeRig(per_address=1, address_gap_s=0.25)
    rig.job(URL)
    rig.host.address = ADDRESS
    found = []
    for _ in rooms:
        request = rig.next_request()
        rig.end(request, result=FetchResult.UNSPECIFIED, reason=reason, **UNDIALLED)
        at = rig.frontier.addresses.room(ADDRESS, rig.now)
        assert at is not None
        found.append(round(at - rig.now, 3))
        rig.pass_time(found[-1])
    assert found == rooms


@pytest.mark.parametrize("outcome", [Outcome.DROPPED, Outcome.FAILED, Outcome.DENIED])
def test_a_page_that_is_not_stored_gives_its_place_to_a_host_that_waits_for_one(outcome: Outcome) -> None:
    """The last place of the budget is reserved for a stored page that is fetched again much later."""
    again = "http://a.test/again"
    rig = OutcomeRig(concurrency=3)
    rig.job(again, scope=Scope(max_depth=-1, max_pages=2))
    request = rig.next_request()
    rig.end(request, result=FetchResult.FETCHED, status=200)
    rig.receipt(again, 1)
    rig.host.pace.after_fetch(rig.now, 10_000.0)
    rig.end(request, result=FetchResult.RETRACTED, status=200)
    rig.job("http://b.test/", "http://c.test/", scope=Scope(max_depth=-1, max_pages=2))
    (request,) = rig.dispatch()
    rig.end(request, result=FetchResult.FETCHED, status=200)
    assert not rig.dispatch()
    rig.receipt(request.url, 1, outcome)
    assert {request.url, *(one.url for one in rig.dispatch())} == {"http://b.test/", "http://c.test/"}


@pytest.mark.parametrize("fetch_no", [1, 2])
def test_a_lease_that_expires_is_a_try_of_its_fetch(fetch_no: int) -> None:
    """The row has the numbers of the fetch."""
    rig, request = leased(1)
    if fetch_no == 2:
        rig.end(request, result=FetchResult.REDIRECT, status=302, location=URL)
        request = rig.next_request()
    for attempt in (1, 2, 3):
        assert (request.url, request.fetch_no, request.attempt) == (URL, fetch_no, attempt)
        rig.pass_time(180.0)
        rig.dispatch()
        if attempt < 3:
            request = rig.next_try(URL)
    assert rig.state(URL) == "failed(lease_expired)"
    assert (rig.records[-1].fetch_no, rig.records[-1].attempt) == (fetch_no, 3)


@pytest.mark.parametrize(("before_s", "early"), [(None, 0), (0.0, 0), (0.9, 0), (1.1, 1)])
def test_a_fetch_before_its_host_was_free_is_counted(before_s: float | None, early: int) -> None:
    """Up to the largest difference of two clocks it is none; `None`: nothing was dialled."""
    rig, request = leased(1)
    rig.end(request, result=FetchResult.FETCHED, status=200)
    free_at = rig.host.pace.not_before + rig.frontier.time.utc_offset
    started_at = 0.0 if before_s is None else free_at - before_s
    rig.end(rig.next_request(), result=FetchResult.FETCHED, status=200, started_at=started_at)
    assert rig.frontier.counters.early_fetches == early


def test_what_a_tenant_uses_is_counted() -> None:
    """Its fetches that dialled, with and without a quota; a job without a tenant counts for nobody."""
    rig, request = leased(1)
    rig.end(request, result=FetchResult.FETCHED, status=200, started_at=1.0, wire_bytes=70)
    assert rig.frontier.counters.tenants == {}
    rig.job("http://a.test/3", tenant="news")
    rig.end(rig.next_request(), result=FetchResult.FETCHED, status=200, started_at=1.0, wire_bytes=80, browser_s=1.5)
    rig.end(rig.next_request(), result=FAILED, reason="dns_error", started_at=0.0)
    assert rig.frontier.counters.tenants == {"news": TenantUse(fetches=1, wire_bytes=80, browser_s=1.5)}


def test_a_host_where_several_are_fetched_at_once_has_no_such_instant() -> None:
    rig, request = leased(1)
    rig.end(request, result=FetchResult.FETCHED, status=200)
    free_at = rig.host.pace.not_before + rig.frontier.time.utc_offset
    request = rig.next_request()
    rig.job(politeness=Politeness(delay="1s", concurrency_per_host=2, respect_robots=False))
    rig.end(request, result=FetchResult.FETCHED, status=200, started_at=free_at - 50.0)
    assert rig.frontier.counters.early_fetches == 0


def test_a_fetch_is_not_early_because_an_outcome_came_again_after_its_start() -> None:
    """A killed broker delivers outcomes again: the host waits anew, and the fetch in flight was in time."""
    rig, first = leased(1)
    rig.job("http://a.test/2")
    rig.end(first, result=FetchResult.FETCHED, status=200)
    second = rig.next_request()
    started_at = rig.frontier.time.now + rig.frontier.time.utc_offset
    rig.pass_time(3.0)
    rig.end(first, result=FetchResult.FETCHED, status=200)
    assert rig.host.pace.not_before + rig.frontier.time.utc_offset > started_at + 3.0
    rig.end(second, result=FetchResult.FETCHED, status=200, started_at=started_at)
    assert rig.frontier.counters.early_fetches == 0


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("budget", [None, HostBudget(pages=5)])
def test_a_fetch_that_was_dialled_is_charged_to_the_budget_of_its_host(name: str, budget: HostBudget | None) -> None:
    """Fetch, bytes and time; without a budget nothing is counted."""
    rig = OutcomeRig()
    rig.job(URL, host_budget=budget)
    fields = TABLE[name].fields
    rig.end(rig.next_request(), **fields, wire_bytes=700)
    use = rig.host.uses.get(JOB)
    if budget is None or fields.get("started_at") == 0.0:
        assert use is None
    else:
        assert use == HostUse(JOB, 1, 700, pytest.approx(0.1, abs=1e-6))
        assert rig.frontier.pending.commits()[0].hosts[-1].uses == [use]


def test_a_job_put_again_counts_on_from_the_fetches_of_the_deleted_one() -> None:
    """Its rows remain, and the highest number of them may come from a redirect."""
    rig, request = leased(1)
    for fetch_no in (1, 2, 3):
        assert request.fetch_no == fetch_no
        rig.end(request, result=FetchResult.REDIRECT, status=302, location=URL)
        request = rig.next_request()
    rig.job(deleted=True)
    rig.job(URL)
    assert rig.state(URL) == "queued, fetch 5, tries 0"


@pytest.mark.parametrize("way", ["lost", "retracted", "receipt lost"])
def test_a_page_that_is_fetched_again_is_queued_on_its_own_host(way: str) -> None:
    """Its host had nothing else, was evicted and forgotten, and its number was given to another host."""
    rig = OutcomeRig(PartitionSlice(0, 1))
    rig.job(URL)
    request = fetched(rig, rig.next_request())
    rig.pass_time(100.0)
    number = rig.host.number
    rig.frontier.hosts.evict(rig.host)
    assert rig.frontier.store.host("other.test") == number
    if way == "receipt lost":
        rig.handler.receipts_lost(rig.now, rig.now, TurnOutput())
    else:
        result = FetchResult.LOST if way == "lost" else FetchResult.RETRACTED
        rig.end(request, result=result, status=200)
    rig.check()
    assert rig.next_try(URL).host == "a.test"
    assert (rig.host.in_flight, rig.frontier.hosts.get_or_create("other.test").in_flight) == (1, 0)


@pytest.mark.parametrize("evicted", [False, True])
def test_what_a_page_brought_is_counted_on_its_host(evicted: bool) -> None:
    """Also where the host was evicted between the outcome and the receipt; it is written at its next eviction."""
    rig, request = leased(1)
    fetched(rig, request)
    if evicted:
        rig.frontier.hosts.evict(rig.host)
    rig.receipt(URL, 1)
    assert rig.host.changed
    assert JOB in rig.host.novelty


def test_a_request_says_all_that_its_downloader_needs() -> None:
    """Instants are UTC."""
    rig = OutcomeRig()
    rig.job(URL, render="auto")
    rig.host.address = ADDRESS
    request = rig.next_request()
    utc = rig.now + rig.frontier.time.utc_offset
    expected = FetchRequest(
        JOB, parse_url(URL).fingerprint, URL, "a.test", FetchKind.UNSPECIFIED, 1, 1, 0, utc + 60.0, utc + 180.0
    )
    expected.priority, expected.seed, expected.address, expected.render = 255.0, True, ADDRESS, Render.AUTO
    assert request == expected
