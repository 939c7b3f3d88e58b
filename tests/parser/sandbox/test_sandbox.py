"""What runs in the sandbox cannot harm, hold up or outlive those who asked for it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from nephila.parser.sandbox import BlockingSandbox, ChildError, Sandbox, Task
from nephila.parser.sandbox.guards import program

from tests.waits import until, wait_until


def taken(data: bytes) -> bytes:
    """A result that is checked: it must not be "wrong"."""
    if data == b"wrong":
        raise ValueError("not what was agreed")
    return data


TASK = Task("test", "tests.parser.sandbox_tasks", taken, wall_s=10.0, memory_bytes=64 << 20, max_result_bytes=1 << 20)


@asynccontextmanager
async def sandbox() -> AsyncIterator[Sandbox]:
    """A sandbox that leaves no process behind."""
    one = Sandbox()
    try:
        yield one
    finally:
        pids = one.pids
        await one.close()
        assert one.pids == []
        assert not any(alive(pid) for pid in pids)


async def under_way() -> None:
    """Calls reach a child that is there without a wait."""
    for _ in range(10):
        await asyncio.sleep(0)


def alive(pid: int) -> bool:
    """Whether there is such a process, a zombie included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def broken(reason: str, detail: str = "") -> Iterator[None]:
    """The call inside comes to nothing, for this reason."""
    with pytest.raises(ChildError) as caught:
        yield
    assert (caught.value.reason, detail in caught.value.detail) == (reason, True), str(caught.value)


async def test_bytes_in_bytes_out_in_one_child() -> None:
    """A child is used again; the payload may be larger than any buffer."""
    async with sandbox() as box:
        first = await box.call(TASK, b"pid")
        for size in (0, 1, 700_000, 1 << 20):
            assert await box.call(TASK, b"echo " + bytes(size)) == bytes(size)
        assert await box.call(TASK, b"pid") == first
        assert [str(pid).encode() for pid in box.pids] == [first]
        assert box.replaced == 0


@pytest.mark.parametrize(
    ("act", "reason", "detail"),
    [
        (b"spin", "timeout", "0.3 s"),
        (b"sleep 60", "timeout", "0.3 s"),
        (b"eat", "memory", "64 MiB"),
        (b"abort", "crash", "signal"),
        (b"segfault", "crash", "SIGSEGV"),
        (b"leave", "crash", "exit code 3"),
        (b"big 1048577", "result", "1,048,577 bytes"),
        (b"echo wrong", "result", "not what was agreed"),
        (b"forge", "result", "2,147,483,647 bytes"),
    ],
)
async def test_child_that_misbehaves_is_replaced_and_the_call_tried_twice(act: bytes, reason: str, detail: str) -> None:
    """The reason is told, the next call finds a new child."""
    async with sandbox() as box:
        before = await box.call(TASK, b"pid")
        with pytest.raises(ChildError) as caught:
            await box.call(TASK, act, wall_s=0.3 if reason == "timeout" else 60.0)
        assert (caught.value.reason, caught.value.attempts, box.replaced) == (reason, 2, 2)
        assert detail in caught.value.detail
        assert await box.call(TASK, b"pid") != before


async def test_exception_of_a_task_is_told_and_the_child_lives() -> None:
    """It would be raised again: no second try. Its words are made harmless."""
    async with sandbox() as box:
        before = await box.call(TASK, b"pid")
        with pytest.raises(ChildError) as caught:
            await box.call(TASK, b"raise")
        assert (caught.value.reason, caught.value.attempts) == ("error", 1)
        assert caught.value.detail.startswith("ValueError: bad")
        assert "\x1b" not in caught.value.detail
        assert await box.call(TASK, b"pid") == before


async def test_loop_goes_on_while_a_child_is_busy() -> None:
    """A call that waits for its limit holds up neither the loop nor another task's child."""
    other = replace(TASK, name="other")
    async with sandbox() as box:
        await asyncio.gather(box.call(TASK, b"pid"), box.call(other, b"pid"))
        stuck = asyncio.ensure_future(box.call(TASK, b"spin", wall_s=2.0, attempts=1))
        await asyncio.sleep(0)
        for number in range(5):
            assert await box.call(other, b"echo %d" % number) == b"%d" % number
        assert not stuck.done()
        with broken("timeout"):
            await stuck


async def test_calls_wait_in_their_order() -> None:
    """One child answers one call at a time."""
    async with sandbox() as box:
        found = await asyncio.gather(*(box.call(TASK, b"echo %d" % number) for number in range(20)))
        assert found == [b"%d" % number for number in range(20)]
        assert len(box.pids) == 1


async def test_cancelled_call_takes_its_child_along() -> None:
    """What a cancelled call would still answer must not be taken for the next answer."""
    async with sandbox() as box:
        before = await box.call(TASK, b"pid")
        call = asyncio.ensure_future(box.call(TASK, b"sleep 30"))
        await under_way()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await box.call(TASK, b"pid") != before


async def test_closing_ends_calls_under_way_and_waiting() -> None:
    """Nobody waits for ever for a child that is gone."""
    box = Sandbox()
    await box.call(TASK, b"pid")
    pids = box.pids
    calls = [asyncio.ensure_future(box.call(TASK, b"sleep 60")) for _ in range(3)]
    await under_way()
    await box.close()
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(end, ChildError) for end in ends)
    assert not any(map(alive, pids))
    with broken("unavailable", "closed"):
        await box.call(TASK, b"pid")


async def test_child_nobody_asks_is_ended() -> None:
    """After its idle time there is no process, and the next call begins a new one."""
    box = Sandbox(idle_s=0.1)
    before = await box.call(TASK, b"pid")
    await until(lambda: not box.pids)
    assert await box.call(TASK, b"pid") != before
    await box.close()


async def test_module_that_cannot_be_imported_is_told_once_and_for_all() -> None:
    """A missing library is no crash, and starts no process for every page."""
    async with sandbox() as box:
        missing = replace(TASK, module="no_such_library_here")
        for _ in range(2):
            with broken("unavailable", "no_such_library_here"):
                await box.call(missing, b"")
        assert box.pids == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="seccomp is Linux'")
@pytest.mark.parametrize("act", ["read", "write", "connect", "fork", "exec", "kill"])
def test_nothing_can_be_opened_reached_or_started(act: str) -> None:
    """Files, sockets, processes and signals are refused with EPERM, and the child lives on."""
    with BlockingSandbox() as box:
        assert box.call(TASK, b"try " + act.encode()) == b"refused: 1"
        assert box.call(TASK, b"echo still here") == b"still here"


def test_child_inherits_neither_passwords_nor_a_voice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment variables stay out but those to import by; what is printed is no answer."""
    monkeypatch.setenv("NEPHILA_STORAGE__PASSWORD", "secret")
    with BlockingSandbox() as box:
        assert "NEPHILA_STORAGE__PASSWORD" not in box.call(TASK, b"surroundings").decode().split("\n")
        assert box.call(TASK, b"chatter") == b"said"


def test_the_channel_is_not_standard_input() -> None:
    """A library that reads finds an end; the child answers the next call."""
    with BlockingSandbox() as box:
        assert box.call(TASK, b"listen") == b"'' b''"
        assert box.call(TASK, b"echo on") == b"on"


async def test_a_task_with_other_arguments_gets_a_new_child() -> None:
    """What `prepare` had is that of the call; a child of other arguments ends."""
    one, two = replace(TASK, arguments=("a", "b")), replace(TASK, arguments=("c",))
    async with sandbox() as box:
        assert await box.call(TASK, b"arguments") == b""
        for task, words in ((one, b"a b"), (one, b"a b"), (two, b"c"), (one, b"a b")):
            assert await box.call(task, b"arguments") == words
        await until(lambda: len(box.pids) == 1)


@pytest.mark.parametrize(
    ("act", "reason"), [(b"spin", "timeout"), (b"eat", "memory"), (b"abort", "crash"), (b"raise", "error")]
)
def test_commands_have_the_same_without_a_loop(act: bytes, reason: str) -> None:
    """The same reasons, tries and replacements, and no process is left."""
    with BlockingSandbox() as box:
        before = box.call(TASK, b"pid")
        with pytest.raises(ChildError) as caught:
            box.call(TASK, act, wall_s=0.3 if reason == "timeout" else 60.0)
        assert (caught.value.reason, caught.value.attempts) == (reason, 1 if reason == "error" else 2)
        assert (box.call(TASK, b"pid") == before) is (reason == "error")
        pids = box.pids
    assert pids
    assert not any(map(alive, pids))


PARENT = """
import sys
from nephila.parser.sandbox import BlockingSandbox, Task
box = BlockingSandbox()
task = Task("test", "tests.parser.sandbox_tasks", bytes)
print(box.call(task, b"pid").decode(), flush=True)
try:
    print(box.call(task, b"sleep 0.5").decode(), flush=True)
except BaseException as error:
    print(type(error).__name__, flush=True)
print(box.call(task, b"pid").decode(), flush=True)
box.call(task, b"spin", wall_s=60)
"""


def started() -> subprocess.Popen[str]:
    """A program with a child, in a group of processes of its own, as a shell starts it."""
    root = Path(__file__).resolve().parents[3]
    paths = [str(root / "services"), str(root)]
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PARENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a child with its parent")
def test_child_ends_with_a_parent_that_is_killed() -> None:
    """kill -9 of the program leaves no orphan, not even one that computes."""
    parent = started()
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    wait_until(lambda: not running(pid))


def running(pid: int) -> bool:
    """Whether a process that is not ours is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_ctrl_c_does_not_reach_the_child() -> None:
    """SIGINT goes to the terminal's group of processes; the child is in none of it and would ignore it."""
    with BlockingSandbox() as box:
        before = box.call(TASK, b"pid")
        assert os.getpgid(box.pids[0]) != os.getpgrp()
        os.kill(box.pids[0], signal.SIGINT)
        assert box.call(TASK, b"pid") == before


def test_filter_jumps_to_the_verdicts() -> None:
    """Run by hand: calls on the list pass, others are refused, another machine's kill."""
    code = program([0, 5, 9], 0xC000003E)
    lines = [code[at : at + 8] for at in range(0, len(code), 8)]

    def verdict(number: int, audit: int = 0xC000003E) -> int:
        data, at, value = {0: number, 4: audit}, 0, 0
        while True:
            what, jump, over = int.from_bytes(lines[at][:2], "little"), lines[at][2], lines[at][3]
            operand = int.from_bytes(lines[at][4:], "little")
            if what == 0x06:
                return operand
            if what == 0x20:
                value = data[operand]
            at += 1 + ((jump if value == operand else over) if what == 0x15 else 0)

    assert [verdict(number) for number in (0, 5, 9)] == [0x7FFF0000] * 3
    assert [verdict(number) for number in (1, 4, 41, 1 << 30)] == [0x00050001] * 4
    assert verdict(0, audit=0x40000003) == 0x80000000
