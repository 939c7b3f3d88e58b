"""Curves in a bounded number of samples, from the start to now."""

from __future__ import annotations

from nephila.kernel.runtime.clock import ManualClock
from nephila_control.job_types import Job
from nephila_control.series import JOBS, SAMPLES, JobSeries


def job(name="a", stored=0):
    """How a job stands."""
    return Job(name=name, state="running", generation=1, observed_generation=1, queued=5, in_flight=1, stored=stored,
               denied=0, failed=0, dropped=0)  # fmt: skip


def test_a_long_run_keeps_its_start_and_equal_steps():
    """The step grows, the number of samples does not."""
    series = JobSeries()
    for second in range(20_000):
        series.note(float(second), 1000.0 + second, lambda n=second: [job(stored=n)])
    found = series.read(["a"], [job(stored=20_000)], ManualClock())
    assert len(found.samples) <= SAMPLES + 2
    assert (found.samples[0].at, found.samples[0].stored) == (1000.0, 0)
    steps = {round(b.at - a.at, 3) for a, b in zip(found.samples[:-2], found.samples[1:-1], strict=True)}
    assert steps == {found.step_s}
    assert found.samples[-1].stored == 20_000


def test_the_curve_of_all_jobs_is_their_sum():
    """A job that came later is in no earlier sample of its own."""
    series = JobSeries()
    series.note(0.0, 1.0, lambda: [job("a", 3)])
    series.note(10.0, 11.0, lambda: [job("a", 4), job("b", 10)])
    both = series.read(None, [job("a", 4), job("b", 10)], ManualClock())
    assert [one.stored for one in both.samples] == [3, 14, 14]
    assert [one.stored for one in series.read(["b"], [job("b", 11)], ManualClock()).samples] == [10, 11]


def test_a_program_with_very_many_jobs_keeps_no_samples():
    """A sample costs a report of each."""
    series, calls = JobSeries(), []

    def reports():
        calls.append(1)
        return [job(str(number)) for number in range(JOBS + 1)]

    for second in range(400):
        series.note(float(second), float(second), reports)
    assert len(calls) == 1
    assert len(series.read(None, [], ManualClock()).samples) == 1
