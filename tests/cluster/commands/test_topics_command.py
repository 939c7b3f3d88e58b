"""`nephila service topics`: made once, never silently different, one line for what is wrong."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest
from nephila.kernel.layout import LayoutSetting
from nephila.kernel.messages import Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import SEEDS, TOPICS
from nephila_cluster.kafka import grow
from nephila_cluster.kafka.admin import topic_settings
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus

from tests.contracts.buses import config_for
from tests.waits import until


def test_apply_twice_then_list(nephila, broker):
    """The second time nothing changes; the list says what is there."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    first = nephila("service", "topics", "apply", *where, "--partitions", "4")
    assert first.code == 0, first.err
    assert f"{config.prefix}jobs: created, 1 partitions" in first.out
    assert f"{config.prefix}pages: created, 4 partitions" in first.out
    again = nephila("service", "topics", "apply", *where, "--partitions", "4", "--json")
    assert {row["created"] for row in map(json.loads, again.out.splitlines())} == {False}
    listed = [json.loads(line) for line in nephila("service", "topics", "list", *where, "--json").out.splitlines()]
    assert {row["topic"].removeprefix(config.prefix): row["partitions"] for row in listed}["outcomes"] == 4


def test_another_number_of_partitions_is_refused(nephila, broker):
    """Before anything is changed, with the number that is right."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    nephila("service", "topics", "apply", *where, "--partitions", "4")
    ran = nephila("service", "topics", "apply", *where, "--partitions", "8")
    assert ran.code == 2
    assert f"topic {config.prefix}frontier has 4 partitions, not 8" in ran.err
    assert "--partitions 4" in ran.err
    assert ran.err.count("\n") == 1


def test_settings_of_others_stay_and_own_ones_are_set_again(nephila, broker):
    """An operator's min.insync.replicas outlives every apply; what was changed of the route's own is said."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    nephila("service", "topics", "apply", *where, "--partitions", "4")
    pages = f"{config.prefix}pages"

    async def operator() -> None:
        async with admin.admin(config) as client:
            await topic_settings.alter(client, {pages: {"min.insync.replicas": "1", "retention.ms": "60000"}})

    asyncio.run(operator())
    listed = nephila("service", "topics", "list", *where).out
    drift = "retention.ms is 60000, the route's is 604800000; also set: min.insync.replicas=1"
    assert f"{pages}: 4 partitions; {drift}" in listed
    again = nephila("service", "topics", "apply", *where, "--partitions", "4")
    assert (
        f"{pages}: changed, 4 partitions; retention.ms 60000 -> 604800000; also set: min.insync.replicas=1" in again.out
    )
    assert again.out.count("unchanged") == len(TOPICS) - 1
    third = nephila("service", "topics", "apply", *where, "--partitions", "4", "--json")
    rows = {row["topic"]: row for row in map(json.loads, third.out.splitlines())}
    assert rows[pages]["others"] == {"min.insync.replicas": "1"}
    assert not any(row["changes"] or row["created"] for row in rows.values())


def test_settings_may_be_chosen(nephila, broker):
    """Retention, compression or any other, of one topic or of all, when it is made or later."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    choices = ("--config", "*:compression.type=zstd", "--config", "pages:retention.ms=86400000")
    nephila("service", "topics", "apply", *where, "--partitions", "4", *choices)
    again = nephila("service", "topics", "apply", *where, "--partitions", "4", *choices)
    assert again.out.count("unchanged") == len(TOPICS), again.out
    third = nephila(
        "service", "topics", "apply", *where, "--partitions", "4", *choices, "--config", "pages:compression.type=lz4"
    )
    assert f"{config.prefix}pages: changed, 4 partitions; compression.type zstd -> lz4" in third.out
    wrong = nephila("service", "topics", "apply", *where, "--partitions", "4", "--config", "pages:retention.ms=long")
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
    ran = nephila("service", "topics", "apply", "--bootstrap", "a:1", "--config", choice)
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
    ran = nephila("service", "topics", "apply", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1


def test_nothing_but_the_one_line_is_said():
    """As a program of its own: the client library's log stays out of it."""
    command = [sys.executable, "-m", "nephila", "service", "topics", "list", "--bootstrap", "127.0.0.1:1"]
    path = os.pathsep.join(sys.path)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": path})
    assert ran.returncode == 1
    assert ran.stderr.startswith("nephila: no Kafka broker answers")
    assert ran.stderr.count("\n") == 1


def test_the_environment_names_the_broker(nephila, monkeypatch):
    """NEPHILA_BOOTSTRAP where no option is given; an unknown setting is named."""
    monkeypatch.setenv("NEPHILA_BOOTSTRAP", "127.0.0.1:2")
    assert "at 127.0.0.1:2" in nephila("service", "topics", "list").err
    monkeypatch.setenv("NEPHILA_KAFKA__SESION_S", "1")
    assert "did you mean NEPHILA_KAFKA__SESSION_S?" in nephila("service", "topics", "list").err


def test_a_system_grows(nephila, broker):
    """Twice the partitions, all of which are read afterwards; a table stays one partition. The services' settings keep
    the number at the creation."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    nephila("service", "topics", "apply", *where, "--partitions", "4", "--config", "pages:retention.ms=60000")
    ran = nephila("service", "topics", "grow", *where, "--to", "8", "--wait", "0")
    assert ran.code == 0, ran.err
    assert ran.out == "8 partitions; 0 of 4 new ones have begun\n"
    assert "as soon as they run" in ran.err
    listed = nephila("service", "topics", "list", *where).out
    assert "pages: 8 partitions; retention.ms is 60000" in listed
    assert f"{config.prefix}jobs: 1 partitions" in listed
    assert nephila("service", "topics", "apply", *where, "--partitions", "4").code == 0
    other = nephila("service", "topics", "apply", *where, "--partitions", "16")
    assert other.code == 2
    assert "has grown from 4 to 8 partitions, and the settings here name 16: set partitions: 4" in other.err
    asyncio.run(grown(config))


async def grown(config) -> None:
    """A program of a system that has grown reads and writes all partitions."""
    got: list[str] = []
    bus = KafkaBus(config, SystemClock())
    bus.subscribe(SEEDS, "scheduler", lambda d: (got.append(d.message.url), d.ack()), credits=99)
    await bus.start()
    assert (bus.layout.base, bus.layout.count) == (4, 8)
    for number in range(8):
        bus.publish(SEEDS, number, Seed("j", str(number)))
    await until(lambda: len(got) == 8)
    assert bus.has_all("scheduler")
    await bus.close()


@pytest.mark.parametrize(
    ("to", "line"),
    [
        ("2", "the system has 4 partitions, and they never become fewer: --to 2 is refused"),
        ("12", "--to 12: 4 partitions can become 8, 16 and so on, up to 65536: each is split into two"),
        ("131072", "--to 131072: 4 partitions can become 8"),
    ],
)
def test_an_impossible_growth_is_one_line(nephila, broker, to, line):
    """Nothing is changed."""
    config = config_for(broker)
    where = ("--bootstrap", config.bootstrap, "--prefix", config.prefix)
    nephila("service", "topics", "apply", *where, "--partitions", "4")
    ran = nephila("service", "topics", "grow", *where, "--to", to)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert line in ran.err
    assert f"{config.prefix}seeds: 4 partitions" in nephila("service", "topics", "list", *where).out


def test_a_growth_that_was_interrupted_is_repeated(broker):
    """The setting is there and some topics have their new number: no other number is accepted, the others follow."""
    config = config_for(broker)

    async def halfway() -> None:
        from aiokafka.admin import NewPartitions

        await admin.apply(config)
        bus = KafkaBus(config, SystemClock())
        await bus.start()
        await grow._publish(bus, LayoutSetting(4, 4, 8))
        await bus.close()
        async with admin.admin(config) as client:
            await client.create_partitions({f"{config.prefix}seeds": NewPartitions(8)})
        while (await admin.existing(config))["seeds"] != 8:
            pass
        with pytest.raises(UsageError, match="a growth to 8 partitions was interrupted: repeat it first, --to 8"):
            await grow.grow(config, 16, wait_s=0.0)
        assert await grow.grow(config, 8, wait_s=0.0) == (0, 4)
        assert set((await admin.existing(config)).values()) == {1, 8}
        assert await grow.grow(config, 8, wait_s=0.0) == (0, 4)

    asyncio.run(halfway())
