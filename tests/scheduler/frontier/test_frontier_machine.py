"""The frontier against a small model: any sequence of jobs, links, answers, receipts, pauses, crashes and clocks.

Short by default; NEPHILA_LONG=1 (make test-long) runs 100,000 operations, or NEPHILA_LONG_OPERATIONS of them.
"""

from __future__ import annotations

import os
import shutil
from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from nephila.kernel.documents.field_types import duration_text
from nephila.kernel.documents.job_schema import Politeness, Scope, Traps
from nephila.kernel.messages import FetchKind, Quarantine
from nephila.scheduler.frontier.host_table import novelty_of

from tests import state_machines
from tests.scheduler.frontier.frontier_inputs import ANSWERS, picks, uids, urls
from tests.scheduler.frontier.frontier_model import HOSTS, URL_OF, URLS
from tests.scheduler.frontier.frontier_rules import Inputs

LONG = bool(os.environ.get("NEPHILA_LONG"))
LONG_OPERATIONS = int(os.environ.get("NEPHILA_LONG_OPERATIONS", "100000"))
STEPS = 200


class FrontierMachine(Inputs):
    """One frontier, and whatever may happen to it."""

    operations: ClassVar[int] = 0
    """Made by all machines of this kind."""

    @rule(moves=st.lists(st.tuples(picks, st.sampled_from(["ok", "ok", "ok", *ANSWERS]), urls), min_size=1, max_size=8))
    def go_on(self, moves: list[tuple[int, str, str]]) -> None:
        """The crawl goes on for a while: answers, receipts and whatever is due next."""
        for pick, kind, goal in moves:
            self.wait_for_next()
            self.rig.check()
            self.robots(pick, "404", pick % 4 if pick % 3 else None)
            self.answer(
                pick, kind, goal, pick % 5 == 0, [URLS[pick % len(URLS)], URLS[pick // 3 % len(URLS)], goal][: pick % 4]
            )
            if pick % 2:
                self.receipts(pick, pick % 4)

    # ---- traps

    @rule(uid=uids, host=st.sampled_from(HOSTS), release=st.booleans())
    def quarantine(self, uid: str, host: str, release: bool) -> None:
        """A directory is closed as a trap, or opened again."""
        rig = self.rig
        job = rig.model.jobs.get(uid)
        if job is None:
            return
        if release:
            released = rig.scheduler.release(uid, host, "/d/")
            assert released == (host in job.closed), f"{uid}: {host} was opened: {released}; closed are {job.closed}"
            job.closed.discard(host)
            return
        frontier = rig.scheduler.frontier
        quarantine = Quarantine(uid, host, "/d/", "nothing new", rig.clock.now(), 100)
        known = frontier.hosts.get_or_create(host)
        novelty_of(known, frontier.jobs[uid]).restore(quarantine)
        known.changed = True
        frontier.note_quarantine(frontier.jobs[uid], known, quarantine)
        rig.scheduler.partition.wake()
        job.closed.add(host)

    # ---- time, disk, crashes

    @rule()
    def turn(self) -> None:
        """The scheduler works on what has come in."""
        self.rig.turn()

    @rule(seconds=st.sampled_from([0.1, 0.6, 2.0, 5.0, 30.0, 70.0, 400.0, 700.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.rig.clock.advance(seconds)

    @rule()
    def wait_for_next(self) -> None:
        """Time passes until something is due."""
        due = self.rig.clock.next_due
        if due is not None and due < self.rig.now + 7200:
            self.rig.clock.advance(max(0.0, due - self.rig.now))

    @rule(hours=st.sampled_from([-1, 1]), sure=st.integers(0, 3))
    def jump(self, hours: int, sure: int) -> None:
        """The wall clock is set."""
        if sure:
            return
        rig = self.rig
        rig.clock.jump(3600.0 * hours)
        if hours > 0:
            rig.jumped = True
            if rig.config.get("hot_hosts"):  # hosts are read anew from bytes, by the wall clock
                rig.model.free_at = dict.fromkeys(HOSTS, 0.0)

    @rule()
    def fsync(self) -> None:
        """What was written so far survives a power cut."""
        self.rig.scheduler.log.sync()
        self.rig.marks.synced = self.rig.scheduler.log.size

    @rule()
    def snapshot(self) -> None:
        """The log begins anew; no file of a job that was deleted stays."""
        rig = self.rig
        rig.turn()
        rig.scheduler.snapshot()
        numbers = {f"{job.number:05d}" for job in rig.scheduler.frontier.jobs.values()}
        assert {path.name.split("-")[1] for path in self.folder.glob("seen-*.run")} <= numbers

    @rule(
        lost=st.sampled_from([0.0, 0.0, 0.3, 0.8, 1.0]),
        later=st.sampled_from([0.0, 3.0, 1000.0]),
        booted=st.booleans(),
        sure=st.integers(0, 2),
    )
    def crash(self, lost: float, later: float, booted: bool, sure: int) -> None:
        """The program is killed, or the machine loses its power; a new program goes on."""
        if not sure:
            self.rig.crash(lost, later, booted)

    # ---- what must hold

    @invariant()
    def right(self) -> None:
        """One operation more was made, and between two turns the frontier says what the model says."""
        type(self).operations += 1
        if not self.rig.scheduler.partition.due:
            self.rig.check()

    def teardown(self) -> None:
        """With all limits lifted and every request answered each URL ends, and nothing is left over."""
        try:
            self.drain()
        finally:
            shutil.rmtree(self.folder)

    def drain(self) -> None:
        """Answer everything until nothing is to be done."""
        rig = self.rig
        rig.turn()
        for uid, job in list(rig.model.jobs.items()):
            manners = Politeness(delay=duration_text(job.delay_s), respect_robots=False)
            self.put(uid, scope=Scope(mode="any", max_depth=-1), politeness=manners, traps=Traps(off=True))
        end = rig.now + 3 * 86400
        while rig.now < end:
            rig.turn()
            for way in [*rig.on_way.values(), *rig.stale]:
                if way.request.kind is FetchKind.ROBOTS and way.state == "leased":
                    self.robots(0, "404", None)
                elif way.state == "leased" and rig.on_way.get((way.request.job, way.request.url_key), way) is way:
                    self.answer_ok(way)
            rig.turn()
            while rig.rows:
                self.receipts(0, 1)
            rig.turn()
            rig.check()
            due = rig.clock.next_due
            if due is None:
                break
            rig.clock.advance(max(0.0, due - rig.now))
        for uid, job in rig.model.jobs.items():
            assert job.admitted == set(job.ended), f"{uid}: {[URL_OF[key] for key in job.admitted - set(job.ended)]}"
            queued = rig.scheduler.frontier.jobs[uid].queue.length
            assert not queued, f"{uid}: {queued} URLs are left in queues"
        assert not rig.on_way, f"left on their way are {rig.on_way}"


KINDS = {
    "roomy": {"segment_bytes": 1 << 26},
    "snapshots": {"segment_bytes": 3000, "concurrency": 5, "window": 9},
    "cold hosts": {"segment_bytes": 20_000, "hot_hosts": 1, "per_address": 1, "address_gap_s": 0.5},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timeout(7200 if LONG else 120)
def test_any_sequence_of_operations(kind: str) -> None:
    """Whatever happens in whatever order, the frontier is the model."""
    machine = type("Machine", (FrontierMachine,), {"config": KINDS[kind]})
    wanted = LONG_OPERATIONS // len(KINDS) + 1 if LONG else 1000
    # A quarter more: some examples end early.
    examples, steps = (wanted * 5 // 4 // STEPS + 1, STEPS) if LONG else (20, 60)
    state_machines.run(machine, examples, steps, long=LONG)
    assert machine.operations >= wanted, f"{machine.operations} operations, not {wanted}"
