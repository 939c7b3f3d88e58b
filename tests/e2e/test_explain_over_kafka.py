"""`nephila explain --bootstrap`: the owner of the URL's partition answers; when none does, one line says so."""

from __future__ import annotations

import json
import signal
import socket
import subprocess

import pytest

from tests.e2e.test_services_over_kafka import System, system_broker  # noqa: F401
from tests.e2e.web import NEPHILA, page, run, serve

HOSTS = 8


@pytest.fixture
def system(tmp_path, system_broker):  # noqa: F811
    """Two schedulers and nobody who fetches: what is handed out stays so."""
    applied = run(
        "service", "topics", "apply", "--bootstrap", system_broker.address, "--partitions", "16", cwd=tmp_path
    )
    assert applied.returncode == 0, applied.stderr
    with serve(lambda request: page()) as web:
        system = System(tmp_path, system_broker, web)
        (tmp_path / "system.yaml").write_text(
            (tmp_path / "system.yaml").read_text().replace("lease_s: 5", "lease_s: 500")
        )
        system.start("scheduler", "scheduler-b")
        system.until_held("scheduler-b", 8)
        yield system
        for program in system.programs.values():
            program.kill()
            program.wait(60)


def explained(system, url, *words):
    """What is printed."""
    return run("explain", url, "--bootstrap", system.broker.address, *words, cwd=system.folder)


def hosts(system, *words):
    """What `nephila hosts` does."""
    return run("hosts", *words, "--bootstrap", system.broker.address, cwd=system.folder)


def test_the_owner_of_the_partition_says_why(system):
    """Of both schedulers, each for its own hosts; what is not known, and nobody there, is one line each."""
    seeds = [f"http://h{number}.test/" for number in range(HOSTS)]
    words = [*NEPHILA, "crawl", *seeds, "--bootstrap", system.broker.address, "--delay", "1"]
    crawl = subprocess.Popen(words, cwd=system.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        owners = set()
        for seed in seeds:
            result = until_known(system, seed)
            assert (result["state"], result["seen"], result["row"]) == ("waiting", True, None)
            owners.add(result["owner"].partition(",")[0])
        assert owners == {"scheduler scheduler-b", f"scheduler {socket.gethostname()}"}
        text = explained(system, "h0.test")
        assert text.stdout.startswith("Waiting: ")
        assert ", owned by scheduler " in text.stdout
        nobody = explained(system, "http://h0.test/", "--job", "nobody")
        assert (nobody.returncode, nobody.stderr.strip().count("\n")) == (1, 0)
        assert "there is no job 'nobody'" in nobody.stderr
        name = result["job"]
        for words, says, code in (
            ((name, "h0.test", "/cal/"), f"h0.test/cal/ is not in quarantine for '{name}'", 1),
            (("nobody", "h0.test", "/cal/"), "there is no job 'nobody'", 1),
            ((name, "h 0", "/cal/"), "'h 0' is no host", 2),
        ):
            done = run("jobs", "release", *words, "--bootstrap", system.broker.address, cwd=system.folder)
            assert (done.returncode, done.stderr.strip().count("\n")) == (code, 0)
            assert says in done.stderr
        listed = json.loads(hosts(system, "--json").stdout)
        assert {host["name"] for host in listed["hosts"]} == {f"h{number}.test" for number in range(HOSTS)}
        assert (listed["partitions"], listed["answered"]) == (16, 16)
        assert hosts(system, "h0.test", "--pause", "1h").returncode == 0
        (host,) = json.loads(hosts(system, "h0.test", "--json").stdout)["hosts"]
        assert 3000 < host["held_s"] <= 3600
    finally:
        crawl.kill()
        crawl.wait()
    system.end("scheduler", "scheduler-b", number=signal.SIGKILL)
    silent = explained(system, "http://h0.test/")
    assert silent.returncode == 1
    assert "no scheduler has answered for partition" in silent.stderr
    assert len(silent.stderr.strip().splitlines()) == 1
    silent = hosts(system)
    assert (silent.returncode, silent.stdout) == (1, "")
    assert "no scheduler has answered" in silent.stderr


def until_known(system, url):
    """The explanation, once the seed has come to its scheduler."""
    for _ in range(30):
        done = explained(system, url, "--json")
        if done.returncode == 0 and json.loads(done.stdout)["seen"]:
            break
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
