"""The controller: which resources it has, what it counts, and the size of what it writes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import NotReadyError, UserError
from nephila_cluster.kubernetes.release import FINALIZER
from nephila_cluster.operator.cluster import Absent
from nephila_cluster.operator.config import OperatorConfig
from nephila_cluster.operator.controller import Controller
from nephila_cluster.operator.observer import Observer
from nephila_cluster.operator.ownership import Ownership
from nephila_cluster.operator.plan import one_line

from tests.cluster.operator.fake_control import FakeControl, job

CRDS = Path(__file__).parents[3] / "charts" / "nephila" / "charts" / "nephila-crds" / "files"


def body(*finalizers: str, version: int = 1, **metadata: Any) -> dict[str, Any]:
    """A CrawlJob as the API server has it."""
    known = {"name": "news", "uid": "u", "generation": 1, "resourceVersion": str(version)}
    return {
        "metadata": {**known, "finalizers": list(finalizers), **metadata},
        "spec": {"seeds": ["https://a.example/"]},
    }


class Resources:
    """Takes every write, or refuses all with an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.finalizers: list[list[str]] = []

    def _write(self, body: dict[str, Any], **values: Any) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        metadata = {**body["metadata"], "resourceVersion": str(int(body["metadata"]["resourceVersion"]) + 1)}
        metadata |= {key: value for key, value in values.items() if key == "finalizers"}
        return {**body, **values, "metadata": metadata}

    async def set_finalizers(self, kind: str, body: dict[str, Any], finalizers: list[str]) -> dict[str, Any]:
        self.finalizers.append(finalizers)
        return self._write(body, finalizers=finalizers)

    async def set_status(self, kind: str, body: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
        return self._write(body, status=status)

    async def post_event(self, *event: object) -> None:
        self._write(body())


class Rig:
    """A controller over these resources and a control API in memory."""

    def __init__(self, resources: Resources) -> None:
        self.clock = ManualClock()
        self.control = FakeControl()
        observer = Observer(self.control, self.clock, 0.0)  # type: ignore[arg-type]
        self.controller = Controller(resources, observer, self.clock, OperatorConfig(), Ownership())  # type: ignore[arg-type]

    async def run(self) -> None:
        """Reconcile what is due at this instant."""
        task = asyncio.ensure_future(self.controller.run())
        for _ in range(100):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])


async def test_a_deleted_resource_is_forgotten() -> None:
    """It is not counted, and nothing is written for it."""
    resources = Resources()
    rig = Rig(resources)
    rig.controller.on_event("CrawlJob", "ADDED", body())
    rig.controller.on_event("ParseRule", None, body())
    assert rig.controller.counts() == {"CrawlJob": 1, "ParseRule": 1}
    rig.controller.on_event("CrawlJob", "DELETED", body())
    rig.controller.on_event("ParseRule", "DELETED", body())
    assert rig.controller.counts() == {"CrawlJob": 0, "ParseRule": 0}
    await rig.run()
    assert (resources.finalizers, rig.control.requests, rig.controller.reconciled) == ([], [], {})


@pytest.mark.parametrize(("stalled", "number"), [("True", 1), ("False", 0), ("Unknown", 0)])
async def test_a_stalled_resource_is_counted_until_it_is_gone(stalled: str, number: int) -> None:
    rig = Rig(Resources())
    status = {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Stalled", "status": stalled}]}
    rig.controller.on_event("CrawlJob", "ADDED", body() | {"status": status})
    rig.controller.on_event("ParseRule", "ADDED", body())
    assert rig.controller.with_condition("Stalled") == {"CrawlJob": number, "ParseRule": 0}
    rig.controller.on_event("CrawlJob", "DELETED", body())
    assert rig.controller.with_condition("Stalled") == {"CrawlJob": 0, "ParseRule": 0}


async def test_a_resource_that_is_absent_when_it_is_written_is_forgotten() -> None:
    """Its deletion was not seen yet. That is no fault, and it is not tried again."""
    resources = Resources(Absent("not found"))
    rig = Rig(resources)
    rig.controller.on_event("CrawlJob", "ADDED", body())
    await rig.run()
    rig.clock.advance(3600.0)
    await rig.run()
    assert rig.controller.counts()["CrawlJob"] == 0
    assert (len(resources.finalizers), rig.controller.reconciled) == (1, {})


@pytest.mark.parametrize("error", [NotReadyError("no answer"), UserError("forbidden"), ValueError("no JSON")])
async def test_a_reconciliation_whose_writes_fail_is_counted_once_and_tried_again(error: Exception) -> None:
    """The first time a second later."""
    resources = Resources(error)
    rig = Rig(resources)
    rig.controller.on_event("CrawlJob", "ADDED", body())
    await rig.run()
    assert rig.controller.reconciled == {"fault": 1}
    resources.error = None
    rig.clock.advance(0.9)
    await rig.run()
    assert rig.controller.reconciled == {"fault": 1}
    rig.clock.advance(0.1)
    await rig.run()
    assert rig.controller.reconciled == {"fault": 1, "ok": 1}
    assert rig.control.requests == ["apply news"]


async def test_a_deletion_that_is_carried_out_is_counted_and_not_reconciled_again() -> None:
    """The job goes before the finalizer of the resource, and other finalizers stay."""
    resources = Resources()
    rig = Rig(resources)
    rig.control.jobs["news"] = job("news")
    rig.controller.on_event("CrawlJob", "ADDED", body("other", FINALIZER, deletionTimestamp="2026-11-23T00:00:00Z"))
    await rig.run()
    rig.clock.advance(3600.0)
    await rig.run()
    assert (rig.control.requests, resources.finalizers) == (["delete news"], [["other"]])
    assert rig.controller.reconciled == {"ok": 1}


@pytest.mark.parametrize("kind", ["crawljobs", "parserules"])
def test_a_message_fits_into_the_custom_resource(kind: str) -> None:
    """The API server refuses a status with a longer one."""
    (version,) = yaml.safe_load((CRDS / f"{kind}.yaml").read_text())["spec"]["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    longest = status["properties"]["conditions"]["items"]["properties"]["message"]["maxLength"]
    assert one_line("x" * longest) == "x" * longest
    assert one_line("x" * (longest + 1)) == "x" * (longest - 1) + "…"
