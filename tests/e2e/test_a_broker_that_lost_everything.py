"""The broker comes back with an empty disk, as a pod without a volume does: its members end, start again, and crawl.

Topics of the same names with other content are worse than none: positions, epochs and producer ids of the old ones
would be taken for those of the new ones.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter

import pytest

from tests.e2e.test_services_over_kafka import PAGES, SERVICES, System, answer
from tests.e2e.web import run, serve
from tools.kafka_broker import Broker


@pytest.fixture
def broker(tmp_path):
    """A broker whose disk can be taken away."""
    (tmp_path / "broker").mkdir()
    broker = Broker(tmp_path / "broker")
    shutil.copytree(broker.folder / "data", tmp_path / "empty")
    yield broker.start()
    broker.stop()


def lose_disk(broker: Broker, empty) -> None:
    """The broker is killed and starts with an empty disk, at the same address."""
    broker.crash()
    shutil.rmtree(broker.folder / "data")
    shutil.copytree(empty, broker.folder / "data")
    broker.start()


def create_topics(system: System) -> None:
    words = ("service", "topics", "apply", "--bootstrap", "system.yaml", "--partitions", "16")
    done = run(*words, cwd=system.folder)
    assert done.returncode == 0, done.stderr


def crawl(system: System, host: str) -> dict[str, int]:
    """Outcomes of a crawl of all pages of a host."""
    words = ("crawl", f"http://{host}/0", "--bootstrap", system.broker.address, "--delay", "0.01", "--json")
    done = run(*words, cwd=system.folder, timeout=100)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout)["outcomes"])


def test_members_end_when_their_topics_are_new_and_crawl_after_a_start(tmp_path, broker):
    with serve(answer) as web:
        (tmp_path / "system").mkdir()
        system = System(tmp_path / "system", broker, web, "sqlite")
        create_topics(system)
        system.start(*SERVICES)
        try:
            assert crawl(system, "b.test")["stored"] == PAGES
            lose_disk(broker, tmp_path / "empty")
            create_topics(system)
            codes = {name: system.programs.pop(name).wait(90) for name in SERVICES}
            assert codes == dict.fromkeys(SERVICES, 1)
            for name in SERVICES:
                assert "has lost its topics" in (system.folder / f"{name}.log").read_text()
            system.start(*SERVICES)
            assert crawl(system, "c.test")["stored"] == PAGES
            assert system.rows() == Counter({"stored": 2 * PAGES, "failed": 2 * (PAGES + 1)})
            assert system.end(*SERVICES) == [0, 0, 0, 0]
        finally:
            for program in system.programs.values():
                program.kill()
                program.wait(60)
