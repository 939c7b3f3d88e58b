"""`nephila hosts` lists hosts, and changes the pace of one, in the program of a directory."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from nephila.cli.main import main
from nephila.programs.control_port import Parts
from nephila_control.http.application import application
from nephila_control.http.server import unix_server
from nephila_control.job_types import ApplyJob
from nephila_control.local.backend import LocalBackend
from nephila_control.operations import Operations

from tests.control.documents import document
from tests.scheduler.world import World, site


@pytest.fixture
async def run(tmp_path, capsys):
    """Runs `nephila hosts` against a program with one host; returns exit code, output and messages."""
    world = await World(tmp_path / "frontier", site({"/0": []})).start()
    control = Operations(LocalBackend(Parts(world.bus, world.clock, world.scheduler), tmp_path, ("sqlite",)))

    async def turn() -> None:
        while True:
            world.clock.run_due()
            await asyncio.sleep(0)

    turning = asyncio.ensure_future(turn())
    await control.apply_job(ApplyJob(job=document(paused=True)))
    server = unix_server(application(control), tmp_path)
    await server.open()

    async def command(*words: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(main, ["hosts", *words, "--out", str(tmp_path)])
        return code, *capsys.readouterr()

    yield command
    await server.close()
    turning.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await turning


async def test_a_host_is_paused_slowed_and_let_go_on(run):
    async def state() -> tuple[float, float]:
        (host,) = json.loads((await run("a.test", "--json"))[1])["hosts"]
        return host["held_s"], host["least_delay_s"]

    code, out, _ = await run("a.test", "--pause", "6h")
    assert (code, out) == (0, "a.test: nothing is fetched for 6 h 00 m; --retry ends this\n")
    assert 21_590 < (await state())[0] <= 21_600
    code, out, _ = await run("a.test", "--retry")
    assert (code, out) == (0, "a.test: its next request comes after its usual delay\n")
    assert await state() == (0, 0)
    code, out, _ = await run("a.test", "--delay", "12.5", "--json")
    assert (code, json.loads(out)) == (0, {"name": "a.test", "action": "delay", "seconds": 12.5})
    assert await state() == (0, 12.5)
    code, out, _ = await run("a.test", "--delay", "0")
    assert (code, out) == (0, "a.test: the delay of its jobs counts\n")
    assert await state() == (0, 0)


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["--retry"], 2, "the name of a host"),
        (["a.test", "--retry", "--pause", "1h"], 2, "one of --retry"),
        (["a.test", "--pause", "soon"], 2, "--pause: 'soon' is no duration"),
        (["a.test", "--pause", "0"], 2, "a pause needs a length"),
        (["a.test", "--delay", "2d"], 2, "delay takes at most 86400"),
        (["a/b", "--retry"], 2, "--retry: "),
        (["nowhere.test", "--retry"], 1, "not in the frontier"),
    ],
)
async def test_a_change_that_cannot_be_is_one_line(run, words, code, problem):
    answer, out, messages = await run(*words)
    assert (answer, out) == (code, "")
    assert problem in messages


async def test_hosts_are_listed_with_what_they_wait_for(run):
    code, out, _ = await run()
    assert code == 0
    assert out.splitlines()[1].split()[:2] == ["a.test", "job"]
