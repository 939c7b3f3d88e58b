"""The whole operator against an API server of Kubernetes and a control API, both in this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError
from nephila_cluster.kubernetes.release import FINALIZER
from nephila_cluster.operator import program
from nephila_cluster.operator.cluster import Cluster
from nephila_cluster.operator.config import OperatorConfig
from nephila_cluster.operator.program import LeadershipLost, Operator

from tests.cluster.operator.fake_control import FakeControl, job
from tests.cluster.operator.kubernetes_server import NAMESPACE, KubernetesServer

JOB = {"seeds": ["https://a.example/"]}
RULE = {"match": {"url": "^https://a\\.example/"}, "fields": {"title": "h1"}}


class Running:
    """One API server, one control API, and operators."""

    def __init__(self, server: KubernetesServer, folder: Path) -> None:
        self.server = server
        self.control = FakeControl()
        self.folder = folder
        self._stack = contextlib.AsyncExitStack()

    @contextlib.asynccontextmanager
    async def operator(self, identity: str = "one", **settings: Any) -> AsyncIterator[Operator]:
        """An operator that runs."""
        config = OperatorConfig(**{"status_interval_s": 0.2, "rules_interval_s": 0.4, "lease_s": 3.0, **settings})
        cluster, leases = Cluster(NAMESPACE), Cluster(NAMESPACE, timeout_s=1.0)
        one = Operator(config, self.control, cluster, leases, SystemClock(), identity)  # type: ignore[arg-type]
        task = asyncio.ensure_future(one.run())
        try:
            yield one
        finally:
            one.stop()
            await asyncio.wait([task], timeout=60)
            await cluster.close()
            await leases.close()
            assert task.done()
            task.result()

    def condition(self, plural: str, name: str, kind: str = "Accepted") -> tuple[str, str]:
        """(status, reason) of a condition."""
        return self.server.condition(plural, name, kind)[:2]


@pytest.fixture
async def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    server = KubernetesServer(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(await server.start()))
    monkeypatch.setattr(program, "CRD_RETRY_S", 0.1)
    yield Running(server, tmp_path)
    await server.stop()


async def test_a_job_lives_from_apply_to_delete(running: Running) -> None:
    server, control = running.server, running.control
    server.apply("crawljobs", "news", JOB)
    async with running.operator():
        await server.until(lambda: running.condition("crawljobs", "news", "Ready") == ("True", "Crawling"))
        assert server.get("crawljobs", "news")["metadata"]["finalizers"] == [FINALIZER]
        control.jobs["news"] = job("news", "running", stored=41, queued=3)
        await server.until(lambda: server.get("crawljobs", "news")["status"]["counts"]["stored"] == 41)
        # As kubectl edit.
        server.apply("crawljobs", "news", {**JOB, "politeness": {"delay": "2s"}, "scope": {"maxDepth": 2}})
        await server.until(lambda: server.get("crawljobs", "news")["status"]["observedGeneration"] == 2)
        assert control.documents["news"]["spec"]["politeness"] == {"delay": "2s"}
        server.delete("crawljobs", "news")
        await server.until(lambda: not server.get("crawljobs", "news"))
    assert control.jobs == {}
    assert control.requests == ["apply news", "apply news", "delete news"]
    assert [reason for _, reason, _ in server.events()] == ["Applied", "Applied"]


async def test_what_happened_while_no_operator_ran_is_done_at_its_start(running: Running) -> None:
    server, control = running.server, running.control
    server.apply("crawljobs", "news", JOB)
    server.apply("crawljobs", "old", JOB)
    async with running.operator():
        await server.until(lambda: running.condition("crawljobs", "old")[0] == "True")
        await server.until(lambda: running.condition("crawljobs", "news")[0] == "True")
    server.delete("crawljobs", "old")
    server.apply("crawljobs", "news", {**JOB, "paused": True})
    writes = len(server.events())
    async with running.operator("two"):
        await server.until(lambda: not server.get("crawljobs", "old"))
        await server.until(lambda: running.condition("crawljobs", "news", "Ready") == ("True", "Paused"))
    assert set(control.jobs) == {"news"}
    assert len(server.events()) == writes + 1


async def test_lost_watches_an_expired_version_and_a_restart_of_the_api_server_lose_nothing(running: Running) -> None:
    server = running.server
    async with running.operator():
        server.apply("crawljobs", "one", JOB)
        await server.until(lambda: running.condition("crawljobs", "one")[0] == "True")
        server.end_watches()
        server.apply("crawljobs", "two", JOB)
        await server.until(lambda: running.condition("crawljobs", "two")[0] == "True")
        server.gone, lists = 2, server.lists
        server.end_watches()
        server.apply("crawljobs", "three", JOB)
        await server.until(lambda: running.condition("crawljobs", "three")[0] == "True")
        assert server.gone == 0
        assert server.lists > lists
        await server.stop()
        server.apply("crawljobs", "four", JOB)
        await server.start()
        await server.until(lambda: running.condition("crawljobs", "four")[0] == "True", 60)
    assert running.control.requests == [f"apply {name}" for name in ("one", "two", "three", "four")]


async def test_crds_that_are_absent_are_named_and_waited_for(running: Running) -> None:
    running.server.has_crds = False
    async with running.operator() as operator:
        await running.server.until(lambda: "absent" in operator.unready)
        assert operator.unready.startswith("CRDs are absent: crawljobs.nephila.dev, parserules.nephila.dev; install")
        running.server.has_crds = True
        running.server.apply("crawljobs", "news", JOB)
        await running.server.until(lambda: running.condition("crawljobs", "news")[0] == "True")
        assert operator.unready == ""


async def test_an_absent_control_api_is_in_status_and_events_and_recovers(running: Running) -> None:
    running.control.down = "http://web-nephila-api:9100 cannot be reached: Connection refused"
    running.server.apply("crawljobs", "news", JOB)
    running.server.apply("crawljobs", "bad", {**JOB, "schedule": "61 * * * *"})
    async with running.operator():
        await running.server.until(lambda: running.condition("crawljobs", "bad") == ("False", "Invalid"))
        await running.server.until(
            lambda: running.condition("crawljobs", "news") == ("Unknown", "ControlApiUnavailable")
        )
        await running.server.until(
            lambda: ("news", "ControlApiUnavailable", running.control.down) in running.server.events()
        )
        running.control.down = ""
        await running.server.until(lambda: running.condition("crawljobs", "news") == ("True", "Applied"))


async def test_a_job_waits_for_its_rule_and_a_bad_change_of_the_rule_keeps_the_last_good_one(running: Running) -> None:
    server, control = running.server, running.control
    async with running.operator():
        server.apply("crawljobs", "shop", {**JOB, "rules": ["shop"]})
        await server.until(lambda: running.condition("crawljobs", "shop") == ("False", "Refused"))
        server.apply("parserules", "shop", RULE)
        await server.until(lambda: running.condition("crawljobs", "shop") == ("True", "Applied"))
        version = server.get("parserules", "shop")["status"]["version"]
        server.apply("parserules", "shop", {**RULE, "fields": {"title": "h1["}})
        await server.until(lambda: running.condition("parserules", "shop") == ("False", "Invalid"))
        assert running.condition("parserules", "shop", "Ready") == ("False", "EarlierVersion")
        assert control.rules["shop"].version == version
        assert "h1[" in server.condition("parserules", "shop", "Accepted")[2]
        server.apply("parserules", "shop", {**RULE, "fields": {"title": "h2"}})
        await server.until(lambda: running.condition("parserules", "shop", "Ready") == ("True", "Live"))
        assert control.rules["shop"].version == server.get("parserules", "shop")["status"]["version"] != version
        server.delete("parserules", "shop")
        await server.until(lambda: not server.get("parserules", "shop"))
    assert control.rules == {}


async def test_a_refusal_of_the_control_api_is_reported(running: Running) -> None:
    running.control.refusal = UsageError("job.spec.seeds: too many")
    running.server.apply("crawljobs", "news", JOB)
    async with running.operator():
        await running.server.until(lambda: running.condition("crawljobs", "news") == ("False", "Invalid"))
    assert ("news", "Invalid", "job.spec.seeds: too many") in running.server.events()


async def test_one_of_two_operators_leads_and_the_other_takes_over(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = running.server

    async def watch(namespaces: tuple[str, ...], on_event: Any, stop: asyncio.Event, ready: asyncio.Event) -> None:
        """kopf cancels all tasks of its loop at its end, and this loop has another operator."""
        while not stop.is_set():
            for (plural, _), body in list(server.objects.items()):
                if plural == "crawljobs":
                    on_event("CrawlJob", "MODIFIED", body)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 0.1)

    monkeypatch.setattr(program, "watch", watch)
    async with running.operator("two") as two:
        await server.until(lambda: two.leads)
        async with running.operator("one") as one:
            await server.until(lambda: one.unready == "")
            server.apply("crawljobs", "news", JOB)
            await server.until(lambda: running.condition("crawljobs", "news")[0] == "True")
            assert not one.leads
            two.stop()
            await server.until(lambda: one.leads)
            server.apply("crawljobs", "more", JOB)
            await server.until(lambda: running.condition("crawljobs", "more")[0] == "True")
    assert running.control.requests == ["apply news", "apply more"]


async def test_a_leader_that_cannot_renew_its_lease_ends(running: Running) -> None:
    async def lose() -> None:
        async with running.operator(lease_s=1.5) as operator:
            await running.server.until(lambda: operator.leads)
            spec = running.server.objects["leases", "nephila-operator"]["spec"]
            changes = {"holderIdentity": "other", "renewTime": "later"}
            running.server.apply("leases", "nephila-operator", {**spec, **changes})
            await running.server.until(lambda: operator.unready == "ended")

    with pytest.raises(LeadershipLost):
        await lose()


async def test_an_operator_that_cannot_prepare_ends_with_the_cause(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not lead without a Lease."""

    async def broken(self: Cluster) -> list[str]:
        raise ValueError("no answer of an API server")

    monkeypatch.setattr(Cluster, "missing_kinds", broken)
    with pytest.raises(ValueError, match="no answer of an API server"):
        async with running.operator() as operator:
            await running.server.until(lambda: operator.unready == "ended")


async def test_rules_of_a_folder_become_resources_and_a_bad_commit_changes_only_its_status(running: Running) -> None:
    server, folder = running.server, running.folder / "rules"
    (folder / "shop").mkdir(parents=True)
    file = folder / "shop" / "rule.yaml"
    good = (
        "apiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {name: shop}\n"
        "spec:\n  match: {url: '^https://a'}\n  fields: {title: h1}\n"
    )
    file.write_text(good)
    async with running.operator(rules_folders=(str(folder),)) as operator:
        await server.until(lambda: running.condition("parserules", "shop", "Ready") == ("True", "Live"))
        version = running.control.rules["shop"].version
        file.write_text(good.replace("fields: {title: h1}", "feilds: {title: h1}"))
        await server.until(lambda: running.condition("parserules", "shop") == ("False", "InvalidFile"))
        message = server.condition("parserules", "shop", "Accepted")[2]
        assert message.startswith("shop/rule.yaml:6:3: unknown key 'feilds'")
        assert ("one", "RuleFileRefused", message) in server.events()
        await server.until(lambda: list(operator.refused_files) == ["shop/rule.yaml"])
        assert running.control.rules["shop"].version == version
        file.write_text(good.replace("h1", "h2"))
        await server.until(lambda: running.condition("parserules", "shop") == ("True", "Applied"))
        await server.until(lambda: running.control.rules["shop"].version != version)
        assert operator.refused_files == {}
