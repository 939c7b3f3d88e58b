"""The topic `changes` as its readers get it, though storage is killed: each change once, in order per page."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3

import pytest
from aiokafka import AIOKafkaConsumer
from nephila.kernel.messages import PageChange
from nephila.kernel.topics import CHANGES
from nephila_cluster.kafka.wire import message_of, unseal

from tests.e2e.program import job
from tests.e2e.test_services_over_kafka import SERVICES, System, system_broker  # noqa: F401 - a fixture
from tests.e2e.web import Reply, run, serve
from tests.waits import wait_until

PAGES, EDITIONS = 12, 4


class Editions:
    """Pages whose text changes with each request, up to the last edition."""

    def __init__(self):
        self.requests = dict.fromkeys((f"/{number}" for number in range(PAGES)), 0)

    def __call__(self, request):
        if request.path not in self.requests:
            return None
        self.requests[request.path] += 1
        return Reply(f"<title>{request.path}</title><p>This is edition {min(self.requests[request.path], EDITIONS)}.")


@pytest.fixture
def system(tmp_path, system_broker):  # noqa: F811
    """All services, ready."""
    words = ("--bootstrap", system_broker.address, "--partitions", "16")
    assert run("service", "topics", "apply", *words, cwd=tmp_path).returncode == 0
    with serve(Editions()) as web:
        made = System(tmp_path, system_broker, web, "sqlite")
        made.start(*SERVICES)
        yield made
        for program in made.programs.values():
            program.kill()
            program.wait(60)


def query(system, words):
    """Rows of the database."""
    with contextlib.closing(sqlite3.connect(system.folder / "rows" / "nephila.db")) as db:
        return db.execute(words).fetchall()


def count(system, words):
    """The number that a query returns; 0 before the first row."""
    if not (system.folder / "rows" / "nephila.db").exists():
        return 0
    return query(system, words)[0][0]


def read_topic(system):
    """(partition, change) of all messages on the topic, in the order of their partition."""

    async def read():
        consumer = AIOKafkaConsumer("changes", bootstrap_servers=system.broker.address, auto_offset_reset="earliest")
        await consumer.start()
        found = []
        try:
            ends = await consumer.end_offsets(list(consumer.assignment()))
            while [one for one, end in ends.items() if await consumer.position(one) < end]:
                for one, records in (await consumer.getmany(timeout_ms=1000)).items():
                    for record in records:
                        frames = unseal(PageChange, record.value, record.headers)
                        found += [(one.partition, message_of(CHANGES.message, frame)) for frame in frames]
        finally:
            await consumer.stop()
        return found

    return asyncio.run(read())


def test_each_change_once_and_in_order_after_a_kill_of_storage(system):
    """kill -9 of storage among the changes: a reader that ignores ids that it has gets the changes of the table, those
    of a page in order and from one partition."""
    wanted = job(
        "news",
        seeds=[f"http://a.test/{number}" for number in range(PAGES)],
        recrawl={"every": "1s", "monitor": True},
        politeness={"delay": "20ms"},
    )
    (system.folder / "jobs.yaml").write_text(wanted)
    applied = run("jobs", "apply", "-f", "jobs.yaml", "--bootstrap", system.broker.address, cwd=system.folder)
    assert applied.returncode == 0, applied.stderr
    changed = "select count(*) from changes where change = 'changed'"
    wait_until(lambda: count(system, changed) >= PAGES // 2)
    system.end("storage", number=signal.SIGKILL)
    system.start("storage")
    last = f"select count(*) from pages where cast(text as text) like '%edition {EDITIONS}.%'"
    wait_until(lambda: count(system, last) == PAGES)
    assert system.end("storage") == [0]
    table = query(system, "select id, url, change, fetch_no from changes order by seq")
    assert len({id for id, *_ in table}) == len(table)
    assert [change for *_, change, _ in table].count("new") == PAGES
    topic = read_topic(system)
    first = {message.id: (partition, message) for partition, message in reversed(topic)}
    seen = list(dict.fromkeys(message.id for _, message in topic))
    assert set(seen) == {id for id, *_ in table}
    for url in {url for _, url, *_ in table}:
        of_page = [first[id] for id in seen if first[id][1].url == url]
        assert len({partition for partition, _ in of_page}) == 1
        assert [(one.id, one.url, one.change, one.fetch_no) for _, one in of_page] == [
            row for row in table if row[1] == url
        ]
