"""When a page is fetched again: intervals, schedules, pages that are gone, and what a site says of its own changes."""

from __future__ import annotations

import datetime
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nephila.kernel.documents.field_types import duration_text, instant_text
from nephila.kernel.documents.job_schema import Recrawl
from nephila.kernel.messages import Outcome, Receipt, UrlState
from nephila.scheduler.recrawl.change_rate import START_RATE, Prior, estimate
from nephila.scheduler.recrawl.policy import WINDOW, RecrawlPolicy

NOW = 1_800_000_000.0
HOUR, DAY = 3_600.0, 86_400.0
ADAPTIVE = Recrawl(min=duration_text(HOUR), max=duration_text(14 * DAY))
KEY = bytes(range(16))


def page(seed: bool = False) -> UrlState:
    """A URL that has never been fetched."""
    return UrlState(job="j", url_key=KEY, url="http://a.test/", host="a.test", seed=seed)


def fetched(state: UrlState, text: bytes = b"text", **fields) -> Receipt:
    """The receipt of the next fetch of a page."""
    values = {"outcome": Outcome.STORED, "status": 200, "text_hash": text, **fields}
    return Receipt(url_key=state.url_key, fetch_no=state.fetch_no + 1, **values)


def failed(state: UrlState, status: int = 503) -> Receipt:
    """The receipt of a fetch that brought no page."""
    return fetched(state, b"", outcome=Outcome.FAILED, status=status)


def lived(policy: RecrawlPolicy, texts: str, state: UrlState | None = None) -> UrlState:
    """The state after fetches that brought these texts (one letter each), each when it was due."""
    state = state or page()
    for text in texts:
        state = policy.after(state, fetched(state, text.encode()), state.next_at or NOW)
    return state


# ---- single instants


def test_refresh_at_makes_pages_due_once():
    """Without another frequency: at the instant, not again after the fetch; a later instant starts another run."""
    policy = RecrawlPolicy(Recrawl(monitor=True, refresh_at=instant_text(NOW - 10)))
    state = policy.after(page(seed=True), fetched(page()), NOW - 100)
    assert state.next_at == NOW - 10
    state = policy.after(state, fetched(state), NOW)
    assert state.next_at == 0
    assert policy.reapplied(state, NOW + 5).next_at == 0
    later = RecrawlPolicy(Recrawl(monitor=True, refresh_at=instant_text(NOW + DAY)))
    state = later.reapplied(state, NOW + 60)
    assert state.next_at == NOW + DAY
    refused = later.after(state, failed(state), NOW + DAY + 1)
    assert refused.next_at == 0
    assert not later.watches(seed=False)


def test_refresh_at_takes_redirects_and_skips_excluded_urls():
    """A redirect was answered and is asked again by the next instant; an excluded URL was decided without a fetch."""
    policy = RecrawlPolicy(Recrawl(monitor=True, refresh_at=instant_text(NOW)))
    later = RecrawlPolicy(Recrawl(monitor=True, refresh_at=instant_text(NOW + DAY)))
    start = page(seed=True)
    redirect = policy.after(start, fetched(start, b"", outcome=Outcome.DROPPED, status=301), NOW + 1)
    assert policy.reapplied(redirect, NOW + 2).next_at == 0
    assert later.reapplied(redirect, NOW + 2).next_at == NOW + DAY
    stored = policy.after(start, fetched(start), NOW + 1)
    excluded = policy.after(stored, fetched(stored, b"", outcome=Outcome.DROPPED, status=0), NOW + 3)
    assert later.reapplied(excluded, NOW + 4).next_at == 0
    everyday = RecrawlPolicy(Recrawl(every=duration_text(DAY)))
    assert everyday.reapplied(excluded, NOW + 4).next_at == 0
    assert 0 < everyday.adopted(redirect).next_at <= NOW + 1.1 * DAY


def test_refresh_at_beside_a_frequency_only_makes_pages_due_earlier():
    """The interval stays."""
    policy = RecrawlPolicy(Recrawl(every=duration_text(10 * DAY)))
    state = policy.after(page(), fetched(page()), NOW)
    policy = RecrawlPolicy(Recrawl(every=duration_text(10 * DAY), refresh_at=instant_text(NOW + DAY)))
    state = policy.reapplied(state, NOW + HOUR)
    assert state.next_at == NOW + DAY
    state = policy.after(state, fetched(state), NOW + DAY + 1)
    assert state.next_at == pytest.approx(NOW + 11 * DAY, abs=0.6 * DAY)


# ---- the estimate


def truth(mean_s: float, checks: int, rng: random.Random) -> tuple[float, float, int]:
    """Evidence of checks at irregular times of a page with this mean time between changes."""
    quiet = changed = 0.0
    changes = 0
    for _ in range(checks):
        elapsed = rng.uniform(0.2, 1.5) * mean_s
        if rng.random() < -math.expm1(-elapsed / mean_s):
            changed, changes = changed + elapsed, changes + 1
        else:
            quiet += elapsed
    return quiet, changed, changes


@pytest.mark.parametrize("mean_s", [HOUR, DAY, 30 * DAY])
def test_the_estimate_finds_the_rate_of_irregular_checks(mean_s):
    """Over 300 pages with 40 checks each the mean error of ln(rate) is small, and so is its spread."""
    rng = random.Random(1)
    errors = [math.log(estimate(*truth(mean_s, 40, rng), 1 / DAY) * mean_s) for _ in range(300)]
    assert abs(sum(errors) / 300) < 0.07
    assert math.sqrt(sum(error**2 for error in errors) / 300) < 0.35


def bisected(quiet_s, changed_s, changes, prior_rate):
    """The same root, found without any slope."""
    low, high = math.log(prior_rate) - 60, math.log(prior_rate) + 60
    for _ in range(100):
        middle = (low + high) / 2
        rate = math.exp(middle)
        x = min(rate * changed_s / changes, 300) if changes else 0
        value = (changes * x / math.expm1(x) if x else 0) - rate * quiet_s - (middle - math.log(prior_rate)) / 3
        low, high = (middle, high) if value > 0 else (low, middle)
    return math.exp(low)


def test_no_history_makes_the_estimate_oscillate():
    """Where Newton's steps went to and fro until the last, the answer was up to eight times too small."""
    known = estimate(0.0, 29424585.408531945, 9, 1.3769560450553908e-07)
    assert known == pytest.approx(1.1955058828994664e-06, rel=1e-6)
    rng = random.Random(1)
    for _ in range(2_000):
        changes = rng.randrange(40)
        quiet = rng.choice([0, 1]) * 10 ** rng.uniform(1.8, 8.4)
        changed = changes * 10 ** rng.uniform(1.8, 6.9)
        prior = 10 ** rng.uniform(-6.9, -1.8)
        found = estimate(quiet, changed, changes, prior)
        assert found == pytest.approx(bisected(quiet, changed, changes, prior), rel=1e-3)


def test_regular_checks_give_the_known_estimate():
    """Without a prior to speak of: -ln(1 - X/n) per interval (Cho and Garcia-Molina 2003, 4.1)."""
    found = estimate(70 * HOUR, 30 * HOUR, 30, 1 / HOUR)
    assert found * HOUR == pytest.approx(-math.log(0.7), rel=0.02)


@given(
    st.floats(0, 1e8), st.floats(1, 1e7), st.integers(1, 64), st.floats(1e-9, 1e-1), st.floats(1, 1e7)
)  # fmt: skip
def test_the_estimate_falls_with_quiet_and_rises_with_the_prior(quiet, interval, changes, prior, more):
    """It is finite and above 0, whatever the evidence."""
    found = estimate(quiet, interval * changes, changes, prior)
    assert 0 < found < math.inf
    assert estimate(quiet + more, interval * changes, changes, prior) <= found * 1.001
    assert estimate(quiet, interval * changes, changes, prior * 2) >= found * 0.999


def test_the_prior_is_that_of_the_other_pages():
    """A page without evidence is taken for one like the others, each weighed by the time it was watched."""
    prior = Prior()
    assert prior.rate == pytest.approx(START_RATE)
    prior.learn(1 / HOUR, 500 * DAY)
    prior.learn(1 / HOUR, 0.0)
    assert prior.rate == pytest.approx(1 / HOUR, rel=0.06)


# ---- the interval


def test_the_interval_shrinks_on_change_and_grows_otherwise():
    """Within its bounds, for every history."""
    rng = random.Random(2)
    policy = RecrawlPolicy(ADAPTIVE)
    for _ in range(40):
        state = lived(policy, "a" + "".join(rng.choice("ab") for _ in range(rng.randrange(20))))
        same, other = (lived(policy, text, state) for text in (chr(state.text_hash[0]), "z"))
        before = policy.interval(state)
        assert policy.interval(other) < before < policy.interval(same)
        for found in (same, other):
            assert HOUR <= found.interval_s <= 14 * DAY
            assert found.next_at == found.fetched_at + found.interval_s


def test_bounds_hold_for_pages_that_always_or_never_change():
    """A page that changes all the time is fetched every min, one that never does at max in the end."""
    policy = RecrawlPolicy(Recrawl(min=duration_text(HOUR), max=duration_text(DAY)))
    restless = lived(policy, "ab" * 40)
    assert HOUR <= restless.interval_s < 1.6 * HOUR
    assert lived(policy, "a" * 60).interval_s > 0.8 * DAY


def test_a_304_is_a_page_that_has_not_changed():
    """It counts like the same text, and the text's hash and the validators stay."""
    policy = RecrawlPolicy(ADAPTIVE)
    state = policy.after(page(), fetched(page(), b"a", etag='"1"', last_modified="Mon"), NOW)
    assert (state.etag, state.last_modified) == ('"1"', "")
    held = policy.after(state, fetched(state, b"", not_modified=True, status=304), NOW + DAY)
    same = policy.after(state, fetched(state, b"a", etag='"1"'), NOW + DAY)
    assert held.next_at > same.fetched_at
    assert (held.checks, held.changes, held.quiet_s, held.text_hash, held.etag) == (1, 0, DAY, b"a", '"1"')
    assert (same.checks, same.changes, same.quiet_s) == (1, 0, DAY)


def test_old_evidence_fades():
    """A page that changed at each of 200 fetches and then stopped is soon fetched less often."""
    policy = RecrawlPolicy(ADAPTIVE)
    state = lived(policy, "ab" * 100)
    assert state.checks <= WINDOW
    assert lived(policy, "a" * 60, state).interval_s > 1.7 * state.interval_s


def test_pages_fetched_together_do_not_come_due_together():
    """Of 1,000 pages fetched in one second no 20 are due within the same hundredth of the spread."""
    policy = RecrawlPolicy(Recrawl(min=duration_text(DAY), max=duration_text(9 * DAY)))
    due = []
    for number in range(1000):
        state = page()
        state.url_key = number.to_bytes(16, "big")
        due.append(policy.after(state, fetched(state), NOW).next_at)
    due.sort()
    assert due[-1] - due[0] > 0.15 * (due[0] - NOW)
    assert min(b - a for a, b in zip(due, due[20:], strict=False)) > 0.005 * (due[-1] - due[0])


def test_a_fixed_interval_is_kept_whatever_the_page_does():
    """Within five per cent; a failure does not change it."""
    policy = RecrawlPolicy(Recrawl(every=duration_text(HOUR)))
    state = lived(policy, "abaaab")
    assert state.interval_s == pytest.approx(HOUR, rel=0.051)
    lost = policy.after(state, failed(state), state.next_at)
    assert lost.interval_s == pytest.approx(HOUR, rel=0.051)


def test_a_receipt_that_comes_again_changes_nothing():
    """An earlier fetch, delivered late."""
    policy = RecrawlPolicy(ADAPTIVE)
    state = lived(policy, "ab")
    late = Receipt(url_key=KEY, fetch_no=1, outcome=Outcome.STORED, text_hash=b"c")
    assert policy.after(state, late, NOW + DAY) is state


def test_only_seeds_are_monitored():
    """The rest is fetched once, when it is new; without a policy nothing is fetched again."""
    policy = RecrawlPolicy(Recrawl(every=duration_text(HOUR), monitor=True))
    assert (policy.watches(True), policy.watches(False)) == (True, False)
    assert not RecrawlPolicy(None).watches(True)
    assert RecrawlPolicy(ADAPTIVE).watches(False)


# ---- pages that are not there


def test_a_page_is_gone_after_404_and_410_in_a_row():
    """Three by default; it is not asked for again, also after a restart."""
    policy = RecrawlPolicy(ADAPTIVE)
    state = lived(policy, "aab")
    for status in (404, 410, 404):
        assert state.next_at
        state = policy.after(state, failed(state, status), state.next_at)
    assert (state.missing, state.next_at) == (3, 0.0)
    assert policy.reapplied(state, NOW + 90 * DAY).next_at == 0.0


def test_a_page_that_comes_back_is_not_counted_as_missing():
    """404 must come in a row, and other failures neither count nor reset."""
    policy = RecrawlPolicy(Recrawl(min=duration_text(HOUR), max=duration_text(DAY), gone_after=2))
    state = lived(policy, "a")
    state = policy.after(state, failed(state, 404), NOW + DAY)
    state = policy.after(state, failed(state, 503), NOW + 2 * DAY)
    assert state.missing == 1
    state = lived(policy, "a", state)
    assert state.missing == 0
    state = policy.after(state, failed(state, 404), state.next_at)
    assert state.next_at > 0


def test_a_failure_keeps_what_is_known_and_comes_later():
    """Each one doubles the wait up to max; evidence, text and validators stay."""
    policy = RecrawlPolicy(Recrawl(min=duration_text(HOUR), max=duration_text(2 * DAY)))
    state = lived(policy, "abab")
    lost = state
    for _ in range(10):
        before = lost.interval_s
        lost = policy.after(lost, failed(lost, 0), lost.next_at)
        assert lost.interval_s > before * 1.5 or lost.interval_s > 1.7 * DAY
        assert lost.interval_s <= 2 * DAY
    kept = ("fetched_at", "checks", "changes", "quiet_s", "changed_s", "text_hash", "lastmod")
    assert all(getattr(lost, name) == getattr(state, name) for name in kept)
    back = lived(policy, "a", lost)
    assert back.interval_s < 2 * DAY


def test_what_was_dropped_without_a_fetch_is_not_taken_up_again():
    """Excluded or part of a trap; a redirect, which was fetched, comes again."""
    policy = RecrawlPolicy(ADAPTIVE)
    state = page()
    excluded = policy.after(state, fetched(state, b"", outcome=Outcome.DROPPED, status=0), NOW)
    redirect = policy.after(state, fetched(state, b"", outcome=Outcome.DROPPED, status=301), NOW)
    assert (excluded.next_at, policy.reapplied(excluded, NOW).next_at) == (0.0, 0.0)
    assert redirect.next_at > NOW


# ---- what the site says


def test_an_announced_change_makes_the_page_due():
    """min after the last fetch at the earliest, and once per announcement."""
    policy = RecrawlPolicy(ADAPTIVE)
    state = lived(policy, "aaaa")
    last = state.fetched_at
    result = policy.after_lastmod(state, last + 60, last + 120)
    assert result is not None
    assert result.next_at == last + HOUR
    assert policy.after_lastmod(result, last + 60, last + 180) is None
    late = policy.after_lastmod(state, last + 60, last + 2 * HOUR)
    assert late is not None
    assert late.next_at == last + 2 * HOUR


def test_a_sitemap_that_always_says_now_is_believed_once():
    """After a fetch that found nothing new the page keeps its own pace, until a change is found."""
    policy = RecrawlPolicy(ADAPTIVE)
    state = lived(policy, "aaaa")
    result = policy.after_lastmod(state, state.fetched_at + 5, state.fetched_at + 5)
    assert result is not None
    state = lived(policy, "a", result)
    assert policy.after_lastmod(state, state.fetched_at + 7, state.fetched_at + 7) is None
    state = lived(policy, "b", state)
    assert policy.after_lastmod(state, state.fetched_at + 7, state.fetched_at + 7) is not None


def test_no_change_is_believed_of_a_site_that_has_announced_one():
    """Then the next fetch is put off as by a 304, but not beyond max; a date alone may mean any time of its day."""
    policy = RecrawlPolicy(Recrawl(min=duration_text(HOUR), max=duration_text(3 * DAY)))
    state = lived(policy, "aaaa")
    stale = state.fetched_at - 5 * DAY
    assert policy.after_lastmod(state, stale, state.fetched_at + HOUR) is None, "it has proved nothing yet"
    result = policy.after_lastmod(state, state.fetched_at + 60, state.fetched_at + 90)
    assert result is not None
    state = lived(policy, "b", result)
    now = state.next_at - 60
    off = policy.after_lastmod(state, result.lastmod, now)
    assert off is not None
    assert off.next_at == now + state.interval_s
    today = state.fetched_at // DAY * DAY
    assert policy.after_lastmod(state, today, now) is None
    end = policy.after_lastmod(state, result.lastmod, state.fetched_at + 2.9 * DAY)
    assert end is not None
    assert end.next_at == state.fetched_at + 3 * DAY


def test_a_change_that_was_not_announced_ends_the_belief():
    """A sitemap that has stopped telling puts nothing off."""
    policy = RecrawlPolicy(ADAPTIVE)
    result = policy.after_lastmod(lived(policy, "aaaa"), NOW + 9 * DAY, NOW + 9 * DAY)
    assert result is not None
    state = lived(policy, "bc", result)
    assert policy.after_lastmod(state, result.lastmod, state.next_at - 1) is None


@pytest.mark.parametrize("lastmod", [0.0, -5.0, NOW + 400 * DAY, math.inf, math.nan])
def test_times_that_cannot_be_are_ignored(lastmod):
    """A sitemap is a stranger's."""
    policy = RecrawlPolicy(ADAPTIVE)
    assert policy.after_lastmod(lived(policy, "aa"), lastmod, NOW + DAY) is None


def test_a_gone_page_that_is_announced_gets_one_more_try():
    """One, not three."""
    policy = RecrawlPolicy(Recrawl(min=duration_text(HOUR), max=duration_text(DAY), gone_after=1))
    state = lived(policy, "aab")
    gone = policy.after(state, failed(state, 410), state.next_at)
    assert gone.next_at == 0.0
    result = policy.after_lastmod(gone, gone.fetched_at + 9 * DAY, gone.fetched_at + 9 * DAY)
    assert result is not None
    assert result.next_at > 0
    assert policy.after(result, failed(result, 404), result.next_at).next_at == 0.0


# ---- cron


def at(text: str) -> float:
    """An instant."""
    return datetime.datetime.fromisoformat(text + "+00:00").timestamp()


def test_all_pages_are_due_at_the_instants_of_cron():
    """In UTC, at the first one after the fetch."""
    policy = RecrawlPolicy(None, "0 6 * * 1-5")
    friday = policy.after(page(), fetched(page()), at("2026-11-20T05:59:59"))
    assert friday.next_at == at("2026-11-20T06:00:00")
    assert policy.after(friday, fetched(friday), at("2026-11-20T06:00:30")).next_at == at("2026-11-23T06:00:00")
    assert policy.after(friday, failed(friday), at("2026-11-20T06:00:30")).next_at == at("2026-11-23T06:00:00")


def test_downtime_is_made_up_for_by_one_run():
    """A run that was slept through is due at once, ten of them are due once."""
    policy = RecrawlPolicy(None, "0 * * * *")
    state = policy.after(page(), fetched(page()), at("2026-11-20T05:30"))
    woken = policy.reapplied(state, at("2026-11-20T16:20"))
    assert woken.next_at == at("2026-11-20T06:00")
    assert policy.after(woken, fetched(woken), at("2026-11-20T16:21")).next_at == at("2026-11-20T17:00")


def test_a_clock_set_back_does_not_repeat_a_run():
    """The instant that was served is not due again; a clock that had been years ahead does not stop the schedule."""
    policy = RecrawlPolicy(None, "0 6 * * *")
    state = policy.after(page(), fetched(page()), at("2026-11-20T05:00"))
    assert policy.after(state, fetched(state), at("2026-11-20T05:10")).next_at == at("2026-11-21T06:00")
    ahead = policy.after(page(), fetched(page()), at("2033-01-01T00:00"))
    assert policy.reapplied(ahead, at("2026-11-20T05:10")).next_at == at("2026-11-20T06:00")


# ---- clocks


@pytest.mark.parametrize("jump_s", [-HOUR, HOUR, -400 * DAY, 400 * DAY])
@pytest.mark.parametrize(
    ("recrawl", "cron"), [(ADAPTIVE, ""), (Recrawl(every=duration_text(DAY)), ""), (None, "0 6 * * *")]
)
def test_a_clock_that_jumps_neither_freezes_nor_storms(jump_s, recrawl, cron):
    """Whatever the clock has been, a loaded page is due within one interval, and after one fetch not at once again."""
    policy = RecrawlPolicy(recrawl, cron)
    state = lived(policy, "abaab")
    now = state.fetched_at + 60 + jump_s
    loaded = policy.reapplied(state, now)
    assert 0 < loaded.next_at <= now + max(state.interval_s, DAY)
    assert loaded.fetched_at <= now
    again = policy.after(loaded, fetched(loaded, b"b"), max(now, loaded.next_at))
    assert again.next_at - again.fetched_at >= (60 if cron else 0.94 * HOUR)
    assert again.next_at - again.fetched_at <= 14 * DAY
    assert policy.reapplied(again, again.fetched_at + 1) == again


def test_a_clock_set_back_between_two_fetches_is_no_evidence():
    """A negative interval counts for nothing, a year of it at most two max."""
    policy = RecrawlPolicy(ADAPTIVE)
    state = lived(policy, "aab")
    back = policy.after(state, fetched(state, b"b"), state.fetched_at - HOUR)
    assert (back.checks, back.quiet_s, back.changed_s) == (state.checks, state.quiet_s, state.changed_s)
    far = policy.after(state, fetched(state, b"b"), state.fetched_at + 4000 * DAY)
    assert far.quiet_s - state.quiet_s == 28 * DAY


def test_a_changed_policy_applies_to_what_is_known():
    """Shorter bounds make pages due earlier; a policy that was off starts with what is there."""
    slow = RecrawlPolicy(Recrawl(every=duration_text(30 * DAY)))
    state = lived(slow, "aa")
    assert (
        RecrawlPolicy(Recrawl(every=duration_text(HOUR))).reapplied(state, state.fetched_at).next_at
        <= state.fetched_at + 1.05 * HOUR
    )
    assert RecrawlPolicy(None).reapplied(state, state.fetched_at).next_at == 0.0
    off = RecrawlPolicy(None).reapplied(state, state.fetched_at)
    assert RecrawlPolicy(ADAPTIVE).reapplied(off, state.fetched_at + 60).next_at == state.fetched_at + 60
