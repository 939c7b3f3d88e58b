"""What a crawl prints while it runs, and `nephila up` once a minute."""

from __future__ import annotations

import io
from collections import Counter
from types import SimpleNamespace

import pytest
from nephila.cli.progress import ProgressPrinter, duration
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import FetchKind, FetchOutcome, FetchResult, Outcome, Record
from nephila.kernel.outcomes import is_error
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import RECORDS
from nephila_control.commands import up
from nephila_control.job_types import Job
from rich.console import Console

from tests.waits import until


def crawl_with(
    *,
    stored=0,
    failed=0,
    limit=0,
    errors=None,
    elapsed_s=0.0,
    queued=1234,
    lined=(0, ""),
    max_time_s=0.0,
    first_fault="",
):
    """As much of a crawl as the line reads."""
    frontier = SimpleNamespace(
        ended=lambda uid: {Outcome.STORED: stored, Outcome.FAILED: failed},
        page_limit=lambda uid: limit,
        first_fault=first_fault,
        in_flight=3,
        queued=queued,
        hosts_waiting=lambda: 7,
        waiting_for_address=lambda: lined,
        errors=Counter(errors or {}),
    )
    plan, job = SimpleNamespace(max_time_s=max_time_s), SimpleNamespace(uid="j")
    return SimpleNamespace(frontier=frontier, plan=plan, job=job, elapsed_s=elapsed_s, bus=LocalBus(SystemClock()))


def console(**options):
    return Console(file=io.StringIO(), width=200, **options)


def test_a_line_says_time_limit_queue_hosts_and_errors():
    line = ProgressPrinter(console()).line(crawl_with(stored=87, failed=3, limit=100, errors={"dns": 2}, elapsed_s=65))
    assert line == "1 m 05 s · 87/100 pages · 0.0/s · 1,234 queued · 3 in flight · 7 hosts waiting · errors: dns 2"


def test_hosts_that_wait_for_their_server_are_named_beside_those_that_pause():
    line = ProgressPrinter(console()).line(crawl_with(lined=(126, "127.0.0.81")))
    assert "7 hosts waiting · 126 wait for the address 127.0.0.81 (--per-address)" in line


@pytest.fixture
def instants(monkeypatch):
    """Sets the instants at which lines are made."""

    def set_to(*seconds):
        steps = iter(seconds)
        monkeypatch.setattr("nephila.cli.progress.time", SimpleNamespace(monotonic=lambda: next(steps)))

    return set_to


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ({}, {"stored": 20, "limit": 100}, "about 40 s left"),
        ({}, {"stored": 20}, None),  # the queue is as long as before only because links came
        ({"queued": 100}, {"stored": 20, "queued": 80}, "about 40 s left"),
        ({"queued": 100}, {"stored": 20, "queued": 400}, None),
        ({"queued": 100}, {"stored": 20, "queued": 80, "limit": 1000}, "about 40 s left"),
        ({"queued": 100}, {"stored": 20, "queued": 80, "max_time_s": 70.0, "elapsed_s": 60.0}, "about 10 s left"),
        ({}, {"failed": 20, "limit": 100, "queued": 2000}, None),
        ({"stored": 100, "limit": 100}, {"stored": 101, "limit": 100}, "about 0 s left"),
    ],
)
def test_the_time_left_follows_from_the_limit_or_from_a_queue_that_shrinks(instants, first, second, says):
    instants(100.0, 110.0)
    progress = ProgressPrinter(console())
    assert "left" not in progress.line(crawl_with(**first))
    line = progress.line(crawl_with(**second))
    assert ("left" in line) is (says is not None)
    assert (says or "") in line


def test_the_rate_is_that_of_the_last_seconds(instants):
    instants(0.0, 30.0, 40.0)
    progress = ProgressPrinter(console())
    progress.line(crawl_with())
    progress.line(crawl_with(stored=300))
    assert " · 2.0/s · " in progress.line(crawl_with(stored=320))


def test_without_a_limit_all_ended_urls_count():
    assert "90 pages ·" in ProgressPrinter(console()).line(crawl_with(stored=87, failed=3))


def test_a_hostile_error_name_cannot_write_to_the_terminal():
    assert "\x1b" not in ProgressPrinter(console()).line(crawl_with(errors={"\x1b[31m": 1}))


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.9, "59 s"), (60, "1 m 00 s"), (3599, "59 m 59 s"), (7260, "2 h 01 m")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


async def test_verbose_prints_each_url_that_ends_and_acks_it():
    crawl, out = crawl_with(), console()
    progress = ProgressPrinter(out, verbose=True)
    progress.watch(crawl)
    crawl.bus.publish(
        RECORDS, 0, Record(url="http://a.test/\x1b[2J", outcome=Outcome.STORED, status=200, size_bytes=5000)
    )
    crawl.bus.publish(RECORDS, 0, Record(url="http://a.test/x", outcome=Outcome.DENIED, reason="robots"))
    await progress.stop()
    lines = out.file.getvalue().splitlines()
    assert lines[0].startswith("stored 200 5,000 B http://a.test/")
    assert "\x1b" not in lines[0]
    assert lines[1] == "denied(robots) - http://a.test/x"
    assert crawl.bus.unacked == 0


FAULT = "https://a.test/: try 1 of 3 failed (connect): its server could not be connected to"


@pytest.mark.parametrize(
    ("crawl", "says"),
    [
        (crawl_with(first_fault=FAULT), FAULT),
        (crawl_with(first_fault=FAULT, stored=1), ""),
        (crawl_with(), ""),
    ],
)
async def test_the_first_try_that_failed_is_said_while_no_page_is_stored(crawl, says):
    """A site that cannot be reached is named long before its last try."""
    out = console()
    progress = ProgressPrinter(out)
    progress.watch(crawl)
    await until(lambda: says in out.file.getvalue())
    await progress.stop()
    assert out.file.getvalue().strip() == says


async def test_the_drain_is_announced_where_there_is_no_terminal():
    out = console()
    progress = ProgressPrinter(out)
    progress.watch(crawl_with())
    progress.ending(4.0)
    await progress.stop()
    assert out.file.getvalue() == "ending: fetches in flight get up to 4 s; Ctrl-C again to stop at once\n"


async def test_on_a_terminal_the_live_line_announces_the_drain():
    progress = ProgressPrinter(console(force_terminal=True))
    progress.ending(4.0)
    assert progress.line(crawl_with()).startswith("ending: ")


def test_without_a_console_nothing_is_printed(capsys):
    progress = ProgressPrinter(None)
    progress.watch(crawl_with())
    progress.ending(4.0)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("kind", "result", "status", "counts"),
    [
        (FetchKind.ROBOTS, FetchResult.FAILED, 404, False),
        (FetchKind.ROBOTS, FetchResult.FAILED, 503, True),
        (FetchKind.ROBOTS, FetchResult.FAILED, 0, True),
        (FetchKind.UNSPECIFIED, FetchResult.FAILED, 404, True),
        (FetchKind.UNSPECIFIED, FetchResult.UNSPECIFIED, 0, False),
    ],
)
def test_a_robots_txt_that_is_not_there_is_no_error(kind, result, status, counts):
    assert is_error(FetchOutcome(kind=kind, result=result, status=status)) is counts


def test_the_line_of_up_sums_over_its_jobs():
    one = Job(
        name="a",
        state="running",
        generation=1,
        queued=2,
        observed_generation=1,
        in_flight=1,
        stored=5,
        denied=1,
        failed=1,
        dropped=0,
    )
    two = Job(
        name="b",
        state="paused",
        generation=1,
        queued=3,
        observed_generation=1,
        in_flight=0,
        stored=1,
        denied=0,
        failed=0,
        dropped=1,
    )
    assert up.state_line([one, two]) == (
        "2 jobs (1 paused, 1 running) · 6 stored · 3 other ends · 0.0/s · 5 queued · 1 in flight"
    )
    assert up.state_line([]).startswith("0 jobs · ")
