"""Setup and end of a process: signals, open files, the death of its parent, failpoints, free space."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nephila.kernel.process import parent_death, process_setup
from nephila.kernel.process.disk import disk_space
from nephila.kernel.process.stop_signals import STOP_SIGNALS, stopped_by


@pytest.fixture
def hangup() -> Iterator[None]:
    """SIGHUP as it was before the test."""
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("ignored", [False, True], ids=["terminal", "nohup"])
def test_signals_stop_a_program_until_the_block_ends(hangup: None, ignored: bool) -> None:
    """Each with its number; a SIGHUP that is ignored stays ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    handlers: dict[int, tuple[Any, ...]] = {}
    loop: Any = SimpleNamespace(
        add_signal_handler=lambda number, *call: handlers.update({number: call}), remove_signal_handler=handlers.pop
    )
    stopped: list[signal.Signals] = []

    def deliver() -> None:
        with stopped_by(loop, stopped.append):
            for call, *values in handlers.values():
                call(*values)
            raise KeyError("of the block")

    with pytest.raises(KeyError, match="of the block"):
        deliver()
    expected = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    assert list(STOP_SIGNALS) == expected
    assert stopped == (expected[:2] if ignored else expected)
    assert not handlers


@pytest.mark.parametrize(
    ("soft", "hard", "set_to"),
    [
        (1024, 4096, (4096, 4096)),
        (1024, 1_000_000, (65_536, 1_000_000)),
        (4096, 4096, None),
        (100_000, 1_000_000, None),
        (65_536, 65_537, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
        (1024, resource.RLIM_INFINITY, (65_536, resource.RLIM_INFINITY)),
    ],
)
def test_the_limit_of_open_files_is_raised(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, set_to: tuple[int, int] | None
) -> None:
    """To the hard limit, or to what is enough; a limit above that is not lowered."""
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: limits.append(pair))
    process_setup.raise_open_files()
    assert limits == ([set_to] if set_to else [])


def test_a_limit_that_may_not_be_raised_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may forbid it; the program starts."""

    def refused(*_: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1, 2))
    monkeypatch.setattr(resource, "setrlimit", refused)
    process_setup.raise_open_files()


def test_the_loop_returns_what_the_program_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector runs rarely; with and without uvloop."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)

    async def program() -> int:
        await asyncio.sleep(0)
        return 7

    try:
        assert process_setup.run_loop(program()) == 7
        assert gc.get_threshold()[0] > 700
        monkeypatch.setitem(sys.modules, "uvloop", None)
        assert process_setup.run_loop(program()) == 7
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def test_memory_is_kept_and_freed_where_the_c_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of mallopt(3) with their values; another C library has none."""
    calls: list[tuple[int, ...]] = []
    library = SimpleNamespace(mallopt=lambda *pair: calls.append(pair), malloc_trim=lambda pad: calls.append((pad,)))
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    process_setup.keep_memory()
    assert dict(calls) == {-3: 32 << 20, -1: 64 << 20, -2: 4 << 20}  # type: ignore[arg-type]
    calls.clear()
    process_setup.free_unused_memory()
    assert calls == [(0,)]
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    process_setup.keep_memory()
    process_setup.free_unused_memory()


def test_cores_are_those_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all of the machine, where the system has such a set."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 7})
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert process_setup.usable_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert process_setup.usable_cores() == 64


@pytest.mark.skipif(sys.platform != "linux", reason="prctl(2)")
def test_a_child_ends_with_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose parent ended before it could ask for that."""
    asked: list[tuple[int, ...]] = []
    ended: list[int] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(prctl=lambda *values: asked.append(values)))
    monkeypatch.setattr(os, "_exit", ended.append)
    parent_death.die_with(os.getppid())
    assert (asked, ended) == ([(1, signal.SIGKILL)], [])
    parent_death.die_with(os.getppid() + 1)
    assert ended == [1]


FAILPOINT = """
from nephila.kernel.runtime.failpoints import reach, reach_with
for number in range(1, 4):
    print(number, flush=True)
    reach("snapshot")
    reach_with("parse", f"http://a.test/{number}")
"""


@pytest.mark.parametrize(
    ("failpoint", "passes"),
    [("snapshot", 1), ("snapshot:2", 2), ("parse:/3", 3), ("restore", 3), ("", 3), ("parse:/9", 3)],
)
def test_a_failpoint_kills_at_its_pass(failpoint: str, passes: int) -> None:
    """The first, the n-th, or the one with a text; others kill nothing."""
    services = str(Path(process_setup.__file__).parents[3])
    code = f"import sys; sys.path.insert(0, {services!r})\n" + FAILPOINT
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NEPHILA_FAILPOINT": failpoint},
        capture_output=True,
        check=False,
    )
    assert found.stdout.decode().split() == [str(number) for number in range(1, passes + 1)]
    killed = failpoint in ("snapshot", "snapshot:2", "parse:/3")
    assert found.returncode == (-signal.SIGKILL if killed else 0), found.stderr


def test_free_space_of_a_directory_that_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the space where the directory would be created."""
    asked: list[Path] = []

    def usage(place: Path) -> Any:
        asked.append(place)
        return SimpleNamespace(total=3, used=2, free=1)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    monkeypatch.chdir(tmp_path)
    assert [disk_space(one) for one in (tmp_path, tmp_path / "a" / "b", Path("c"))] == [(1, 3)] * 3
    assert asked == [tmp_path] * 3
