"""`nephila topics`: made once, never silently different, one line for what is wrong."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest
from nephila.kernel.bus.kafka.admin import grow, topic_settings
from nephila.kernel.bus.kafka.admin import topics as admin
from nephila.kernel.bus.kafka.bus import KafkaBus
from nephila.kernel.messages import FetchRequest, FrontierRecord, PageChange, Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import CHANGES, FRONTIER, JOBS, REQUESTS, SEEDS, TOPICS

from tests.contracts.buses import config_for
from tests.waits import until


def test_apply_twice_then_list(nephila, broker):
    """The second time nothing changes; the list says what is there."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    first = nephila("topics", "apply", *where, "--partitions", "4")
    assert first.code == 0, first.err
    assert f"{config.prefix}jobs: created, 1 partitions" in first.out
    assert f"{config.prefix}pages: created, 4 partitions" in first.out
    again = nephila("topics", "apply", *where, "--partitions", "4", "--json")
    assert {row["created"] for row in map(json.loads, again.out.splitlines())} == {False}
    listed = [json.loads(line) for line in nephila("topics", "list", *where, "--json").out.splitlines()]
    assert {row["topic"].removeprefix(config.prefix): row["partitions"] for row in listed}["outcomes"] == 4


def test_another_number_of_partitions_is_refused(nephila, broker):
    """Before anything is changed, with the number that is right."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    nephila("topics", "apply", *where, "--partitions", "4")
    ran = nephila("topics", "apply", *where, "--partitions", "8")
    assert ran.code == 2
    assert f"topic {config.prefix}seeds has 4 partitions, not 8" in ran.err
    assert "--partitions 4" in ran.err
    assert ran.err.count("\n") == 1


def test_settings_of_others_stay_and_own_ones_are_set_again(nephila, broker):
    """An operator's min.insync.replicas outlives every apply; what was changed of the route's own is said."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    nephila("topics", "apply", *where, "--partitions", "4")
    pages = f"{config.prefix}pages"

    async def operator() -> None:
        async with admin.admin(config) as client:
            await topic_settings.alter(client, {pages: {"min.insync.replicas": "1", "retention.ms": "60000"}})

    asyncio.run(operator())
    listed = nephila("topics", "list", *where).out
    drift = "retention.ms is 60000, the route's is 604800000; also set: min.insync.replicas=1"
    assert f"{pages}: 4 partitions; {drift}" in listed
    again = nephila("topics", "apply", *where, "--partitions", "4")
    assert (
        f"{pages}: changed, 4 partitions; retention.ms 60000 -> 604800000; also set: min.insync.replicas=1" in again.out
    )
    assert again.out.count("unchanged") == len(TOPICS) - 1
    third = nephila("topics", "apply", *where, "--partitions", "4", "--json")
    rows = {row["topic"]: row for row in map(json.loads, third.out.splitlines())}
    assert rows[pages]["others"] == {"min.insync.replicas": "1"}
    assert not any(row["changes"] or row["created"] for row in rows.values())


def test_settings_may_be_chosen(nephila, broker):
    """Retention, compression or any other, of one topic or of all, when it is made or later."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    choices = ("--config", "*:compression.type=zstd", "--config", "pages:retention.ms=86400000")
    nephila("topics", "apply", *where, "--partitions", "4", *choices)
    again = nephila("topics", "apply", *where, "--partitions", "4", *choices)
    assert again.out.count("unchanged") == len(TOPICS), again.out
    third = nephila("topics", "apply", *where, "--partitions", "4", *choices, "--config", "pages:compression.type=lz4")
    assert f"{config.prefix}pages: changed, 4 partitions; compression.type zstd -> lz4" in third.out
    wrong = nephila("topics", "apply", *where, "--partitions", "4", "--config", "pages:retention.ms=long")
    assert wrong.code == 1
    assert f"topic {config.prefix}pages: InvalidConfigurationError: Invalid value long" in wrong.err
    assert wrong.err.count("\n") == 1


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ("pages", "is not of the form TOPIC:KEY=VALUE"),
        ("pages:retention.ms=", "is not of the form TOPIC:KEY=VALUE"),
        ("page:retention.ms=1", "there is no topic 'page'; did you mean 'pages'"),
        ("*:cleanup.policy=delete", "cleanup.policy cannot be chosen: compacted topics and logs differ in it"),
    ],
)
def test_a_choice_without_sense_is_one_line(nephila, choice, says):
    """Before anybody is asked."""
    ran = nephila("topics", "apply", "--bootstrap", "a:1", "--config", choice)
    assert ran.code == 2
    assert says in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (("--bootstrap", "127.0.0.1:1"), "no Kafka broker answers at 127.0.0.1:1", 1),
        (("--bootstrap", "nowhere"), "bootstrap 'nowhere' is not HOST:PORT", 2),
        (("--bootstrap", ""), "is not HOST:PORT", 2),
        (("--bootstrap", "a:1", "--partitions", "48"), "a power of two up to 65536, not 48", 2),
        (("--bootstrap", "a:1", "--prefix", "ä/"), "prefix", 2),
    ],
)
def test_what_is_wrong_is_one_line(nephila, arguments, says, code):
    """Place and remedy, no traceback."""
    ran = nephila("topics", "apply", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1


def test_nothing_but_the_one_line_is_said():
    """As a program of its own: the client library's log stays out of it."""
    command = [sys.executable, "-m", "nephila", "topics", "list", "--bootstrap", "127.0.0.1:1"]
    path = os.pathsep.join(sys.path)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": path})
    assert ran.returncode == 1
    assert ran.stderr.startswith("nephila: no Kafka broker answers")
    assert ran.stderr.count("\n") == 1


def test_the_environment_names_the_broker(nephila, monkeypatch):
    """NEPHILA_BOOTSTRAP where no option is given; an unknown setting is named."""
    monkeypatch.setenv("NEPHILA_BOOTSTRAP", "127.0.0.1:2")
    assert "at 127.0.0.1:2" in nephila("topics", "list").err
    monkeypatch.setenv("NEPHILA_KAFKA__SESION_S", "1")
    assert "did you mean 'session_s'" in nephila("topics", "list").err


async def used(config, *, publish_late: bool = False) -> None:
    """A scheduler reads seeds and a downloader requests; then both stop."""
    got: list[str] = []
    bus = KafkaBus(config, SystemClock())
    for topic, group in ((SEEDS, "scheduler"), (REQUESTS, "downloader")):
        bus.subscribe(topic, group, lambda d: (got.append(d.message.url), d.ack()), credits=99)
    await bus.start()
    for number in range(config.partitions):
        bus.publish(SEEDS, number, Seed("j", str(number)))
        bus.publish(REQUESTS, number, FetchRequest("j", b"", str(number)))
    await until(lambda: len(got) == 2 * config.partitions)
    await bus.close()
    if publish_late:
        late = KafkaBus(config, SystemClock())
        await late.start()
        await late.publish(SEEDS, 1, Seed("j", "late"))
        await late.close()


def test_an_idle_system_grows(nephila, broker):
    """Twice the partitions, all of which are read afterwards; what is a table stays one partition."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    nephila("topics", "apply", *where, "--partitions", "4", "--config", "pages:retention.ms=60000")
    asyncio.run(used(config))
    ran = nephila("topics", "grow", *where)
    assert ran.code == 0, ran.err
    assert "pages: 8 partitions; retention.ms is 60000" in nephila("topics", "list", *where).out
    assert f"{config.prefix}seeds: grown, 8 partitions" in ran.out
    assert f"{config.prefix}jobs: unchanged, 1 partitions" in ran.out
    assert "set partitions: 8" in ran.err
    asyncio.run(used(type(config)(**{**_fields(config), "partitions": 8})))
    assert nephila("topics", "apply", *where, "--partitions", "4").code == 2


def _fields(config) -> dict[str, object]:
    return {name: getattr(config, name) for name in config.__struct_fields__}


def test_a_system_at_work_does_not_grow(nephila, broker):
    """The services are named; nothing is changed."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)

    async def busy():
        await admin.apply(config)
        bus = KafkaBus(config, SystemClock())
        bus.subscribe(SEEDS, "scheduler", lambda d: d.ack(), credits=99)
        await bus.start()
        await until(lambda: len(bus.held("scheduler")) == 4)
        with pytest.raises(UsageError, match=r"services are at work: scheduler \(stable\); stop them all"):
            await grow.grow(config)
        await bus.close()

    asyncio.run(busy())
    assert f"{config.prefix}seeds: 4 partitions" in nephila("topics", "list", *where).out


def test_what_was_published_and_not_read_forbids_growth(nephila, broker):
    """Half of it would not be looked for where it lies."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    nephila("topics", "apply", *where, "--partitions", "4")
    asyncio.run(used(config, publish_late=True))
    ran = nephila("topics", "grow", *where)
    assert ran.code == 2
    assert "not everything has been read: seeds (1) records are left" in ran.err
    assert ran.err.count("\n") == 1


def test_the_change_feed_does_not_forbid_growth(broker):
    """Readers outside of the system read it, and not in its groups."""
    config = config_for(broker)

    async def fed() -> None:
        await admin.apply(config)
        bus = KafkaBus(config, SystemClock())
        await bus.start()
        await bus.publish(CHANGES, 1, PageChange(id="1", url_key=b"k", url="https://a.test/"))
        await bus.close()
        target, _ = await grow.grow(config)
        assert target == 8

    asyncio.run(fed())


def test_a_frontier_is_not_split_but_may_be_forgotten(broker):
    """Refused with what would be lost; told to forget, its topics are made anew, and the rest grows."""
    config = config_for(broker)

    async def crawled() -> None:
        await admin.apply(config)
        bus = KafkaBus(config, SystemClock())
        await bus.start()
        await bus.publish(FRONTIER, 1, FrontierRecord())
        await bus.close()
        with pytest.raises(UsageError, match="this release does not split a frontier"):
            await grow.grow(config)
        assert set((await admin.existing(config)).values()) == {1, 4}
        target, done = await grow.grow(config, forget=True)
        assert (target, {one.partitions for one in done}) == (8, {1, 8})
        there = await admin.existing(config)
        assert {name for name, count in there.items() if count != 8} == {topic.name for topic in TOPICS if topic.key}
        ends = await grow._ends(config, [FRONTIER], {"frontier": 8})
        assert set(ends.values()) == {(0, 0)}
        assert JOBS.name in there

    asyncio.run(crawled())


def test_growth_that_was_interrupted_goes_on(broker):
    """Some topics have their new number: the others follow, nothing doubles twice."""
    config = config_for(broker)

    async def halfway() -> None:
        from aiokafka.admin import NewPartitions

        await admin.apply(config)
        async with admin.admin(config) as client:
            await client.create_partitions({f"{config.prefix}seeds": NewPartitions(8)})
        while (await admin.existing(config))["seeds"] != 8:
            pass
        target, done = await grow.grow(config)
        assert target == 8
        assert {one.name for one in done if not one.created} >= {"seeds", "jobs"}
        assert {one.partitions for one in done} == {1, 8}

    asyncio.run(halfway())
