"""Memory of a browser while it runs: what is counted, what the kernel limits, and which page ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from nephila.kernel.documents.browser_schema import Browser, Wait
from nephila.kernel.runtime.clock import SystemClock
from nephila_browser.contract import GatewayAddress
from nephila_browser.engine import RenderError, RenderTask
from nephila_browser.instructions import PageInstructions
from nephila_browser.memory_cgroup import PREFIX, MemoryCgroup, delete_abandoned_cgroups
from nephila_browser.playwright_engine import PlaywrightEngine
from nephila_browser.pool import BrowserPool
from nephila_browser.process_tree import GroupMemory

from tests.browser.fake_engine import task

MB = 1 << 20
GREEDY = "data:text/html,<script>a=[];setInterval(()=>a.push(new Uint8Array(2e7).fill(1)),5)</script>"
"""Takes up to 4 GB a second, and is never idle."""
SLEEPER = "import sys; kept = bytearray(int(sys.argv[1])); print(len(kept), flush=True); sys.stdin.read()"


@contextlib.contextmanager
def sleeping(size: int, group: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process with so much memory, in a group of its own or in another one."""
    words = [sys.executable, "-I", "-S", "-c", SLEEPER, str(size)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=group or 0)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process
    finally:
        process.communicate()


def test_the_memory_of_a_group_follows_processes_that_come_and_end() -> None:
    """A reading names each process of the group, new ones included; processes of others do not count."""
    with sleeping(20 * MB) as leader, sleeping(90 * MB):
        memory = GroupMemory(leader.pid)
        assert set(memory.read()) == {leader.pid}
        assert 20 * MB < memory.read()[leader.pid] < 60 * MB
        with sleeping(50 * MB, leader.pid) as second:
            found = memory.read()
            assert set(found) == {leader.pid, second.pid}
            assert found[second.pid] > 50 * MB
        assert set(memory.read()) == {leader.pid}


def slowly(url: str, wait_s: float) -> RenderTask:
    """A page that stays open."""
    browser = Browser(wait=Wait(until="dom", time=f"{wait_s:g}s"))
    return msgspec.structs.replace(task(url), instructions=PageInstructions(browser, ()))


@pytest.mark.full
@pytest.mark.parametrize("held_by", ["pool", "kernel"])
async def test_a_page_that_takes_all_memory_ends_alone(chromium: str, held_by: str) -> None:
    """The other page of the same Chromium is completed, by a reading of memory as by the limit of a cgroup."""
    limit = 600 * MB
    if held_by == "kernel":
        cgroup = MemoryCgroup.make(limit)
        if cgroup is None:
            pytest.skip("this user may make no cgroup")
        cgroup.delete()
    engine = PlaywrightEngine(
        *(chromium, GatewayAddress("127.0.0.1", 1, "", ""), ()),
        sandbox=False,
        max_memory_bytes=limit if held_by == "kernel" else 0,
    )
    watched = limit if held_by == "pool" else 0
    pool = BrowserPool(engine, SystemClock(), processes=1, pages=2, max_uses=0, max_memory_bytes=watched)
    try:
        good = asyncio.ensure_future(pool.render(slowly("data:text/html,<p>alive", 8)))
        with pytest.raises(RenderError) as failed:
            await pool.render(slowly(GREEDY, 25))
        assert failed.value.reason == "browser_memory"
        assert not good.done(), "the page took too long to be ended for this test"
        assert b"alive" in (await good).html
        assert (pool.launched, pool.crashes, dict(pool.retired)) == (1, 0, {"memory": 1})
    finally:
        await pool.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_cgroup_has_the_limit_and_counts_its_kills(tmp_path: Path, version: int) -> None:
    """The files of both versions; a process that may not enter is no fault."""
    membership = tmp_path / "membership"
    if version == 2:
        place = tmp_path / "user"
        (place / "own").mkdir(parents=True)
        (place / "own" / "memory.max").touch()
        (place / "cgroup.procs").touch()
        membership.write_text("0::/user/own\n")
    else:
        place = tmp_path / "memory" / "pod"
        place.mkdir(parents=True)
        membership.write_text("5:cpu,cpuacct:/pod\n4:memory:/pod\n0::/\n")
    made: list[Path] = []

    def mkdir(path: Path) -> None:  # the kernel makes the files
        os.mkdir(path)
        for name in ("cgroup.procs", "memory.max", "memory.limit_in_bytes"):
            (path / name).touch()
        made.append(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "mkdir", mkdir)
        cgroup = MemoryCgroup.make(5000, tmp_path, membership)
    assert cgroup is not None
    assert [path.parent for path in made] == [place]
    assert (cgroup.path / ("memory.max" if version == 2 else "memory.limit_in_bytes")).read_text() == "5000"
    assert cgroup.kills() == 0
    events = cgroup.path / ("memory.events" if version == 2 else "memory.oom_control")
    events.write_text("oom 3\noom_kill 2\n")
    assert cgroup.kills() == 2
    cgroup.enter()
    assert not cgroup.delete(), "files are in it, as processes would be"
    shutil.rmtree(cgroup.path)
    assert cgroup.delete()
    gone = place / f"{PREFIX}{2**22 + 1}-0"
    gone.mkdir()
    own = place / f"{PREFIX}{os.getpid()}-7"
    own.mkdir()
    assert delete_abandoned_cgroups(tmp_path, membership) == [gone.name]
    assert own.is_dir()


@pytest.mark.parametrize("lines", ["", "0::/\n", "4:cpu:/a\n0::/none\n"])
def test_without_a_place_there_is_no_cgroup(tmp_path: Path, lines: str) -> None:
    """In a container, without rights, or where no memory is counted: memory is watched only."""
    (tmp_path / "membership").write_text(lines)
    assert MemoryCgroup.make(5000, tmp_path, tmp_path / "membership") is None
