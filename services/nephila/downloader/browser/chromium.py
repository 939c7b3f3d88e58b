"""Chromium as a process: which executable, which switches, how it starts and ends.

Each process has a process group and a profile directory of its own; `kill` ends the group, and the kernel ends Chromium
when this program dies. The gateway is its only way to the network: it resolves no name and opens no other connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

from nephila.downloader.browser.contract import GatewayAddress
from nephila.downloader.browser.engine import RenderError
from nephila.downloader.browser.gateway.chromium_flags import chromium_flags
from nephila.downloader.browser.process_tree import cpu_of, kill_group, members_of, memory_of
from nephila.downloader.browser.profiles import Profile
from nephila.kernel.runtime.parent_death import die_with

T = TypeVar("T")
EXECUTABLES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Names searched in PATH; Debian installs /usr/bin/chromium."""
START_S = 30.0
"""Longest start; one takes about 0.7 s."""
POLL_S = 0.02
STDERR = "stderr"
"""File in the profile with what Chromium writes on standard error."""
_SWITCHES = (
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-component-extensions-with-background-pages",
    "--disable-crash-reporter",
    "--disable-field-trial-config",
    "--disable-hang-monitor",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-back-forward-cache",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-search-engine-choice-screen",
    "--force-color-profile=srgb",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    "--autoplay-policy=user-gesture-required",
    "--remote-debugging-port=0",
)


def find_executable(configured: str) -> str:
    """The path of Chromium; empty when there is none. `configured`: the setting, or empty."""
    if configured:
        return shutil.which(configured) or ""
    return next((path for name in EXECUTABLES if (path := shutil.which(name))), "")


def switches(gateway: GatewayAddress, profile: str, blocked: Iterable[str], *, sandbox: bool) -> list[str]:
    """The command line after the executable."""
    blocked = set(blocked)
    return [
        *_SWITCHES,
        f"--user-data-dir={profile}",
        *chromium_flags(gateway),
        *(["--blink-settings=imagesEnabled=false"] if "image" in blocked else []),
        *(["--disable-remote-fonts"] if "font" in blocked else []),
        *([] if sandbox and os.geteuid() != 0 else ["--no-sandbox"]),
        "about:blank",
    ]


async def _uncancelled(work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
    """The result of work that runs to its end, and whether the caller was cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancelled = True
    return task.result(), cancelled


class Chromium:
    """One process group of Chromium."""

    def __init__(self, process: asyncio.subprocess.Process, profile: Profile) -> None:
        self._process = process
        self._profile = profile
        self._cpu_s = 0.0
        self.pid = process.pid
        self.endpoint = ""
        """URL of its DevTools WebSocket."""

    @classmethod
    async def start(
        cls, executable: str, gateway: GatewayAddress, blocked: Iterable[str], *, sandbox: bool
    ) -> Chromium:
        """Start Chromium and wait until it accepts connections. Raises `RenderError` with the reason browser."""
        profile = Profile()
        parent = os.getpid()
        try:
            stderr = os.open(os.path.join(profile.path, STDERR), os.O_WRONLY | os.O_CREAT)
            try:
                process, cancelled = await _uncancelled(
                    asyncio.create_subprocess_exec(
                        executable,
                        *switches(gateway, profile.path, blocked, sandbox=sandbox),
                        stdin=asyncio.subprocess.DEVNULL,
                        stdout=asyncio.subprocess.DEVNULL,
                        stderr=stderr,
                        start_new_session=True,
                        preexec_fn=lambda: die_with(parent),
                    )
                )
            finally:
                os.close(stderr)
        except OSError as error:
            profile.delete()
            raise RenderError("browser", f"{executable} does not start: {error.strerror}") from None
        browser = cls(process, profile)
        try:
            if cancelled:
                raise asyncio.CancelledError
            await browser._wait_until_ready()
        except BaseException:
            await browser.kill()
            raise
        return browser

    async def _wait_until_ready(self) -> None:
        for _ in range(int(START_S / POLL_S)):
            if self._process.returncode is not None:
                raise RenderError("browser", f"Chromium ended at its start: {self._end_reason()}")
            if endpoint := self._find_endpoint():
                self.endpoint = endpoint
                return
            await asyncio.sleep(POLL_S)
        raise RenderError("browser", f"Chromium was not ready after {START_S:g} s")

    def _find_endpoint(self) -> str:
        """The DevTools URL from the file that Chromium writes when it listens; empty before."""
        with contextlib.suppress(OSError):
            port, _, path = Path(self._profile.path, "DevToolsActivePort").read_text().partition("\n")
            return f"ws://127.0.0.1:{port}{path.strip()}" if path.strip() else ""
        return ""

    def _end_reason(self) -> str:
        """The last line that it wrote on standard error, or its exit code."""
        with contextlib.suppress(OSError):
            lines = Path(self._profile.path, STDERR).read_text("utf-8", "replace").strip().split("\n")
            if lines[-1]:
                return lines[-1][-300:]
        return f"exit code {self._process.returncode}"

    async def wait(self) -> None:
        """Wait until the main process ends."""
        await self._process.wait()

    def memory_bytes(self) -> int:
        """Memory of all its processes."""
        return memory_of(self.pid)

    def cpu_s(self) -> float:
        """CPU of all its processes so far; after their end the figure of the last call."""
        self._cpu_s = max(self._cpu_s, cpu_of(self.pid))
        return self._cpu_s

    async def kill(self) -> None:
        """Kill all processes of the group, wait for their end, delete the profile. A cancelled caller stops nothing."""
        _, cancelled = await _uncancelled(self._kill())
        if cancelled:
            raise asyncio.CancelledError

    async def _kill(self) -> None:
        kill_group(self.pid)
        await self._process.wait()
        for _ in range(int(START_S / POLL_S)):
            if not members_of(self.pid):
                break
            kill_group(self.pid)
            await asyncio.sleep(POLL_S)
        await asyncio.to_thread(self._profile.delete)
