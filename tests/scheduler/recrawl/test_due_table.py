"""What is due when: order, memory, clocks, and the same answers as a plain table of states."""

from __future__ import annotations

import math
import random
import tracemalloc
from itertools import islice

import msgspec
import pytest
from nephila.kernel.messages import Outcome, UrlState
from nephila.scheduler.recrawl.due_table import DueTable
from nephila.scheduler.recrawl.freshness import measure

NOW = 1_800_000_000.0


def state(number: int, next_at: float, **fields) -> UrlState:
    """A page that is due at an instant."""
    values = {
        "job": "j",
        "url_key": number.to_bytes(16, "big"),
        "url": f"https://www.site-{number % 997}.example/section/{number}/a-title-of-some-words.html",
        "host": f"www.site-{number % 997}.example",
        "fetched_at": NOW - 1000.5,
        "first_at": NOW - 9000.0,
        "next_at": next_at,
        "interval_s": 600.0,
        "fetch_no": 3,
        "text_hash": b"12345678",
        "etag": f'"{number:x}-5f3e8a1b2c4d"',
        "outcome": Outcome.STORED,
        **fields,
    }
    return UrlState(**values)


def test_a_state_comes_back_as_it_was_put():
    """All fields; odd ones too: a host that is not in the URL, no validators, letters beyond ASCII."""
    odd = {"url": "http://user@a.test/\u017c\ud800?//b.test/", "host": "b.test", "etag": "", "text_hash": b""}
    numbers = {"checks": 40, "changes": 7, "changed_at": NOW - 500, "quiet_s": 512.0, "changed_s": 256.0}
    for item in (
        state(1, NOW),
        state(2, 0.0, seed=True, depth=7, missing=3, outcome=Outcome.FAILED, lastmod=NOW - 7, **numbers),
        state(3, NOW, last_modified="Sat, 21 Nov 2026 09:00:00 GMT", **odd),
        UrlState(job="j", url_key=bytes(16)),
    ):
        assert DueTable("j", [item]).get(item.url_key) == item


def test_what_is_due_is_handed_out_once():
    """In order, to the minute; not before its time, and not again before it has been put."""
    due_table = DueTable("j", [state(n, NOW + 100 * n) for n in range(10)] + [state(99, 0.0)])
    assert due_table.next_due() <= NOW
    assert [s.next_at for s in due_table.due(NOW + 450)] == [NOW + 100 * n for n in range(5)]
    assert list(due_table.due(NOW + 450)) == []
    assert due_table.checked_out == 5
    due_table.put(state(0, NOW + 470))
    assert NOW + 400 <= due_table.next_due() <= NOW + 470
    assert [s.url_key[-1] for s in due_table.due(NOW + 500)] == [0, 5]
    due_table.check()


def test_what_there_is_no_room_for_stays():
    """The caller stops when it has enough; the rest is due at the next call."""
    due_table = DueTable("j", [state(n, NOW) for n in range(100)])
    taken = [s.url_key for s in islice(due_table.due(NOW), 30)]
    due_table.check()
    rest = [s.url_key for s in due_table.due(NOW)]
    assert len({*taken, *rest}) == len(taken) + len(rest) == 100


def test_a_page_may_be_moved_while_it_waits():
    """Earlier, later, never; removed."""
    due_table = DueTable("j", [state(n, NOW + 1000) for n in range(5)])
    due_table.put(state(0, NOW + 10))
    due_table.put(state(1, NOW + 5000))
    due_table.put(state(2, 0.0))
    assert due_table.remove(state(3, 0).url_key)
    assert not due_table.remove(state(3, 0).url_key)
    due_table.check()
    assert [s.url_key[-1] for s in due_table.due(NOW + 999)] == [0]
    assert [s.url_key[-1] for s in due_table.due(NOW + 4999)] == [4]
    assert [s.url_key[-1] for s in due_table.due(NOW + 9999)] == [1]
    assert due_table.next_due() == math.inf


def test_a_clock_set_back_freezes_nothing():
    """After an hour or ten years back every page is due within the interval that was set for it."""
    for jump in (3600.0, 10 * 365 * 86_400.0):
        due_table = DueTable("j", [state(n, NOW + 60 * n) for n in range(50)])
        served = len(list(due_table.due(NOW + 300)))
        now = NOW - jump
        assert len(list(due_table.due(now))) == 0
        due_table.check()
        assert len(list(due_table.due(now + 601))) == 50 - served


def test_a_clock_set_forward_hands_out_each_page_once():
    """All at once, but each a single time."""
    due_table = DueTable("j", [state(n, NOW + 60 * n) for n in range(50)])
    assert len(list(due_table.due(NOW + 1e9))) == 50
    assert list(due_table.due(NOW + 1e9)) == []


def test_a_dump_loads_as_it_was():
    """States, what is due and what is out are the same in an agenda that loads the dump of another."""
    due_table = DueTable("j", [state(n, NOW + n) for n in range(50)] + [state(99, 0.0)])
    out = {one.url_key for one in islice(due_table.due(NOW + 20), 5)}
    copy = DueTable("j")
    for dumped in due_table.dump():
        copy.load(dumped)
    copy.check()
    assert {one.url_key for one in copy.states() if copy.is_checked_out(one.url_key)} == out
    for one in due_table.states():
        assert copy.get(one.url_key) == one if one.url_key not in out else copy.get(one.url_key).next_at == 0.0
    keys = [sorted(one.url_key for one in each.due(NOW + 1000)) for each in (copy, due_table)]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 45


@pytest.mark.parametrize("seed", range(3))
def test_random_work_agrees_with_a_table(seed):
    """20,000 puts, removals and calls of due, against a dict that is searched through."""
    rng = random.Random(seed)
    due_table = DueTable("j")
    waiting: dict[bytes, float] = {}
    out: set[bytes] = set()
    now = NOW
    for step in range(20_000):
        number = rng.randrange(200)
        key = number.to_bytes(16, "big")
        draw = rng.random()
        if draw < 0.7:
            wait = rng.choice([0.0, 30.0, 300.0, 30_000.0, -100.0])
            next_at = now + wait * rng.random() if wait else 0.0
            due_table.put(state(number, next_at))
            out.discard(key)
            waiting[key] = next_at
        elif draw < 0.75:
            due_table.remove(key)
            waiting.pop(key, None)
            out.discard(key)
        else:
            now += rng.random() * 50
            limit = rng.choice([2, 1000])
            due = {k for k, at in waiting.items() if 0 < at <= now and k not in out}
            found = [s.url_key for s in islice(due_table.due(now), limit)]
            assert len(found) == len(set(found)) == min(limit, len(due))
            assert due.issuperset(found)
            out.update(found)
        if step % 1000 == 0:
            due_table.check()
    assert {s.url_key: s.next_at for s in due_table.states()} == waiting
    assert due_table.checked_out == len(out)


def test_a_state_costs_at_most_350_bytes():
    """URL of 70 characters, ETag and hash included; the index and the order of the due as well."""
    tracemalloc.start()
    due_table = DueTable("j", (state(n, NOW + 30 * n) for n in range(21_000)))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / len(due_table) <= 350


def test_freshness_of_a_job():
    """Counts, ages, and staleness where it is certain."""
    states = [state(n, NOW + 100, fetched_at=NOW - 10 * (n + 1), interval_s=10 * n + 110) for n in range(90)]
    states += [state(n, 0.0, missing=3) for n in range(90, 95)]
    states += [state(95, NOW - 5), state(96, NOW - 500)]
    found = measure(states, NOW, lambda _: 1e-12)
    assert (found.watched, found.copies, found.gone, found.due, found.overdue) == (97, 92, 5, 2, 1)
    assert (found.age_p50_s, found.age_p95_s) == (470.0, 880.0)
    assert (found.staleness_p95_s, found.fresh) == (0.0, pytest.approx(1.0))
    always = measure(states, NOW, lambda _: 1e3)
    assert always.staleness_p95_s == pytest.approx(880, rel=0.02)
    assert always.fresh == pytest.approx(0.0)


def test_freshness_believes_what_a_site_has_said():
    """A change that was announced after the fetch is certain, and since when as well."""
    states = [state(n, NOW + 100, lastmod=NOW - 300) for n in range(10)]
    found = measure(states, NOW, lambda _: 1e-12)
    assert found.staleness_p50_s == pytest.approx(300, abs=0.01)


def test_a_copy_that_a_believed_sitemap_confirmed_is_fresh():
    """It was good when the next fetch was put off; a failed fetch confirms nothing."""
    fields = {"fetched_at": NOW - 90_000, "interval_s": 600.0}
    confirmed = [state(n, NOW + 500, **fields) for n in range(10)]
    assert measure(confirmed, NOW, lambda _: 1.0).staleness_p95_s == pytest.approx(100, abs=5)
    lost = [state(n, NOW + 500, outcome=Outcome.FAILED, **fields) for n in range(10)]
    assert measure(lost, NOW, lambda _: 1.0).staleness_p95_s == pytest.approx(90_000, abs=5)


def test_freshness_of_a_sample_is_that_of_all():
    """Counts are scaled up, the percentiles are close; nothing at all is all zeros."""
    rng = random.Random(4)
    due_table = DueTable(
        "j", (state(n, NOW + rng.uniform(-5, 5), fetched_at=NOW - rng.expovariate(1e-4)) for n in range(9999))
    )
    rate = 1e-4
    some, every = (
        measure(due_table.sample(limit), NOW, lambda _: rate, total=len(due_table)) for limit in (2000, 10**6)
    )
    assert (some.watched, every.watched) == (9999, 9999)
    for name in ("due", "staleness_p50_s", "staleness_p95_s", "age_p95_s", "fresh"):
        assert getattr(some, name) == pytest.approx(getattr(every, name), rel=0.1)
    assert set(msgspec.structs.astuple(measure([], NOW, lambda _: rate))) == {0}


def test_pages_checked_before_an_instant_are_counted():
    """Exactly up to the limit, scaled up beyond it; pages that are gone and pages never fetched do not count."""
    table = DueTable("j", (state(n, NOW + 60, fetched_at=NOW - (5000 if n < 250 else 100)) for n in range(1000)))
    table.put(state(2000, 0.0, missing=3))
    table.put(state(2001, NOW, fetched_at=0.0))
    assert table.checked_before(NOW - 1000, 10_000) == (1000, 250)
    assert table.checked_before(NOW - 10_000, 10_000) == (1000, 0)
    pages, before = table.checked_before(NOW - 1000, 143)
    assert pages == pytest.approx(1000, rel=0.05)
    assert before == pytest.approx(250, rel=0.2)
    assert DueTable("j").checked_before(NOW, 10) == (0, 0)
