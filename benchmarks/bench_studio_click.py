"""One click in the rule studio on the server: time of its three operations on a page of 150 KB with 20 other pages.

usage: python -m benchmarks.bench_studio_click [ROUNDS]

A click is `step` (the field and its selectors), then what the browser loads: `view` (table, offers) and `frame`. The
stored pages are made here. The first step of a server parses the 20 pages and is printed by itself; the rest is the
median over five fields and ROUNDS (default 3) drafts. Aim: 200 ms for a click.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from nephila.control import studio_types as types
from nephila.control.operations import Operations
from nephila.rulekit.studio.draft import Draft

from tests.console import shop
from tests.console.console_rig import console

TEXTS = ("Table 1", "$10.50", "Photo", "1.5 of 5", "new")
A = TypeVar("A")


def page(number: int) -> str:
    """A product with 700 related ones."""
    rows = "".join(
        f"<div class='row r{at % 7}'><a href=/x/{number}/{at}>Link {at} of page {number}</a>"
        f"<span class=note>Some words about the thing {at}, of oak and ash</span>"
        f"<p class=text>{'word ' * 12}{at * number}</p></div>"
        for at in range(700)
    )
    return shop.product(number).replace("</main>", f"</main><section class=related>{rows}</section>")


def cpu_s() -> float:
    """CPU of this process and of those it has started: the work on pages is in a child."""
    parents, ticks = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = file.read_text().rpartition(")")[2].split()
            number = int(file.parent.name)
            parents[number], ticks[number] = int(fields[1]), int(fields[11]) + int(fields[12])
    own = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(ticks[one] for one in own) / os.sysconf("SC_CLK_TCK")


class Clicks:
    """Times of operations."""

    def __init__(self, control: Operations) -> None:
        self._control = control
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.cpu_s: defaultdict[str, list[float]] = defaultdict(list)

    async def _timed(self, name: str, work: Awaitable[A]) -> A:
        begun, cpu = time.perf_counter(), cpu_s()
        found = await work
        self.seconds[name].append(time.perf_counter() - begun)
        self.cpu_s[name].append(cpu_s() - cpu)
        return found

    async def one(self, draft: Draft, text: str) -> Draft:
        """Click a text."""
        of = types.document_of(draft)
        frame = await self._timed("frame", self._control.studio_frame(types.StudioFrameOf(draft=of)))
        found = re.search(rf'pick/(\d+)"[^>]*>[^<]*{re.escape(text)}<', frame.html)
        assert found is not None, text
        step = types.StudioStep(draft=of, step="new", node=int(found[1]))
        draft = (await self._timed("step", self._control.studio_step(step))).draft
        await self._timed("view", self._control.studio_view(types.OfDraft(draft=types.document_of(draft))))
        return draft


def store(directory: Path) -> None:
    """Write the pages."""
    for file in directory.glob("raw-*.gz"):
        file.unlink()
    shop.write(directory, {f"{shop.HOST}/p/{number}": page(number) for number in range(1, 22)})


async def measure(directory: Path, rounds: int) -> None:
    """Print the figures."""
    async with console(directory) as rig:
        rig.turning.cancel()
        store(directory)
        clicks = Clicks(rig.control)
        for at in range(rounds + 1):
            opened = await rig.control.open_studio_page(types.OpenStudioPage(url=f"{shop.HOST}/p/1"))
            draft = opened.draft
            for text in TEXTS:
                draft = await clicks.one(draft, text)
                if not at:
                    first = {name: 1000 * of[0] for name, of in clicks.seconds.items()}
            if not at:
                print("first click:", ", ".join(f"{name} {ms:.0f} ms" for name, ms in first.items()))
                clicks.seconds.clear()
                clicks.cpu_s.clear()
    middle = {name: 1000 * statistics.median(of) for name, of in clicks.seconds.items()}
    print(f"page {len(page(1)):,} bytes, 20 others, load {os.getloadavg()[0]:.1f}")
    print("click:", ", ".join(f"{name} {ms:.0f} ms" for name, ms in middle.items()), f"= {sum(middle.values()):.0f} ms")
    cpu = {name: 1000 * statistics.mean(of) for name, of in clicks.cpu_s.items()}
    print("CPU:", ", ".join(f"{name} {ms:.0f} ms" for name, ms in cpu.items()), f"= {sum(cpu.values()):.0f} ms")


def main() -> None:
    """See the module."""
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(measure(Path(directory), int(sys.argv[1]) if len(sys.argv) > 1 else 3))


if __name__ == "__main__":
    main()
