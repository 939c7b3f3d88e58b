"""Chromium that does not start, is cancelled, or fails beside others: nothing is left, and the others continue."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from nephila_browser import chromium as chromium_process
from nephila_browser import playwright_engine
from nephila_browser.chromium import Chromium
from nephila_browser.contract import GatewayAddress
from nephila_browser.devtools_pipe import DevToolsPipe, PipeEnds
from nephila_browser.engine import BrowserGoneError, RenderError
from nephila_browser.playwright_engine import PlaywrightEngine
from nephila_browser.process_tree import members_of

from tests.browser.fake_engine import task

GATEWAY = GatewayAddress("127.0.0.1", 1, "", "")


def holder(executable: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """What the driver starts as its browser; descriptors 3 and 4 lead to nobody."""
    words = ["/bin/sh", "-c", 'exec "$0" "$@" 3</dev/null 4>/dev/null', executable, *arguments]
    return subprocess.Popen(words, stderr=subprocess.DEVNULL)


async def never_connected(executable: str, arguments: Sequence[str]) -> None:
    """A driver that waits for a browser that does not answer."""
    process = holder(executable, arguments)
    try:
        await asyncio.Event().wait()
    finally:
        process.kill()
        process.wait()


def listening(group: int) -> list[str]:
    """Local addresses on which a process of a group accepts TCP connections."""
    sockets = set()
    for pid in members_of(group):
        with contextlib.suppress(OSError):  # a process that has just ended
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.append(fields[1])
    return found


def left_of_start(folder: Path) -> list[Path]:
    """Profiles, and the process whose id is in the file pid."""
    texts = [marker.read_text().strip() for marker in folder.glob("pid")]
    pids = [Path("/proc", text) for text in texts if text]  # empty: killed before it was written
    return [*folder.glob("nephila-browser-*"), *(pid for pid in pids if pid.exists())]


@pytest.mark.full
async def test_no_user_of_the_machine_can_drive_the_browser(chromium: str) -> None:
    """It listens on no port: DevTools is a pipe, whose socket only this user can reach."""
    engine = PlaywrightEngine(chromium, GATEWAY, (), sandbox=False)
    process = await engine.launch(lambda gone: None)
    try:
        page = await process.render(task("data:text/html,<p>alive"))
        assert b"alive" in page.html
        assert members_of(process.pid), "the processes are not found"
        assert listening(process.pid) == []
    finally:
        await process.close()
        await engine.close()


async def test_a_browser_that_ends_at_its_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last line on standard error is the cause; no profile is left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    script = tmp_path / "browser"
    script.write_text("#!/bin/sh\necho error while loading shared libraries: libnss3.so >&2\nexit 127\n")
    script.chmod(0o755)
    with pytest.raises(RenderError, match="ended at its start: error while loading shared libraries"):
        await Chromium.start(str(script), GATEWAY, (), never_connected, sandbox=False)
    assert left_of_start(tmp_path) == []


async def test_a_directory_with_a_long_path_holds_the_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than the path of a Unix socket may be."""
    folder = tmp_path / ("n" * 100)
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with pytest.raises(RenderError, match="ended at its start: exit code 1"):
        await Chromium.start("/bin/false", GATEWAY, (), never_connected, sandbox=False)
    assert left_of_start(folder) == []


@pytest.mark.parametrize("when", ["socket", "received", "started", "later"])
async def test_a_start_that_is_cancelled_while_it_waits_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """After each step: the holder is started, the pipe is received, the process exists, the driver waits."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    marker = tmp_path / "pid"
    script = tmp_path / "browser"
    script.write_text(f"#!/bin/sh\necho $$ > {marker}\nexec sleep 60\n")
    script.chmod(0o755)
    reached = asyncio.Event()
    receive, spawn = DevToolsPipe.receive, chromium_process._spawn

    async def note_receive(pipe: DevToolsPipe) -> PipeEnds:
        if when == "socket":
            reached.set()
        ends = await receive(pipe)
        if when == "received":
            reached.set()
        return ends

    async def note_spawn(*given: Any) -> Any:
        process = await spawn(*given)
        if when == "started":
            reached.set()
        elif when == "later":
            asyncio.get_running_loop().call_soon(reached.set)
        return process

    monkeypatch.setattr(DevToolsPipe, "receive", note_receive)
    monkeypatch.setattr(chromium_process, "_spawn", note_spawn)
    starting = asyncio.ensure_future(Chromium.start(str(script), GATEWAY, (), never_connected, sandbox=False))
    await asyncio.wait((asyncio.ensure_future(reached.wait()), starting), return_when=asyncio.FIRST_COMPLETED)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert left_of_start(tmp_path) == []


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 10, 50])
async def test_a_start_that_is_cancelled_leaves_no_profile_and_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """At any instant: before the process exists, while it starts, and while it is killed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    marker = tmp_path / "pid"
    script = tmp_path / "browser"
    script.write_text(f"#!/bin/sh\necho $$ > {marker}\nexec sleep 60\n")
    script.chmod(0o755)
    starting = asyncio.ensure_future(Chromium.start(str(script), GATEWAY, (), never_connected, sandbox=False))
    for _ in range(turns):
        await asyncio.sleep(0)
    starting.cancel()
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert left_of_start(tmp_path) == []


@pytest.mark.full
async def test_a_chromium_that_fails_leaves_the_driver_of_the_others(
    chromium: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser that never responds: its page fails, and pages in other browsers continue."""
    engine = PlaywrightEngine(chromium, GATEWAY, (), sandbox=False)
    gone = []
    good = await engine.launch(gone.append)
    monkeypatch.setattr(playwright_engine, "START_S", 1.0)
    monkeypatch.setattr(engine, "_executable", "/bin/cat")  # with --options: ends at once
    with pytest.raises(RenderError, match=r"ended at its start: .*/bin/cat"):
        await engine.launch(gone.append)
    (tmp_path / "browser").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "browser").chmod(0o755)
    monkeypatch.setattr(engine, "_executable", str(tmp_path / "browser"))
    with pytest.raises(RenderError, match="no connection to Chromium"):
        await engine.launch(gone.append)
    page = await good.render(task("data:text/html,<p>alive"))
    assert b"alive" in page.html
    assert gone == []
    await good.close()
    await engine.close()


@pytest.mark.full
async def test_a_page_in_a_chromium_that_is_killed_fails_at_once(chromium: str) -> None:
    """It does not wait for its time limit, so the pool renders it in another browser."""
    engine = PlaywrightEngine(chromium, GATEWAY, (), sandbox=False)
    gone: list[object] = []
    process = await engine.launch(gone.append)
    rendering = asyncio.ensure_future(process.render(task("data:text/html,<script>for (;;) {}</script>", 60.0)))
    await asyncio.sleep(1)
    os.killpg(process.pid, signal.SIGKILL)
    with pytest.raises(BrowserGoneError):
        await asyncio.wait_for(rendering, 30)
    assert gone == [process]
    await process.close()
    await engine.close()


@pytest.mark.full
async def test_a_driver_that_is_dead_is_replaced(chromium: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its browsers end with it; the next one has a new driver."""
    engine = PlaywrightEngine(chromium, GATEWAY, (), sandbox=False)
    ended = asyncio.Event()
    first = await engine.launch(lambda gone: ended.set())
    assert engine._driver is not None
    await engine._driver.stop()
    await asyncio.wait_for(ended.wait(), 30)
    second = await engine.launch(lambda gone: None)
    page = await second.render(task("data:text/html,<p>alive"))
    assert b"alive" in page.html
    await first.close()
    await second.close()
    await engine.close()
