"""An exclusion that is tried: what it would remove from the queue, in bounded steps, without a change."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UsageError
from nephila.scheduler.engine import exclusion_trial
from nephila.scheduler.engine.exclusion_trial import EXAMPLES, ExclusionTrial, Partition

from tests.scheduler.world import JOB, Answer, World, site


async def queue(directory, count=100, **spec):
    """A host that is fetched slowly, with URLs of two parts."""
    world = await World(directory, site({"/0": []})).start()
    world.crawl(*(f"http://a.test/{'cal' if number % 4 == 0 else 'doc'}/{number}" for number in range(count)), **spec)
    return world


def tried(world, *exclude, clock=None):
    """The whole walk."""
    trial = world.scheduler.try_exclusion(JOB, exclude)
    while not trial.done:
        trial.step()
    return trial


async def test_matching_urls_are_counted_and_some_are_shown(tmp_path):
    """Nothing is changed."""
    world = await queue(tmp_path)
    job = world.scheduler.frontier.jobs[JOB]
    before = job.queue.length
    found = tried(world, "/cal/")
    in_flight = len(world.scheduler.frontier.in_flight.leases)
    assert (found.looked_at, found.complete) == (before, True)
    assert 25 - in_flight <= found.removed <= 25
    assert len(found.examples) == len(set(found.examples)) == EXAMPLES
    assert all("/cal/" in url for url in found.examples)
    assert job.queue.length == before
    assert tried(world, "nothing").removed == 0
    assert tried(world, "/cal/1", "/cal/2", "/cal/").removed == found.removed


async def test_the_count_is_what_the_changed_job_drops(tmp_path):
    """The same URLs end as excluded when the exclusion is added."""
    world = await queue(tmp_path)
    expected = tried(world, "/cal/").removed
    world.crawl(scope=Scope(max_depth=-1, exclude=["/cal/"]))
    world.run()
    assert list(world.outcomes().values()).count("dropped(excluded)") == expected


async def test_what_the_scope_drops_already_does_not_count(tmp_path):
    """It would not be fetched without the new exclusion."""
    world = await queue(tmp_path)
    world.crawl(scope=Scope(max_depth=-1, exclude=["/cal/"]))
    assert tried(world, "/cal/").removed == 0


async def test_delayed_urls_count(tmp_path):
    """A URL that waits for its next try is in the queue."""
    world = await World(tmp_path, lambda request: Answer(status=500)).start()
    world.crawl("http://a.test/0")
    job = world.scheduler.frontier.jobs[JOB]
    for _ in range(50):
        if not job.queue.delayed:
            world.clock.advance(0.1)
    assert (job.queue.length, tried(world, "/0").removed) == (1, 1)


async def test_a_limit_makes_the_count_a_lower_bound(tmp_path, monkeypatch):
    """The rest is not looked at."""
    monkeypatch.setattr(exclusion_trial, "LOOKED_AT", 50)
    world = await queue(tmp_path, 300)
    found = tried(world, ".")
    assert not found.complete
    assert 50 <= found.removed == found.looked_at < 300


async def test_a_step_ends_when_its_time_is_over(tmp_path):
    """However many URLs are left."""

    class Slow(ManualClock):
        def monotonic(self):
            self.advance(exclusion_trial.STEP_S / 3)
            return super().monotonic()

    world = await queue(tmp_path, 1000)
    frontier = world.scheduler.frontier
    trial = ExclusionTrial([Partition(frontier, frontier.jobs[JOB])], ["."], Slow())
    trial.step()
    assert 0 < trial.looked_at < 300
    assert not trial.done


async def test_a_checkpoint_between_two_steps_counts_no_url_twice(tmp_path):
    """The URLs of a host move to a file then."""
    world = await queue(tmp_path, 400)
    trial = world.scheduler.try_exclusion(JOB, ["."])
    frontier = world.scheduler.frontier
    queued = frontier.jobs[JOB].queue.length
    part = Partition(frontier, frontier.jobs[JOB])
    trial._piece(part)
    world.scheduler.snapshot()
    while not trial.done:
        trial._piece(part)
    assert trial.removed <= queued


async def test_an_unknown_job_and_a_wrong_expression(tmp_path):
    """None, and one line."""
    world = await queue(tmp_path, 1)
    assert world.scheduler.try_exclusion("nobody", ["."]) is None
    with pytest.raises(UsageError, match="is not a valid RE2 expression"):
        world.scheduler.try_exclusion(JOB, ["("])
