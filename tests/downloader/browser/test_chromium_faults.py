"""Chromium that does not start, is cancelled, or fails beside others: nothing is left, and the others continue."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from nephila.downloader.browser import playwright_engine
from nephila.downloader.browser.chromium import Chromium
from nephila.downloader.browser.contract import GatewayAddress
from nephila.downloader.browser.engine import BrowserGoneError, RenderError
from nephila.downloader.browser.playwright_engine import PlaywrightEngine

from tests.downloader.browser.fake_engine import task

GATEWAY = GatewayAddress("127.0.0.1", 1, "", "")


def left_of_start(folder: Path) -> list[Path]:
    """Profiles, and the process whose id is in the file pid."""
    texts = [marker.read_text().strip() for marker in folder.glob("pid")]
    pids = [Path("/proc", text) for text in texts if text]  # empty: killed before it was written
    return [*folder.glob("nephila-browser-*"), *(pid for pid in pids if pid.exists())]


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
    starting = asyncio.ensure_future(Chromium.start(str(script), GATEWAY, (), sandbox=False))
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
    chromium: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No DevTools connection to one browser: its page fails, and pages in other browsers continue."""
    monkeypatch.setattr(playwright_engine, "CONNECT_S", 5.0)
    engine = PlaywrightEngine(chromium, GATEWAY, (), sandbox=False)
    gone = []
    good = await engine.launch(gone.append)
    find = Chromium._find_endpoint
    monkeypatch.setattr(Chromium, "_find_endpoint", lambda one: find(one) and "ws://127.0.0.1:1/none")
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
    """The next browser has a new driver."""
    engine = PlaywrightEngine(chromium, GATEWAY, (), sandbox=False)
    first = await engine.launch(lambda gone: None)
    assert engine._driver is not None
    await engine._driver.stop()
    second = await engine.launch(lambda gone: None)
    page = await second.render(task("data:text/html,<p>alive"))
    assert b"alive" in page.html
    await first.close()
    await second.close()
    await engine.close()
