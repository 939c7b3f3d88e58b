"""Keyword schemes over Kafka: every expected content page is one record, though a scheduler and a parser are killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sqlite3

import pytest
from aiokafka import AIOKafkaConsumer

from tests.e2e.scheme_sites import GROUPS, JOB, PLATFORMS, SCHEME, Sites
from tests.e2e.test_keyword_schemes import HOSTS
from tests.e2e.test_services_over_kafka import System, system_broker  # noqa: F401 - a fixture
from tests.e2e.web import run, serve

SERVICES = ("storage", "parser-1", "parser-2", "downloader", "scheduler")


@pytest.fixture
def system(tmp_path, system_broker):  # noqa: F811
    """All services, parsers twice, and the three platforms."""
    words = ("--bootstrap", system_broker.address, "--partitions", "16")
    assert run("service", "topics", "apply", *words, cwd=tmp_path).returncode == 0
    with serve(Sites(48)) as web:
        made = System(tmp_path, system_broker, web)
        made.web = web
        made.start(*SERVICES)
        yield made
        for program in made.programs.values():
            program.kill()
            program.wait(60)


def items(system):
    """URL → item, of all rows of the table items."""
    with contextlib.closing(sqlite3.connect(system.folder / "rows" / "nephila.db")) as db:
        rows = db.execute("select rule, data from items").fetchall()
    found = [json.loads(data) for _, data in rows]
    assert len({item["id"] for item in found}) == len(found)
    return {item["url"]: item for item in found}


def topics(system):
    """(URL, (topic, item)) of all records on the topics items.*."""

    async def read():
        names = [f"items.{host.partition('.')[0]}" for host in HOSTS]
        consumer = AIOKafkaConsumer(*names, bootstrap_servers=system.broker.address, auto_offset_reset="earliest")
        await consumer.start()
        try:
            ends = await consumer.end_offsets(list(consumer.assignment()))
            found = []
            while [one for one, end in ends.items() if await consumer.position(one) < end]:
                for one, records in (await consumer.getmany(timeout_ms=1000)).items():
                    found += [
                        (one.topic, json.loads(record.value), record.key, dict(record.headers)) for record in records
                    ]
        finally:
            await consumer.stop()
        assert all(key.decode() == item["id"] for _, item, key, _ in found)
        assert all(headers["rule"].decode() == item["resource"] for _, item, _, headers in found)
        assert all(int(headers["rule_version"]) for *_, headers in found)
        return [(item["url"], (topic, item)) for topic, item, *_ in found]

    return asyncio.run(read())


def until_finished(system, words):
    """`nephila schemes list`, once all searches have ended and the job is idle."""
    for _ in range(60):
        done = run("schemes", "list", *words, "--json", cwd=system.folder)
        assert done.returncode == 0, done.stderr
        listed = json.loads(done.stdout)
        if set(listed["schemes"].values()) == {"finished"}:
            return listed
    raise AssertionError(done.stdout)


def test_every_page_once_after_two_kills(system):
    """kill -9 of the scheduler, which starts again, and later of a parser, which does not: the other parser reads its
    pages; counts and states are right."""
    slow = JOB.replace('delay: "0"', "delay: 100ms")
    (system.folder / "all.yaml").write_text("---\n".join((PLATFORMS, SCHEME, slow)))
    where = ("--bootstrap", system.broker.address)
    applied = run("schemes", "apply", "-f", "all.yaml", *where, "--json", cwd=system.folder)
    assert applied.returncode == 0, applied.stderr
    assert json.loads(applied.stdout)["searches"] == 9
    system.until_rows(8)
    system.end("scheduler", number=signal.SIGKILL)
    system.start("scheduler")
    system.until_rows(30)
    system.end("parser-1", number=signal.SIGKILL)
    listed = until_finished(system, (*where, "--rows", str(system.folder / "rows")))
    sites = Sites(48)
    expected = set().union(*(sites.expected(host, GROUPS) for host in HOSTS))
    assert set(items(system)) == expected
    assert [one["searches"] - one["ended"] + one["failed"] for one in listed["counts"]] == [0] * 6
    assert {url for url, _ in topics(system)} == expected
    assert all(item["resource"] == topic.removeprefix("items.") for _, (topic, item) in topics(system))
    records = sum(one["records"] for one in listed["counts"])
    assert records == sum(len(item["schemes"]["floods"]) for item in items(system).values())
    deleted = run("schemes", "delete", "floods", *where, "--json", cwd=system.folder)
    assert json.loads(deleted.stdout) == {"job": "schemes", "deleted": "floods", "schemes": []}, deleted.stderr
    assert set(items(system)) == expected


def test_a_scheme_that_changes_in_mid_run_loses_nothing(system):
    """A platform and a group more while pages are in flight: rows and topics have the records of all at once."""
    slow = JOB.replace('delay: "0"', "delay: 50ms")
    first = SCHEME.replace("[board, stream, api]", "[board, api]").partition("    quakes:")[0] + "  exclude: [演习]\n"
    (system.folder / "first.yaml").write_text("---\n".join((PLATFORMS, first, slow)))
    (system.folder / "all.yaml").write_text("---\n".join((PLATFORMS, SCHEME, slow)))
    where = ("--bootstrap", system.broker.address)
    rows = ("--rows", str(system.folder / "rows"))
    assert run("schemes", "apply", "-f", "first.yaml", *where, cwd=system.folder).returncode == 0
    system.until_rows(12)
    applied = run("schemes", "apply", "-f", "all.yaml", *where, *rows, "--json", cwd=system.folder)
    assert applied.returncode == 0, applied.stderr
    assert json.loads(applied.stdout)["stored"]["ended"]
    listed = until_finished(system, (*where, *rows))
    sites = Sites(48)
    expected = set().union(*(sites.expected(host, GROUPS) for host in HOSTS))
    assert set(items(system)) == expected
    assert listed["stored"]["ended"]
    last = {url: item for url, (_, item) in topics(system)}
    assert {url for url, item in last.items() if not item.get("removed")} == expected
    stored = items(system)
    assert {url: last[url]["schemes"] for url in expected} == {url: stored[url]["schemes"] for url in expected}
