"""A page that kills the parser: the crawl ends all the same, and once the parser is mended the page is replayed."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from tests.e2e.test_services_over_kafka import SERVICES, System
from tests.e2e.web import NEPHILA, page, run, serve
from tests.waits import wait_until
from tools.kafka_broker import Broker

WAIT_S = 90.0


def answer(request):
    """Five pages; one of them is more than the parser can bear."""
    links = [f"/{number}" for number in range(4)]
    return page(*links, "/poison", title=request.path) if request.path != "/robots.txt" else None


@pytest.fixture
def system(tmp_path):
    """A broker and services of this test's own; the parser is not started."""
    broker = Broker(tmp_path / "broker").start()
    with serve(answer) as web:
        made = System(tmp_path, broker, web)
        try:
            applied = run(
                "service", "topics", "apply", "--bootstrap", broker.address, "--partitions", "4", cwd=tmp_path
            )
            assert applied.returncode == 0, applied.stderr
            file = tmp_path / "system.yaml"
            file.write_text(file.read_text().replace("partitions: 16", "partitions: 4"))
            made.start(*(name for name in SERVICES if name != "parser"))
            yield made
        finally:
            for program in made.programs.values():
                program.kill()
                program.wait(60)
            broker.stop()


def mortal_parser(system: System) -> subprocess.Popen[bytes]:
    """One that dies of /poison."""
    environment = {**os.environ, "NEPHILA_FAILPOINT": "parse:/poison", "NEPHILA_PROGRAM__METRICS_PORT": "0"}
    words = [*NEPHILA, "service", "parser", "--config", "system.yaml"]
    with (system.folder / "parser.log").open("a") as log:
        program = subprocess.Popen(words, cwd=system.folder, stderr=log, env=environment)
    system.programs["parser"] = program
    return program


def test_a_page_that_kills_the_parser_ends_as_a_dead_letter_and_can_be_replayed(system):
    """Begun again each time it dies: four times, then its URL is failed(dead_letter) with a letter that says why; by a
    parser that bears it the letter takes the row over."""
    words = [*NEPHILA, "crawl", "http://a.test/0", "--bootstrap", system.broker.address, "--delay", "0.02", "--json"]
    crawl = subprocess.Popen(words, cwd=system.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deaths, until = 0, time.monotonic() + WAIT_S
    parser = mortal_parser(system)
    while crawl.poll() is None:
        assert time.monotonic() < until, (system.folder / "parser.log").read_text()[-3000:]
        try:
            parser.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
        deaths += 1
        parser = mortal_parser(system)
    out, err = crawl.communicate()
    assert crawl.returncode == 0, err
    end = json.loads(out)
    assert end["outcomes"] == {"stored": 4, "denied": 0, "failed": 1, "dropped": 0}
    assert end["dead_letters"] == {"pages": 1}
    assert deaths == 4
    assert system.rows() == {"stored": 4, "failed": 1}

    system.end("parser")
    system.start("parser")
    where = ("--bootstrap", system.broker.address)
    (letter,) = map(json.loads, run("service", "dead", "list", *where, "--json", cwd=system.folder).stdout.splitlines())
    assert (letter["url"], letter["service"], letter["attempts"]) == ("http://a.test/poison", "parser", 4)
    assert "members ended while this was all they had in hand" in letter["error"]
    replayed = run("service", "dead", "replay", letter["id"], *where, cwd=system.folder)
    assert replayed.stdout == "1 of 1 published again\n", replayed.stderr
    wait_until(lambda: system.rows() == {"stored": 5}, WAIT_S)
