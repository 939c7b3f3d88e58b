"""A job that goes on without one of its rules says so, with the cause, since when, and the remedy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from nephila.kernel.documents.job_document import job_of
from nephila.kernel.documents.job_schema import JobSpec, Seed
from nephila.kernel.messages import RuleVerdict
from nephila.kernel.runtime.clock import ManualClock
from nephila_control.event_log import EventLog
from nephila_control.job_faults import JobFaults

from tests.cluster.operator.fake_control import job as report


class _Backend(SimpleNamespace):
    def look(self) -> None:
        self.events.note_jobs(self.reports)

    def verdicts(self) -> list[RuleVerdict]:
        return self.of_rules


def _faults(rules: set[str], verdicts: list[RuleVerdict] | None = None) -> tuple[_Backend, JobFaults]:
    clock = ManualClock()
    backend = _Backend(
        clock=clock,
        rules=dict.fromkeys(rules),
        of_rules=verdicts or [],
        knows_rules=True,
        events=EventLog(clock),
    )
    return backend, JobFaults(backend)  # type: ignore[arg-type]


def _mark(faults: JobFaults, rules: list[str]) -> list[Any]:
    spec = JobSpec(seeds=[Seed(url="http://a.test/")], rules=rules)
    (marked,) = faults.mark([(job_of("news", spec), report("news"))])
    return marked.degraded


def test_a_job_with_all_its_rules_has_no_fault() -> None:
    _, faults = _faults({"shop"})
    assert _mark(faults, ["shop"]) == []


def test_a_deleted_rule_is_a_fault_since_it_was_first_missed() -> None:
    backend, faults = _faults({"shop"})
    backend.rules = {}
    (fault,) = _mark(faults, ["shop"])
    backend.clock.advance(100)
    (later,) = _mark(faults, ["shop"])
    assert (fault.reason, fault.since) == ("RuleMissing", later.since)
    assert "'shop'" in fault.cause
    assert "nephila rules deploy" in fault.remedy


def test_a_rule_that_comes_back_and_goes_again_is_missed_anew() -> None:
    backend, faults = _faults(set())
    (first,) = _mark(faults, ["shop"])
    backend.rules = {"shop": None}
    assert _mark(faults, ["shop"]) == []
    backend.rules = {}
    backend.clock.advance(50)
    (second,) = _mark(faults, ["shop"])
    assert second.since == first.since + 50


def test_a_rule_whose_site_has_changed_is_a_fault_of_the_jobs_that_name_it() -> None:
    _, faults = _faults({"shop"}, [RuleVerdict(rule="shop", degraded=True, since=7.0)])
    assert [(fault.reason, fault.since) for fault in _mark(faults, ["shop"])] == [("SiteChanged", 7.0)]
    assert _mark(faults, []) == []


def test_a_program_that_does_not_know_the_rules_accuses_no_job() -> None:
    backend, faults = _faults(set())
    backend.knows_rules = False
    assert _mark(faults, ["shop"]) == []


def test_a_job_that_ended_with_nothing_stored_has_failed_since_it_was_first_seen() -> None:
    backend, faults = _faults(set())
    job = job_of("news", JobSpec(seeds=[Seed(url="http://a.test/")]))

    def failure(state: str, **counts: int) -> Any:
        backend.clock.advance(10)
        backend.reports = [report("news", state, **counts)]
        backend.look()
        (marked,) = faults.mark([(job, backend.reports[0])])
        return marked.failure

    assert failure("running", failed=3) is None
    first = failure("idle", failed=3, denied=1)
    assert (first.cause, failure("idle", failed=3, denied=1).since) == (
        "nothing was stored: 3 failed, 1 denied",
        first.since,
    )
    assert failure("idle", failed=3, stored=1) is None
    assert failure("idle") is None
    assert failure("idle", failed=3).since > first.since
