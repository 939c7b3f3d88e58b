"""Curves in a bounded number of samples, from the start to now."""

from __future__ import annotations

import itertools

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila_control.job_types import Job
from nephila_control.series import JOBS, POINTS, RECENT_S, SAMPLES, STEPS, JobSeries


def job(name="a", stored=0):
    """How a job stands."""
    return Job(name=name, state="running", generation=1, observed_generation=1, queued=5, in_flight=1, stored=stored,
               denied=0, failed=0, dropped=0)  # fmt: skip


def counts(**stored):
    """Job → its numbers."""
    return lambda: {name: (5, 1, number, 0, 0, 0) for name, number in stored.items()}


def test_a_long_run_keeps_its_start_and_equal_steps():
    """The step grows, the number of samples does not."""
    series = JobSeries()
    for second in range(20_000):
        series.note(float(second), 1000.0 + second, counts(a=second))
    answer = series.read(["a"], [job(stored=20_000)], ManualClock())
    assert len(answer.samples) <= SAMPLES + 2
    assert (answer.samples[0].at, answer.samples[0].stored) == (1000.0, 0)
    steps = {round(b.at - a.at, 3) for a, b in zip(answer.samples[:-2], answer.samples[1:-1], strict=True)}
    assert steps == {answer.step_s}
    assert answer.samples[-1].stored == 20_000


def test_the_recent_curve_keeps_its_steps_and_eleven_minutes():
    series = JobSeries()
    for second in range(20_000):
        series.note(float(second), 1000.0 + second, counts(a=second))
    recent = series.read(None, [job(stored=20_000)], ManualClock(21_000.0)).recent
    assert {round(b.at - a.at, 3) for a, b in itertools.pairwise(recent[:-1])} == {10.0}
    assert RECENT_S <= recent[-1].at - recent[0].at <= RECENT_S + 20.0


def test_the_curve_of_all_jobs_is_their_sum():
    """A job that came later is in no earlier sample of its own."""
    series = JobSeries()
    series.note(0.0, 1.0, counts(a=3))
    series.note(10.0, 11.0, counts(a=4, b=10))
    both = series.read(None, [job("a", 4), job("b", 10)], ManualClock())
    assert [sample.stored for sample in both.samples] == [3, 14, 14]
    assert [sample.stored for sample in series.read(["b"], [job("b", 11)], ManualClock()).samples] == [10, 11]


def test_very_many_jobs_have_the_curve_of_their_sum_alone():
    series = JobSeries()
    names = [f"j{number}" for number in range(JOBS + 1)]
    for step in range(3):
        series.note(10.0 * step, 10.0 * step, counts(**dict.fromkeys(names, step)))
    answer = series.read(None, [], ManualClock())
    assert [sample.stored for sample in answer.samples[:-1]] == [0, JOBS + 1, 2 * (JOBS + 1)]
    assert [sample.stored for sample in answer.recent[:-1]] == [0, JOBS + 1, 2 * (JOBS + 1)]
    assert len(series.read(["j1"], [], ManualClock()).samples) == 1


@pytest.mark.parametrize("name", STEPS)
def test_a_range_has_its_length_and_its_steps(name):
    length_s, step_s = STEPS[name]
    series = JobSeries()
    for at in range(0, 700_000, 10):
        series.note(float(at), 1000.0 + at, counts(a=at))
    answer = series.read(None, [job(stored=700_000)], ManualClock(701_000.0), name)
    times = [sample.at for sample in answer.samples[:-1]]
    assert len(times) <= POINTS
    assert answer.step_s == step_s
    assert {round(after - before, 3) for before, after in itertools.pairwise(times)} == {step_s}
    assert length_s <= times[-1] - times[0] <= length_s + step_s


def test_a_short_run_is_whole_in_each_range():
    series = JobSeries()
    for at in range(0, 120, 2):
        series.note(float(at), 1000.0 + at, counts(a=at))
    for name, (_, step_s) in STEPS.items():
        times = [sample.at for sample in series.read(None, [], ManualClock(1120.0), name).samples]
        assert (times[0], times[-1]) == (1000.0, 1120.0)
        assert len(times) == max(120 // int(step_s), 1) + 1
