"""Chromium as a process: which switches, how it starts and ends.

Each process has a process group and a profile directory of its own; `kill` ends the group, and the kernel ends Chromium
when this program dies. The gateway is its only way to the network: it resolves no name and opens no other connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from nephila.kernel.process.parent_death import die_with
from nephila.kernel.reasons.table import Reason

from nephila_browser.contract import GatewayAddress
from nephila_browser.devtools_pipe import DevToolsPipe, PipeEnds
from nephila_browser.engine import RenderError
from nephila_browser.gateway.chromium_flags import chromium_flags
from nephila_browser.memory_cgroup import MemoryCgroup
from nephila_browser.process_tree import GroupMemory, cpu_of, is_renderer, kill, kill_group, members_of
from nephila_browser.profiles import Profile

T = TypeVar("T")
END_S = 30.0
"""Longest wait for the end of processes that were killed."""
CGROUP_S = 1.0
"""Longest wait until the cgroup can be deleted; the next program deletes one that is left."""
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
    "--remote-debugging-pipe",
    "--no-startup-window",
)
_ON_DESCRIPTORS = 'exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null'
"""For a shell: Chromium reads commands of DevTools from descriptor 3 and writes to descriptor 4."""


def switches(gateway: GatewayAddress, profile: str, blocked: Iterable[str], *, sandbox: bool) -> list[str]:
    """The command line after the executable."""
    blocked = set(blocked)
    return [
        *_SWITCHES,
        f"--user-data-dir={profile}",
        *chromium_flags(gateway),
        *(["--blink-settings=imagesEnabled=false"] if "image" in blocked else []),
        *(["--disable-remote-fonts"] if "font" in blocked else []),
        *(["--no-sandbox"] if without_sandbox(sandbox=sandbox) else []),
    ]


def without_sandbox(*, sandbox: bool) -> str:
    """Why Chromium runs without its sandbox, and the remedy; empty when it has one. `sandbox`: the setting."""
    if os.geteuid() == 0:
        return "Chromium has no sandbox: this program runs as root; run it as another user"
    return "" if sandbox else "Chromium has no sandbox: browser.sandbox is off; set it, or run it in a container"


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


async def _unless_failed(work: Coroutine[Any, Any, T], other: asyncio.Future[Any]) -> T:
    """The result of work, or the error of something else that has to go well meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task, other), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            other.result()
        return await task
    finally:
        task.cancel()


async def _spawn(
    command: list[str], profile: Profile, ends: PipeEnds, cgroup: MemoryCgroup | None
) -> asyncio.subprocess.Process:
    parent = os.getpid()

    def prepare() -> None:
        die_with(parent)
        if cgroup is not None:
            cgroup.enter()

    stderr = os.open(os.path.join(profile.path, STDERR), os.O_WRONLY | os.O_CREAT)
    try:
        return await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", _ON_DESCRIPTORS),
            *command,
            stdin=ends.commands,
            stdout=ends.responses,
            stderr=stderr,
            start_new_session=True,
            preexec_fn=prepare,
        )
    except OSError as error:
        raise RenderError(Reason.BROWSER, f"{command[0]} does not start: {error.strerror}") from None
    finally:
        os.close(stderr)


class Chromium:
    """One process group of Chromium, with its profile and its pipe."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        profile: Profile,
        pipe: DevToolsPipe,
        cgroup: MemoryCgroup | None,
    ) -> None:
        self._process = process
        self._profile = profile
        self._pipe = pipe
        self._cpu_s = 0.0
        self.pid = process.pid
        self._memory = GroupMemory(process.pid)
        self._cgroup = cgroup
        self._ending = 0
        """The renderer that was killed last."""

    @classmethod
    async def start(
        cls,
        executable: str,
        gateway: GatewayAddress,
        blocked: Iterable[str],
        connect: Callable[[str, Sequence[str]], Coroutine[Any, Any, T]],
        *,
        sandbox: bool,
        max_memory_bytes: int = 0,
    ) -> tuple[Chromium, T]:
        """Start Chromium; returns it with the connection of the driver.

        `connect` lets the driver start an executable with arguments as its browser, and ends when Chromium responds.
        `max_memory_bytes`: a limit that the kernel holds, where this process may make a cgroup; 0 = none.
        Raises `RenderError` with the reason browser, or what `connect` raises.
        """
        profile = Profile()
        cgroup = MemoryCgroup.make(max_memory_bytes) if max_memory_bytes else None
        pipe, browser, connecting = None, None, None
        try:
            pipe = DevToolsPipe(profile.path)
            connecting = asyncio.ensure_future(connect(pipe.executable, pipe.arguments))
            connecting.add_done_callback(lambda done: done.cancelled() or done.exception())
            with await _unless_failed(pipe.receive(), connecting) as ends:
                command = [executable, *switches(gateway, profile.path, blocked, sandbox=sandbox)]
                process, cancelled = await _uncancelled(_spawn(command, profile, ends, cgroup))
                browser = cls(process, profile, pipe, cgroup)
            if cancelled:
                raise asyncio.CancelledError
            return browser, await browser._connected(connecting)
        except BaseException:
            if connecting is not None:
                connecting.cancel()
            if browser is not None:
                await browser.kill()
            else:
                if pipe is not None:
                    pipe.close()
                if cgroup is not None:
                    cgroup.delete()
                profile.delete()
            raise

    async def _connected(self, connecting: asyncio.Future[T]) -> T:
        """The connection, or an error if Chromium ends before."""
        ended = asyncio.ensure_future(self.wait())
        try:
            await asyncio.wait((connecting, ended), return_when=asyncio.FIRST_COMPLETED)
            if connecting.done() and connecting.exception() is not None:
                await asyncio.wait((ended,), timeout=1)  # the pipe closes shortly before the process ends
        finally:
            ended.cancel()
        if self._process.returncode is not None:
            raise RenderError(Reason.BROWSER, f"Chromium ended at its start: {self._end_reason()}")
        return connecting.result()

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
        return sum(self._memory.read().values())

    def kill_renderer_above(self, size_bytes: int) -> bool:
        """Kill the renderer with most memory, if it has more than this; False: there is none. While one that was
        killed still has memory, no other is."""
        sizes = self._memory.read()
        if sizes.get(self._ending):
            return True
        largest = max(filter(is_renderer, sizes), key=sizes.__getitem__, default=0)
        if not largest or sizes[largest] <= size_bytes:
            return False
        self._ending = largest
        kill(largest)
        return True

    def kernel_kills(self) -> int:
        """Processes that the kernel has killed at the limit of memory."""
        return 0 if self._cgroup is None else self._cgroup.kills()

    def cpu_s(self) -> float:
        """CPU of all its processes so far; after their end the figure of the last call."""
        self._cpu_s = max(self._cpu_s, cpu_of(self.pid))
        return self._cpu_s

    def close_pipe(self) -> None:
        """End the holder of the pipe. It may be called again."""
        self._pipe.close()

    async def kill(self) -> None:
        """Kill all processes of the group, wait for their end, delete the profile. A cancelled caller stops nothing."""
        _, cancelled = await _uncancelled(self._kill())
        if cancelled:
            raise asyncio.CancelledError

    async def _kill(self) -> None:
        kill_group(self.pid)
        await self._process.wait()
        for _ in range(int(END_S / POLL_S)):
            if not members_of(self.pid):
                break
            kill_group(self.pid)
            await asyncio.sleep(POLL_S)
        self._pipe.close()
        if self._cgroup is not None:
            for _ in range(int(CGROUP_S / POLL_S)):
                if self._cgroup.delete():
                    break
                await asyncio.sleep(POLL_S)
        await asyncio.to_thread(self._profile.delete)
