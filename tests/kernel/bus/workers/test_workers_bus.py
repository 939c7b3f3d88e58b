"""Requests go to workers and what becomes of them comes back, whatever dies on the way; without processes."""

from __future__ import annotations

import pytest
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery, Receipt
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.workers.bus import LOADED_AT, Workers
from nephila.kernel.bus.workers.protocol import Drain, Forget
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import DEAD, JOBS, OUTCOMES, RECORDS, REQUESTS, RULE_VERDICTS

from tests.kernel.bus.workers.far_worker import FarWorker, request


class Rig:
    """The main process: its bus, the workers' bus, and what its services would see."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.bus = LocalBus(self.clock)
        self.calls: list[str] = []
        self.workers = Workers(
            self.bus,
            self.clock,
            on_busy=lambda: self.calls.append("busy"),
            on_loaded=lambda: self.calls.append("loaded"),
        )
        self.outcomes: list[m.FetchOutcome] = []
        self.records: list[Delivery] = []
        self.dead: list[m.DeadLetter] = []
        self.bus.subscribe(OUTCOMES, "scheduler", lambda d: (self.outcomes.append(d.message), d.ack()), credits=999)
        self.bus.subscribe(RECORDS, "storage", self.records.append, credits=999)
        self.bus.subscribe(DEAD, "x", lambda d: (self.dead.append(d.message), d.ack()), credits=999)
        self.workers.start()

    def worker(self, number: int = 1) -> FarWorker:
        """One that takes requests."""
        return FarWorker(self.workers, self.clock, number).join()

    def ask(self, *urls: str) -> list[Receipt]:
        """Publish requests as the scheduler does."""
        return [self.bus.publish(REQUESTS, 3, request(url)) for url in urls]

    def results(self) -> list[tuple[str, str]]:
        """(URL, result) of the outcomes that have come."""
        return [(one.url_key.rstrip(b".").decode(), one.result.name) for one in self.outcomes]


@pytest.fixture
def rig() -> Rig:
    """A main process without workers."""
    return Rig()


def test_a_request_is_acked_when_its_record_is_durable_and_its_outcome_taken(rig):
    """The ack travels: storage acks the record here, the worker acks the request there, the receipt resolves here."""
    worker = rig.worker()
    (receipt,) = rig.ask("a/1")
    assert (worker.urls, worker.requests[0].partition) == (["a/1"], 3)
    worker.end("a/1")
    assert rig.results() == [("a/1", "FETCHED")]
    assert not receipt.done
    rig.records[0].ack()
    assert receipt.done
    assert rig.bus.unacked == 0
    assert worker.member.load == 0


def test_without_a_worker_requests_wait_in_order(rig):
    """The first to join gets them all, jobs first, the newest of each and no deleted one."""
    for job in (m.CrawlJob("j", generation=1), m.CrawlJob("gone"), m.CrawlJob("j", generation=2)):
        assert rig.bus.publish(JOBS, 0, job).done
    rig.bus.publish(JOBS, 0, m.CrawlJob("gone", deleted=True))
    rig.ask("a/1", "b/2", "a/3")
    assert rig.workers.waiting == 3
    worker = rig.worker()
    assert worker.order == ["j", "a/1", "b/2", "a/3"]
    assert [job.generation for job in worker.jobs] == [2]


def test_a_job_is_told_to_every_worker(rig):
    """Its receipt waits for all of them, as for any group."""
    first, second = rig.worker(1), rig.worker(2)
    assert rig.bus.publish(JOBS, 0, m.CrawlJob("j")).done
    assert len(first.jobs) == len(second.jobs) == 1


def test_a_host_stays_where_it_is_and_new_hosts_go_where_there_is_least(rig):
    """Two requests of a host share a worker; the next host goes to the other."""
    first, second = rig.worker(1), rig.worker(2)
    rig.ask("a/1", "a/2", "b/1", "c/1", "a/3")
    assert sorted(map(len, (first.urls, second.urls))) == [2, 3]
    assert {frozenset(first.urls), frozenset(second.urls)} == {
        frozenset(["a/1", "a/2", "a/3"]),
        frozenset(["b/1", "c/1"]),
    }


def test_work_for_one_more_worker_is_reported(rig):
    """When a worker holds more than LOADED_AT requests; and when an idle one gets its first."""
    worker = rig.worker()
    rig.ask(*(f"h{number}/1" for number in range(LOADED_AT)))
    assert rig.calls == ["busy"]
    rig.ask("more/1", "more/2")
    assert rig.calls == ["busy", "loaded", "loaded"]
    worker.end("h0/1")
    worker.end("more/1")
    rig.ask("last/1")
    assert rig.calls[3:] == ["loaded"] * (worker.member.load > LOADED_AT)


def test_a_dead_worker_loses_what_is_not_done(rig):
    """Lost are: no outcome, and an outcome whose record has not come. What has both is main's own."""
    worker = rig.worker()
    receipts = rig.ask("a/whole", "b/page", "c/open", "d/failed")
    worker.end("a/whole")
    worker.end("b/page", record=False)
    worker.end("d/failed", m.FetchResult.FAILED)
    assert worker.die() == 2
    assert rig.results()[3:] == [("b/page", "LOST"), ("c/open", "LOST")]
    assert [one.reason for one in rig.outcomes[3:]] == ["worker_died", "worker_died"]
    assert all(receipt.done for receipt in receipts)
    rig.records[0].ack()
    assert rig.bus.unacked == 0


def test_lost_hosts_rest_as_after_a_fetch(rig):
    """Nobody knows when the fetch ended: the outcome says that it was made."""
    worker = rig.worker()
    rig.ask("a/1")
    begun = rig.clock.now()
    rig.clock.advance(2)
    worker.die()
    assert (rig.outcomes[0].started_at, rig.outcomes[0].ended_at) == (begun, begun + 2)


def test_the_hosts_of_a_dead_worker_go_to_the_others(rig):
    """What comes later for them is placed anew."""
    first, second = rig.worker(1), rig.worker(2)
    rig.ask("a/1", "b/1")
    dead, alive = (first, second) if first.urls == ["a/1"] else (second, first)
    dead.die()
    rig.ask("a/2")
    assert alive.urls == ["b/1", "a/2"]


def test_suspects_are_tried_one_at_a_time(rig):
    """What was in a dead worker's hands is tried alone; everything else goes on elsewhere, and afterwards here."""
    rig.workers.lost(_with(rig, "a/1", "b/1", "c/1").member)
    first, second = rig.worker(2), rig.worker(3)
    rig.ask("a/1", "b/1", "c/1", "x/1", "y/1")
    worker, other = (first, second) if "a/1" in first.urls else (second, first)
    assert worker.urls == ["a/1"]
    assert other.urls == ["x/1", "y/1"]
    worker.end("a/1")
    assert worker.urls == ["b/1"]
    worker.end("b/1", m.FetchResult.FAILED)
    worker.end("c/1")
    rig.ask("a/2", "p/1", "q/1", "r/1")
    assert len(worker.urls) + len(other.urls) == 6
    assert worker.urls


def test_a_suspect_waits_until_its_worker_has_nothing_else(rig):
    """With one worker it ends what it has first; then the suspect, alone; then whatever waited."""
    rig.workers.lost(_with(rig, "a/1").member)
    worker = rig.worker()
    rig.ask("x/1", "a/1", "y/1")
    assert worker.urls == ["x/1"]
    worker.end("x/1")
    assert worker.urls == ["a/1"]
    worker.end("a/1")
    assert worker.urls == ["y/1"]


def test_a_url_that_was_alone_at_two_deaths_is_a_dead_letter(rig):
    """It ends as failed(dead_letter); those that came through are suspects no more."""
    rig.workers.lost(_with(rig, "a/good", "b/bad").member)
    for _ in range(2):
        worker = rig.worker()
        rig.ask("b/bad")
        assert worker.urls == ["b/bad"]
        assert worker.die() == 1
    assert rig.results()[-2:] == [("b/bad", "LOST"), ("b/bad", "FAILED")]
    assert rig.outcomes[-1].reason == "dead_letter"
    assert [(letter.topic, letter.service, letter.url) for letter in rig.dead] == [("requests", "worker", "b/bad")]
    worker = rig.worker()
    rig.ask("a/good")
    worker.end("a/good")
    rig.ask("x/1", "y/1")
    assert worker.urls == ["x/1", "y/1"]


def test_a_suspect_that_was_given_back_is_still_one(rig):
    """Nothing was tried: it is alone again when it comes again."""
    rig.workers.lost(_with(rig, "a/1").member)
    worker = rig.worker()
    rig.ask("a/1")
    worker.end("a/1", m.FetchResult.UNSPECIFIED)
    rig.ask("x/1", "a/1", "y/1")
    assert worker.urls == ["x/1"]


def test_a_late_outcome_of_an_earlier_attempt_ends_nothing(rig):
    """The scheduler gave up waiting and asked again: the new request is what counts."""
    worker = rig.worker()
    rig.ask("a/1")
    rig.bus.publish(REQUESTS, 3, request("a/1", attempt=2))
    worker.end("a/1")
    assert worker.member.load == 1
    assert worker.die() == 1


def test_drain_gives_back_what_no_worker_has_and_tells_the_others(rig):
    """What waits, and what comes during a drain, goes back at once, undialled."""
    rig.ask("a/1")
    rig.workers.drain(2.5)
    rig.ask("b/1")
    assert rig.results() == [("a/1", "UNSPECIFIED"), ("b/1", "UNSPECIFIED")]
    assert all(one.started_at == 0 for one in rig.outcomes)
    busy = Rig()
    worker = busy.worker()
    busy.ask("a/1")
    busy.workers.drain(2.5)
    assert [(type(word), word.grace_s) for word in worker.words] == [(Drain, 2.5)]
    assert busy.outcomes == []


def test_a_scope_that_grows_a_thousand_times_in_a_turn_is_told_once(rig):
    """Every worker hears of it, once for each job."""
    worker = rig.worker()
    for _ in range(1000):
        rig.workers.forget("j")
    rig.clock.run_due()
    assert [(type(word), word.job) for word in worker.words] == [(Forget, "j")]


def _with(rig: Rig, *urls: str) -> FarWorker:
    """A worker that has these in its hands."""
    worker = rig.worker()
    rig.ask(*urls)
    assert worker.urls == list(urls)
    return worker


def test_a_verdict_on_a_rule_is_told_to_every_worker_and_to_those_that_come_later(rig):
    """The newest of each rule, before any job; not one of a rule that is gone."""
    early, reported = rig.worker(1), {1: [], 2: []}
    early.bus.subscribe(RULE_VERDICTS, "w", lambda d: (reported[1].append(d.message.rule), d.ack()), credits=99)
    for verdict in (m.RuleVerdict("r", 1), m.RuleVerdict("s"), m.RuleVerdict("r", 2, degraded=True)):
        assert rig.bus.publish(RULE_VERDICTS, 0, verdict).done
    rig.bus.publish(RULE_VERDICTS, 0, m.RuleVerdict("s", deleted=True))
    assert reported[1] == ["r", "s", "r", "s"]
    late = FarWorker(rig.workers, rig.clock, 2)
    late.bus.subscribe(RULE_VERDICTS, "w", lambda d: (reported[2].append(d.message), d.ack()), credits=99)
    late.join()
    assert reported[2] == [m.RuleVerdict("r", 2, degraded=True)]
