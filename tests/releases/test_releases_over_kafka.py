"""Services of the release before take the place of this one's in the middle of a crawl, and the other way round."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import urllib.error
import urllib.request

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.e2e.test_services_over_kafka import System
from tests.e2e.web import NEPHILA, page, run, serve
from tests.releases.past import known, releases, unpack_tree
from tools.kafka_broker import Broker

pytestmark = pytest.mark.timeout(400)
SERVICES = ("storage", "parser", "downloader", "scheduler")
HOSTS, PAGES = 4, 80
FIRST, SECOND = 12, 30
"""Rows at which the services are killed and others take their place."""


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory):
    """A broker of this file's own: it has topics under their plain names."""
    broker = Broker(tmp_path_factory.mktemp("broker")).start()
    yield broker
    broker.stop()


def answer(request):
    """Eighty pages on four hosts."""
    if not request.path[1:].isdigit() or int(request.path[1:]) >= PAGES:
        return None
    number = int(request.path[1:])
    children = [n for n in (2 * number + 1, 2 * number + 2) if n < PAGES]
    return page(*(f"http://h{n % HOSTS}.test/{n}" for n in children), title=f"Page {number}")


@pytest.fixture
def system(tmp_path, own_broker):
    """Topics and a web; no service yet. Snapshots are taken often."""
    applied = run("topics", "apply", "--bootstrap", own_broker.address, "--partitions", "16", cwd=tmp_path)
    assert applied.returncode == 0, applied.stderr
    with serve(answer) as web:
        system = System(tmp_path, own_broker, web, formats="sqlite")
        system.web = web
        yield system
        for program in system.programs.values():
            program.kill()
            program.wait(10)


def test_a_crawl_that_is_rolled_back_and_updated(system, tmp_path_factory, monkeypatch):
    """Begun by this release, all its services killed, gone on with by those of the one before, ended by theirs and our
    scheduler: records of all topics, then claims, commits and snapshots of partitions both ways. A row for each URL,
    and who told the crawl sees its end."""
    release = releases()[-1]
    if not known(release.commit):
        pytest.skip(f"release {release.version} ({release.commit[:10]}) is not in this history: git fetch --unshallow")
    old = unpack_tree(release.commit, tmp_path_factory.mktemp("old"))
    monkeypatch.setenv("NEPHILA_SCHEDULER__SNAPSHOT_BYTES", "2000")
    system.start(*SERVICES)
    words = ["crawl", "http://h0.test/0", "--scope", "any", "--bootstrap", system.broker.address, "--delay", "0.1"]
    crawl = subprocess.Popen(
        [*NEPHILA, *words, "--json"], cwd=system.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        system.until_rows(FIRST)
        assert list(system.folder.glob("frontier/p*/*/snapshot-*")), "nothing to restore from but the log"
        with monkeypatch.context() as before:
            before.setenv("PYTHONPATH", str(old))
            before.setenv("NEPHILA_NATIVE", "python")
            system.end(*SERVICES, number=signal.SIGKILL)
            system.start(*SERVICES)
            system.until_rows(SECOND)
        assert system.end("scheduler") == [0]
        system.start("scheduler")
        out, err = crawl.communicate(timeout=200)
    finally:
        crawl.kill()
        crawl.wait()
    assert crawl.returncode == 0, err
    assert json.loads(out)["outcomes"] == {"stored": PAGES, "denied": 0, "failed": 0, "dropped": 0}
    assert system.rows() == {"stored": PAGES}


def readiness(system, name):
    """What a service says of itself: (code, text)."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{system.ports[name]}/readyz", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def test_a_record_of_a_release_to_come(system):
    """Its partition stands still with its position, the service says what it needs and is not ready."""
    system.start("storage")
    topic = TopicPartition("records", 3)
    address = system.broker.address
    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        sent = await producer.send_and_wait(
            topic.topic, b"of a format to come", partition=topic.partition, headers=[("v", b"9")]
        )
    for _ in range(300):
        code, text = readiness(system, "storage")
        if code != 200:
            break
        await asyncio.sleep(0.1)
    assert code == 503
    assert f"records/3 at {sent.offset} was written by a newer release (format 9): update this service" in text
    assert system.end("storage") == [0]
    async with AIOKafkaConsumer(bootstrap_servers=address, group_id="storage", enable_auto_commit=False) as reader:
        reader.assign([topic])
        assert await reader.committed(topic) == sent.offset
        assert await reader.end_offsets([topic]) == {topic: sent.offset + 1}
