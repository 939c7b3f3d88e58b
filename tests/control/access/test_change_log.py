"""The log of changes: durable, bounded, the newest first, in a file and in a topic."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import ControlChange
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import NotReadyError
from nephila_control import system_types
from nephila_control.access import change_log
from nephila_control.access.change_log import FileChangeLog
from nephila_control.cluster.log import TopicChangeLog


class Published(list):
    """A topic."""

    away = False

    async def publish(self, entry):
        if self.away:
            raise NotReadyError("the broker is away")
        self.append(entry)


@pytest.fixture(params=["file", "topic"])
def rig(request, tmp_path):
    """A log, and one that begins where a program before it has ended."""
    clock, topic = ManualClock(), Published()

    def opened():
        if request.param == "file":
            return FileChangeLog(tmp_path, clock)
        log = TopicChangeLog(clock, topic.publish)
        for entry in topic:
            log.on_entry(entry)
        return log

    return clock, opened


async def test_a_change_for_somebody_else_names_both(rig):
    """It is in the list of each; another author is another entry."""
    _, opened = rig
    log = opened()
    await log.note("operator", "apply_job", "job news", "created", "anna@example.org")
    await log.note("operator", "apply_job", "job shop", "created", "client argocd-controller")
    log = opened()
    listed = (await log.read(system_types.ListControlLog(who="anna@example.org"))).entries
    assert [(entry.who, entry.author, entry.subject) for entry in listed] == [
        ("operator", "anna@example.org", "job news")
    ]
    assert len((await log.read(system_types.ListControlLog(who="operator"))).entries) == 2


async def entries(log, **asked):
    found = await log.read(system_types.ListControlLog(**asked))
    return [(one.who, one.operation, one.subject) for one in found.entries]


async def test_changes_are_there_after_a_restart(rig):
    """The newest first, with who and when."""
    clock, opened = rig
    log = opened()
    for name in ("news", "shop"):
        await log.note("anna", "pause_job", f"job {name}", "spec.paused: false → true")
        clock.advance(1)
    log = opened()
    assert await entries(log) == [("anna", "pause_job", "job shop"), ("anna", "pause_job", "job news")]
    (first, second) = (await log.read(system_types.ListControlLog())).entries
    assert first.at - second.at == pytest.approx(1)
    assert first.change == "spec.paused: false → true"


async def test_filters_and_pages(rig):
    """By who, by operation, by a part of object and change."""
    clock, opened = rig
    log = opened()
    for number in range(7):
        await log.note(f"user {number % 2}", "apply_job" if number % 3 else "delete_job", f"job J{number}", "created")
        clock.advance(1)
    assert len(await entries(log, who="user 1")) == 3
    assert len(await entries(log, operation="delete_job")) == 3
    assert await entries(log, search="j4") == [("user 0", "apply_job", "job J4")]
    shown, before = [], ""
    while page := await log.read(system_types.ListControlLog(limit=2, before=before)):
        shown += [one.subject for one in page.entries]
        if not (before := page.next):
            break
    assert shown == [f"job J{number}" for number in reversed(range(7))]


async def test_batches_of_seeds_are_one_entry(rig):
    """Within a minute, of one job, by one caller."""
    clock, opened = rig
    log = opened()
    for who, job in (("a", "news"), ("a", "news"), ("a", "shop"), ("b", "shop")):
        await log.note(who, "add_seeds", f"job {job}", "queued")
    assert len(await entries(log)) == 3
    clock.advance(change_log.MERGED_S)
    await log.note("b", "add_seeds", "job shop", "queued")
    assert len(await entries(log)) == 4


async def test_the_files_are_bounded(tmp_path, monkeypatch):
    """The oldest entries go."""
    monkeypatch.setattr(change_log, "MAX_BYTES", 1000)
    clock = ManualClock()
    log = FileChangeLog(tmp_path, clock)
    for number in range(100):
        await log.note("a", "pause_job", f"job {number}", "")
        clock.advance(1)
    assert sum(one.stat().st_size for one in tmp_path.iterdir()) <= 2000
    found = await entries(log, limit=200)
    assert found[0][2] == "job 99"
    assert 10 < len(found) < 100


async def test_a_torn_last_line_is_left_out(tmp_path):
    """As after a crash."""
    log = FileChangeLog(tmp_path, ManualClock())
    await log.note("a", "pause_job", "job news", "")
    path = tmp_path / change_log.FILE
    path.write_bytes(path.read_bytes() + b'["17')
    assert len(await entries(log)) == 1


async def test_a_change_that_is_done_is_answered_though_the_log_cannot_be_written(tmp_path, caplog):
    """The program's own log says so."""
    topic = Published()
    topic.away = True
    log = TopicChangeLog(ManualClock(), topic.publish)
    await log.note("a", "pause_job", "job news", "")
    await FileChangeLog(tmp_path / "gone", ManualClock()).note("a", "pause_job", "job news", "")
    assert caplog.text.count("the log of changes cannot be written") == 2


def test_an_entry_that_comes_twice_or_late_is_there_once():
    """Topics deliver at least once, and several servers write."""
    log = TopicChangeLog(ManualClock(), Published().publish)
    for number in (1, 3, 2, 3):
        log.on_entry(ControlChange(f"{number:013d}-a", "a", "pause_job", str(number), ""))
    assert [one.subject for one in log._entries] == ["1", "2", "3"]
