"""`nephila service api` over a real broker: API, health and metrics on one port; nothing is lost by a restart."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.service.program import ServiceProgram
from nephila_cluster.service.run import service_kind
from nephila_control import job_types, requests, rule_types, system_types
from nephila_control.config import ControlConfig
from nephila_control.http.client import at_url

from tests.contracts.buses import config_for
from tests.control.documents import document, rule
from tests.waits import until

TOKEN = "0123456789abcdef"  # noqa: S105


@contextlib.asynccontextmanager
async def served(config, token_file):
    """The control API of a system, and its program."""
    program = ServiceProgram(
        service_kind("api"),
        ControlConfig(token_file=str(token_file)),
        lambda clock, on_fatal: KafkaBus(config, clock, on_fatal=on_fatal),
        port=0,
        grace_s=1.0,
        host="127.0.0.1",
    )
    task = asyncio.create_task(program.run())
    await until(lambda: not program._unready() or task.done())
    yield at_url(f"http://127.0.0.1:{program.server.port}", TOKEN), program
    program.stop()
    await task
    assert program.error is None


async def test_what_was_answered_is_there_after_a_restart(broker, tmp_path):
    """Jobs, rules and settings are in topics; a member reports for the program itself."""
    config = config_for(broker)
    await admin.apply(config)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    async with served(config, token) as (control, program):
        assert (await control.apply_rules(rule_types.ApplyRules(rules=[rule()]))).rules[0].verdict == "created"
        job = document(paused=True, rules=["shop"])
        assert (await control.apply_job(job_types.ApplyJob(job=job))).generation == 2
        await control.change_settings(system_types.ChangeSettings(settings={"log_level": "debug"}))
        with pytest.raises(UserError, match="refuses the token"):
            await at_url(f"http://127.0.0.1:{program.server.port}", "x" * 16).list_jobs(job_types.ListJobs())
    async with served(config, token) as (control, _):
        (job,) = (await control.list_jobs(job_types.ListJobs())).jobs
        assert (job.name, job.state, job.generation) == ("news", "paused", 2)
        assert [one.name for one in (await control.list_rules(requests.Empty())).rules] == ["shop"]
        assert (await control.get_settings(requests.Empty())).settings == {"log_level": "debug"}
        assert (
            await control.apply_job(job_types.ApplyJob(job=document(paused=True, rules=["shop"])))
        ).verdict == "unchanged"
        members = (await control.list_members(requests.Empty())).members
        assert [one.service for one in members] == ["api"]
        assert (await control.list_dead_letters(system_types.ListDeadLetters())).dead_letters == []
        status = await control.status(requests.Empty())
        assert (status.kind, status.problems, status.states) == ("cluster", [], {"paused": 1})


def test_it_does_not_start_without_a_token():
    """The port is open to a network."""
    with pytest.raises(UsageError, match=r"name a file that holds one with api.token_file"):
        service_kind("api").build(
            ControlConfig(), KafkaBus(config_for(type("B", (), {"address": "b:1"})()), None), None, print
        )
