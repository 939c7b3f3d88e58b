"""A CrawlJob: which request follows from spec, status and the state of its job, and which status."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from nephila_cluster.kubernetes.release import FINALIZER
from nephila_cluster.operator.plan import ReconcilePlan, Refusal
from nephila_cluster.operator.reconcile_job import MESSAGES, REASONS, ObservedJob, reconcile_job
from nephila_cluster.operator.status import CrawlJobStatus
from nephila_control import job_types

from tests.cluster.operator.fake_control import job

NOW = "2026-01-01T00:00:00Z"
SPEC = {"seeds": ["https://a.example/"]}


def resource(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    given = {"name": "news", "generation": 3, "finalizers": [FINALIZER], **metadata}
    return {"metadata": given, "spec": SPEC if spec is None else spec}


def applied(**changes: Any) -> job_types.JobApplied:
    values = {"verdict": "created", "generation": 1, "refused": [], "refused_count": 0, **changes}
    return job_types.JobApplied(name="news", **values)


def conditions(plan: ReconcilePlan) -> dict[str, tuple[str, str]]:
    assert plan.status is not None
    return {one["type"]: (one["status"], one["reason"]) for one in plan.status["conditions"]}


def message(plan: ReconcilePlan, kind: str) -> str:
    assert plan.status is not None
    return str(next(one["message"] for one in plan.status["conditions"] if one["type"] == kind))


def live(**metadata: Any) -> dict[str, Any]:
    """A resource whose generation 3 is in effect."""
    body = resource(**metadata)
    plan = reconcile_job(body, ObservedJob(job=job("news"), applied=applied()), NOW)
    return {**body, "status": plan.status}


def test_the_finalizer_comes_before_the_job() -> None:
    plan = reconcile_job(resource(finalizers=["other"]), ObservedJob(), NOW)
    assert (plan.finalizers, plan.request) == (["other", FINALIZER], None)


def test_a_new_resource_is_applied_as_its_document_without_defaults() -> None:
    # The API server fills in the defaults of its CRD; an earlier control API may not know these keys.
    filled = {**SPEC, "paused": False, "politeness": {"delay": "1s"}, "browser": {"wait": {}}}
    request = reconcile_job(resource(filled), ObservedJob(), NOW).request
    assert isinstance(request, job_types.ApplyJob)
    assert request.job == {
        "apiVersion": "nephila.dev/v1",
        "kind": "CrawlJob",
        "metadata": {"name": "news"},
        "spec": {"seeds": [{"url": "https://a.example/"}]},
    }


def test_what_was_applied_is_in_status_with_counts_and_an_event() -> None:
    state = job("news", "running", queued=7, in_flight=1, stored=12, failed=2)
    plan = reconcile_job(resource(), ObservedJob(job=state, applied=applied()), NOW)
    assert conditions(plan) == {
        "Accepted": ("True", "Applied"),
        "Ready": ("True", "Crawling"),
        "Reconciling": ("False", "Crawling"),
        "Stalled": ("False", "Crawling"),
        "Progressing": ("True", "Crawling"),
        "Degraded": ("False", "Healthy"),
    }
    assert plan.status is not None
    assert plan.status["counts"] == {
        "queued": 7,
        "inFlight": 1,
        "stored": 12,
        "denied": 0,
        "failed": 2,
        "dropped": 0,
    }
    assert plan.status["observedGeneration"] == 3
    assert plan.events
    assert (plan.events[0].type, plan.events[0].reason) == ("Normal", "Applied")
    status = msgspec.convert(plan.status, CrawlJobStatus)
    assert [one.observed_generation for one in status.conditions] == [3] * 6


@pytest.mark.parametrize(
    ("state", "ready", "progressing"),
    [
        ("new", ("False", "Starting"), ("True", "Starting")),
        ("running", ("True", "Crawling"), ("True", "Crawling")),
        ("paused", ("True", "Paused"), ("False", "Paused")),
        ("limit", ("True", "LimitReached"), ("False", "LimitReached")),
        ("quota", ("True", "QuotaUsedUp"), ("False", "QuotaUsedUp")),
        ("window", ("True", "OutsideWindow"), ("False", "OutsideWindow")),
        ("idle", ("True", "Idle"), ("False", "Idle")),
    ],
)
def test_every_state_of_a_job_has_its_conditions(state: str, ready: Any, progressing: Any) -> None:
    plan = reconcile_job(resource(), ObservedJob(job=job("news", state), applied=applied()), NOW)
    assert (conditions(plan)["Ready"], conditions(plan)["Progressing"]) == (ready, progressing)


def test_the_tables_have_all_states_of_the_control_api() -> None:
    assert set(REASONS) == set(MESSAGES) == set(get_args(job_types.JobState))


def test_a_used_up_quota_is_named_in_the_conditions() -> None:
    words = "the quota of the tenant press, 5 pages per day, is used up, until 2026-01-02T00:00:00Z"
    plan = reconcile_job(resource(), ObservedJob(job=job("news", "quota", quota=words), applied=applied()), NOW)
    assert message(plan, "Ready") == message(plan, "Progressing") == words


def test_the_window_that_a_job_waits_for_is_named_in_the_conditions() -> None:
    words = "waits for its window, 22:00-06:00 UTC, until 2026-01-02T22:00:00Z"
    plan = reconcile_job(resource(), ObservedJob(job=job("news", "window", window=words), applied=applied()), NOW)
    assert message(plan, "Ready") == message(plan, "Progressing") == words


def test_every_change_that_is_applied_has_its_event() -> None:
    body = live()
    body["metadata"]["generation"] = 4
    answer = applied(verdict="changed", generation=2)
    plan = reconcile_job(body, ObservedJob(job=job("news", generation=2), applied=answer), NOW)
    assert plan.events
    assert plan.events[0].message == "the job is changed, generation 2"


def test_nothing_is_written_while_nothing_changes() -> None:
    plan = reconcile_job(live(), ObservedJob(job=job("news")), "2026-01-02T00:00:00Z")
    assert plan == ReconcilePlan(again="interval")


def test_counts_are_written_without_an_event_and_keep_the_time_of_the_condition() -> None:
    plan = reconcile_job(live(), ObservedJob(job=job("news", stored=5)), "2026-01-02T00:00:00Z")
    assert plan.status is not None
    assert not plan.events
    assert {one["lastTransitionTime"] for one in plan.status["conditions"]} == {NOW}


@pytest.mark.parametrize("seen", [ObservedJob(job=job("news")), ObservedJob()], ids=["a new generation", "a job lost"])
def test_a_change_is_applied_again(seen: ObservedJob) -> None:
    body = live()
    if seen.job is not None:
        body["metadata"]["generation"] = 4
    assert isinstance(reconcile_job(body, seen, NOW).request, job_types.ApplyJob)


def test_a_job_that_was_paused_elsewhere_stays_paused() -> None:
    plan = reconcile_job(live(), ObservedJob(job=job("news", "paused", generation=9)), NOW)
    assert plan.request is None
    assert conditions(plan)["Ready"] == ("True", "Paused")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({**SPEC, "schedule": "0 99 * * *"}, "spec.schedule: '0 99 * * *'"),
        ({**SPEC, "scope": {"exclude": ["(open"]}}, "spec.scope.exclude[0]: '(open' is not a valid RE2 expression"),
        ({"seeds": ["gopher://a.example/"]}, "spec.seeds[0]: 'gopher://a.example/' is no URL"),
        ({"seeds": [{"file": "seeds.txt"}]}, "spec.seeds: file 'seeds.txt' cannot be read by the operator"),
        ({**SPEC, "politeness": {"delay": 5}}, "write 5s for seconds"),
        ({**SPEC, "weigth": 2}, "unknown key 'weigth'"),
        ({}, "it has no seeds"),
        ({"seeds": ["x:", "y:"]}, "(and 1 more)"),
    ],
)
def test_a_spec_that_cannot_be_a_job_is_reported_in_one_line_and_nothing_is_sent(spec: Any, words: str) -> None:
    plan = reconcile_job(resource(spec), ObservedJob(), NOW)
    assert plan.request is None
    assert conditions(plan) == {
        "Accepted": ("False", "Invalid"),
        "Ready": ("False", "NoJob"),
        "Reconciling": ("False", "Invalid"),
        "Stalled": ("True", "Invalid"),
        "Progressing": ("False", "NoJob"),
        "Degraded": ("False", "NoJob"),
    }
    assert words in message(plan, "Accepted")
    assert "\n" not in message(plan, "Accepted")
    assert plan.events
    assert plan.events[0].type == "Warning"


def test_a_bad_change_leaves_the_running_job_as_it_is() -> None:
    body = live()
    body |= {"spec": {"seeds": ["ftp://x/"]}, "metadata": {**body["metadata"], "generation": 4}}
    plan = reconcile_job(body, ObservedJob(job=job("news", stored=9)), NOW)
    assert plan.request is None
    assert conditions(plan)["Ready"] == ("False", "EarlierGeneration")
    assert conditions(plan)["Stalled"] == ("True", "Invalid")
    assert plan.status is not None
    assert plan.status["counts"]["stored"] == 9


@pytest.mark.parametrize(("final", "reason"), [(False, "Refused"), (True, "Invalid")])
def test_a_refusal_is_reported_and_tried_again_later(final: bool, reason: str) -> None:
    plan = reconcile_job(resource(), ObservedJob(refusal=Refusal("the system has no rule 'x'", final)), NOW)
    assert conditions(plan)["Accepted"] == ("False", reason)
    assert plan.again == "retry"


def test_without_the_control_api_what_was_accepted_stays_accepted() -> None:
    plan = reconcile_job(live(), ObservedJob(problem="http://x cannot be reached"), NOW)
    assert conditions(plan) == {
        "Accepted": ("True", "Applied"),
        "Ready": ("Unknown", "ControlApiUnavailable"),
        "Reconciling": ("True", "ControlApiUnavailable"),
        "Stalled": ("False", "ControlApiUnavailable"),
        "Progressing": ("Unknown", "ControlApiUnavailable"),
        "Degraded": ("Unknown", "ControlApiUnavailable"),
    }
    assert plan.again == "retry"
    plan = reconcile_job(resource(), ObservedJob(problem="http://x cannot be reached"), NOW)
    assert conditions(plan)["Accepted"] == ("Unknown", "ControlApiUnavailable")
    assert message(plan, "Accepted") == "http://x cannot be reached"


def test_seeds_that_were_refused_are_listed() -> None:
    refused = [job_types.RefusedSeed(url=f"http://{n}/", reason="bad") for n in range(30)]
    plan = reconcile_job(
        resource(), ObservedJob(job=job("news"), applied=applied(refused=refused, refused_count=30)), NOW
    )
    assert plan.status is not None
    assert len(plan.status["refusedSeeds"]) == 10
    assert "30 seeds were refused" in message(plan, "Accepted")


def test_deletion_removes_the_job_and_then_the_finalizer() -> None:
    body = live(deletionTimestamp=NOW, finalizers=["other", FINALIZER])
    plan = reconcile_job(body, ObservedJob(job=job("news")), NOW)
    assert isinstance(plan.request, job_types.JobName)
    assert plan.request.name == "news"
    plan = reconcile_job(body, ObservedJob(), NOW)
    assert plan.finalizers == ["other"]
    assert reconcile_job(live(deletionTimestamp=NOW, finalizers=[]), ObservedJob(), NOW) == ReconcilePlan(again="never")


def test_deletion_waits_for_the_control_api_and_says_so() -> None:
    plan = reconcile_job(live(deletionTimestamp=NOW), ObservedJob(problem="down"), NOW)
    assert (plan.finalizers, plan.request, plan.again) == (None, None, "retry")
    assert message(plan, "Accepted") == "the job cannot be deleted yet: down"


def _missing(rule: str) -> job_types.Degradation:
    return job_types.Degradation(reason="RuleMissing", cause=f"{rule} is deleted", since=1.0, remedy="apply it")


def test_a_job_that_lacks_a_rule_is_degraded_and_says_so_once() -> None:
    body = live()
    state = job("news", degraded=[_missing("shop")])
    plan = reconcile_job(body, ObservedJob(job=state, applied=applied()), NOW)
    assert conditions(plan)["Degraded"] == ("True", "RuleMissing")
    assert message(plan, "Degraded") == "shop is deleted; apply it"
    assert [(event.type, event.reason) for event in plan.events] == [("Warning", "RuleMissing")]
    again = reconcile_job({**body, "status": plan.status}, ObservedJob(job=state, applied=applied()), NOW)
    assert not again.events


def test_a_rule_that_came_back_heals_the_job() -> None:
    body = live()
    degraded = reconcile_job(body, ObservedJob(job=job("news", degraded=[_missing("shop")]), applied=applied()), NOW)
    healed = reconcile_job({**body, "status": degraded.status}, ObservedJob(job=job("news"), applied=applied()), NOW)
    assert conditions(healed)["Degraded"] == ("False", "Healthy")
    assert [(event.type, event.reason) for event in healed.events] == [("Normal", "Healthy")]


def test_a_rule_whose_newest_spec_is_refused_degrades_the_jobs_that_use_it() -> None:
    seen = ObservedJob(job=job("news"), applied=applied(), refused_rules={"shop": "spec.fields: missing"})
    plan = reconcile_job(live(), seen, NOW)
    assert conditions(plan)["Degraded"] == ("True", "RuleRefused")
    assert "spec.fields: missing" in message(plan, "Degraded")


def test_a_job_whose_state_is_not_known_is_not_called_healthy() -> None:
    plan = reconcile_job(live(), ObservedJob(problem="the API does not answer"), NOW)
    assert conditions(plan)["Degraded"] == ("Unknown", "ControlApiUnavailable")
