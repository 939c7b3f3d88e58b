"""`nephila service dead`: what is there, said in a line each; published again as it was, or refused with the reason."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from nephila.kernel.messages import FetchRequest, Page
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import PAGES, REQUESTS
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.claim_check import BlobClaimStore
from nephila_stores.remote.blobs import DirectoryBlobs

from tests.contracts.buses import config_for
from tests.waits import until

HOSTILE = "http://a.test/\x1b]0;title\x07x"


@pytest.fixture
def system(broker, tmp_path):
    """Topics with four letters: a page, a large one, one without bytes, a request."""
    config = config_for(broker, blobs=str(tmp_path / "blobs"))

    async def fill() -> None:
        await admin.apply(config)
        bus = KafkaBus(config, SystemClock(), BlobClaimStore(DirectoryBlobs(tmp_path / "blobs")))
        await bus.start()
        page = Page("j1", b"k" * 16, HOSTILE, body=b"<p>")
        large = Page("j2", b"l" * 16, "http://a.test/large", body=_noise(700_000))
        await bus.dead_letter(PAGES, "parser", 1, page, ValueError("no\x1b sense"), 3)
        await bus.dead_letter(PAGES, "parser", 2, large, "died", 4)
        await bus.dead_letter(PAGES, "parser", 3, Page("", b"", "http://a.test/\ud800"), "strange", 1)
        await bus.dead_letter(REQUESTS, "downloader", 0, FetchRequest("j1", b"r" * 16, "http://a.test/r"), "odd", 1)
        await bus.close()

    asyncio.run(fill())
    return config


def _noise(size: int) -> bytes:
    import random

    return random.Random(1).randbytes(size)


def _taken(config, count: int) -> list[Page]:
    """What the parser gets."""
    got: list[Page] = []

    async def read() -> None:
        bus = KafkaBus(config, SystemClock(), BlobClaimStore(DirectoryBlobs(Path(config.blobs))))
        bus.subscribe(PAGES, "parser", lambda d: (got.append(d.message), d.ack()), credits=9)
        await bus.start()
        await until(lambda: len(got) == count)
        await bus.close()

    asyncio.run(read())
    return got


def _where(config) -> tuple[str, ...]:
    return ("--bootstrap", config.bootstrap, "--prefix", config.prefix)


def test_list_says_what_is_there(nephila, system, tmp_path, monkeypatch):
    """In order, harmless for a terminal; in JSON with everything; of one job."""
    monkeypatch.setenv("NEPHILA_KAFKA__BLOBS", str(tmp_path / "blobs"))
    plain = nephila("service", "dead", "list", *_where(system))
    assert plain.code == 0, plain.err
    lines = plain.out.splitlines()
    assert [line.split()[0] for line in lines] == ["0:0", "1:0", "2:0", "3:0"]
    assert "parser  Page on pages/1  http://a.test/x  3 attempts: ValueError: no" in lines[1]
    assert "\x1b" not in plain.out
    rows = [json.loads(line) for line in nephila("service", "dead", "list", *_where(system), "--json").out.splitlines()]
    assert [(row["message"], row["partition"], row["attempts"], row["job"]) for row in rows] == [
        ("FetchRequest", 0, 1, "j1"),
        ("Page", 1, 3, "j1"),
        ("Page", 2, 4, "j2"),
        ("Page", 3, 1, ""),
    ]
    assert rows[1]["url_key"] == (b"k" * 16).hex()
    assert [bool(row["refused"]) for row in rows] == [True, False, False, True]
    assert len(nephila("service", "dead", "list", *_where(system), "--job", "j2").out.splitlines()) == 1


def test_replay_publishes_the_messages_as_they_were(nephila, system, tmp_path, monkeypatch):
    """One by its place, then all of a job; what cannot be is said, and why."""
    monkeypatch.setenv("NEPHILA_KAFKA__BLOBS", str(tmp_path / "blobs"))
    one = nephila("service", "dead", "replay", "2:0", *_where(system))
    assert (one.code, one.out) == (0, "1 of 1 published again\n"), one.err
    ran = nephila("service", "dead", "replay", "--all", *_where(system))
    assert (ran.code, ran.out) == (0, "2 of 4 published again\n")
    assert "0:0: a request is not replayed: its lease has brought its URL back" in ran.err
    assert "3:0: the message was not kept" in ran.err
    got = _taken(system, 3)
    assert sorted((page.url, len(page.body)) for page in got) == [
        (HOSTILE, 3),
        ("http://a.test/large", 700_000),
        ("http://a.test/large", 700_000),
    ]


def test_a_file_of_settings_says_where(nephila, system, tmp_path):
    """The services' own."""
    file = tmp_path / "system.yaml"
    kafka = f"{{prefix: {system.prefix}, blobs: {system.blobs}}}"
    file.write_text(f"bootstrap: {system.bootstrap}\npartitions: 4\nkafka: {kafka}\nstorage: {{directory: rows}}\n")
    assert len(nephila("service", "dead", "list", "--bootstrap", str(file)).out.splitlines()) == 4


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (("list", "--bootstrap", "127.0.0.1:1"), "no Kafka broker answers at 127.0.0.1:1", 1),
        (("replay", "--bootstrap", "127.0.0.1:1"), "name the letters as PARTITION:OFFSET, or say --all", 2),
        (("replay", "1:1", "--all"), "or say --all", 2),
        (("replay", "1", "--bootstrap", "127.0.0.1:1"), "no Kafka broker answers at 127.0.0.1:1", 1),
        (("list", "--bootstrap", "nowhere.yaml"), "nowhere.yaml: No such file", 2),
    ],
)
def test_what_is_wrong_is_one_line(nephila, arguments, says, code):
    """Place and remedy."""
    ran = nephila("service", "dead", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1


def test_a_place_where_no_letter_is(nephila, broker):
    """Nothing is published."""
    config = config_for(broker)
    asyncio.run(admin.apply(config))
    ran = nephila("service", "dead", "replay", "7:7", *_where(config))
    assert ran.code == 1
    assert "no dead letter at 7:7; see nephila service dead list" in ran.err
    ran = nephila("service", "dead", "replay", "seven", *_where(config))
    assert ran.code == 2
    assert "'seven' is no PARTITION:OFFSET" in ran.err
