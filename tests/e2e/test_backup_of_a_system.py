"""A system over Kafka is backed up while it crawls, restored into other topics and an empty database, and goes on; rows
that the database lost are written again."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest
from nephila_tools.backup import archive

from tests.e2e.test_services_over_kafka import SERVICES, System
from tests.e2e.web import NEPHILA, page, run, serve
from tools.kafka_broker import Broker

PAGES = 120
COLUMNS = "url, outcome, reason, status, depth, title, text, sha256"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker of this file's own."""
    broker = Broker(tmp_path_factory.mktemp("broker")).start()
    yield broker
    broker.stop()


class Site:
    """120 pages on four hosts; from page 40 on they wait while the gate is closed."""

    def __init__(self) -> None:
        self.gate, self.reached = threading.Event(), threading.Event()
        self.gate.set()

    def __call__(self, request):
        if request.path == "/robots.txt":
            return None
        number = int(request.path[1:])
        if number >= PAGES:
            return None
        if number >= 40 and not self.gate.is_set():
            self.reached.set()
            self.gate.wait(120)
        return page(*(f"http://h{n % 4}.test/{n}" for n in (2 * number + 1, 2 * number + 2) if n < PAGES))


class PostgresSystem(System):
    """Services with rows in PostgreSQL, and snapshots all the time."""

    def __init__(self, folder: Path, broker: Broker, web, store: str, prefix: str) -> None:
        folder.mkdir()
        super().__init__(folder, broker, web)
        text = (folder / "system.yaml").read_text()
        text = text.replace(
            "storage: {directory: rows, formats: [sqlite, raw]}", f"storage: {{directory: rows, store: '{store}'}}"
        )
        text = text.replace("scheduler: {", "scheduler: {blobs: blobs, snapshot_bytes: 4000, ")
        text = text.replace("kafka: {", f"kafka: {{prefix: '{prefix}', ")
        (folder / "system.yaml").write_text(text)
        self.store = store

    def create(self) -> None:
        done = run("service", "topics", "apply", "--bootstrap", "system.yaml", "--partitions", "16", cwd=self.folder)
        assert done.returncode == 0, done.stderr

    def table(self) -> list[tuple]:
        with psycopg.connect(self.store) as connection:
            return sorted(connection.execute(f"SELECT {COLUMNS} FROM pages").fetchall())

    def close(self) -> None:
        for program in self.programs.values():
            program.kill()
            program.wait(60)


UNTIL_IDLE = """
import subprocess, sys, json, time
for _ in range(400):
    done = subprocess.run([sys.executable, "-m", "nephila", "jobs", "list", "--json", "--bootstrap", "system.yaml"],
                          capture_output=True, text=True)
    found = json.loads(done.stdout or "[]")
    if found and found[0]["state"] == "idle":
        sys.exit(0)
    time.sleep(0.2)
print(done.stdout, done.stderr)
sys.exit(1)
"""


def database(store: str) -> str:
    """Another empty database of the same server."""
    with psycopg.connect(store, autocommit=True) as connection:
        name = connection.info.dbname + "restored"
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return store.replace(f"/{connection.info.dbname}", f"/{name}")


def test_a_backup_of_a_running_system_leads_to_the_same_rows(tmp_path, broker, store):
    """Taken in the middle of a crawl, restored under another prefix, as on another broker."""
    site = Site()
    with serve(site) as web:
        first = PostgresSystem(tmp_path / "first", broker, web, store, "first-")
        second = None
        try:
            first.create()
            first.start(*SERVICES)
            site.gate.clear()
            words = [*NEPHILA, "crawl", "http://h0.test/0", "--scope", "any", "--bootstrap", "system.yaml"]
            crawl = subprocess.Popen([*words, "--delay", "0.01", "--json"], cwd=first.folder, stdout=subprocess.PIPE)
            assert site.reached.wait(60)
            done = run("backup", "--bootstrap", "system.yaml", "--to", "../backups", cwd=first.folder)
            assert done.returncode == 0, done.stderr
            site.gate.set()
            out, _ = crawl.communicate(timeout=120)
            assert json.loads(out)["outcomes"]["stored"] == PAGES
            undisturbed = first.table()
            assert len(undisturbed) == PAGES

            with psycopg.connect(store, autocommit=True) as connection:
                gone = connection.execute(
                    "DELETE FROM pages WHERE url IN (SELECT url FROM pages ORDER BY url LIMIT 4) RETURNING url"
                ).fetchall()
            found = run("check", "--bootstrap", "system.yaml", cwd=first.folder)
            assert found.returncode == 1, found.stderr
            assert sorted(found.stdout.splitlines()[1:]) == sorted(f"  lost {url}" for (url,) in gone)
            before = len(web.requests)
            repaired = run("check", "--bootstrap", "system.yaml", "--repair", cwd=first.folder)
            assert repaired.returncode == 0, repaired.stderr
            assert first.end(*SERVICES) == [0, 0, 0, 0]
            first.start("storage")
            assert first.end("storage") == [0]
            assert first.table() == undisturbed
            assert len(web.requests) == before

            (path,) = archive.finished(tmp_path / "backups")
            names = [file.name for file in archive.read_manifest(path).files]
            assert any(name.endswith("/manifest") for name in names)
            assert any(name.endswith("/log") for name in names)
            second = PostgresSystem(tmp_path / "second", broker, web, database(store), "second-")
            second.create()
            restored = run("restore", str(path), "--bootstrap", "system.yaml", cwd=second.folder)
            assert restored.returncode == 0, restored.stderr
            had = len(second.table())
            assert 0 < had < PAGES
            again = run("restore", str(path), "--bootstrap", "system.yaml", cwd=second.folder)
            assert (again.returncode, "has tables of nephila already" in again.stderr) == (1, True)
            rest = run("restore", str(path), "--bootstrap", "system.yaml", "--without-rows", cwd=second.folder)
            assert (rest.returncode, "has a frontier already" in rest.stderr) == (2, True)
            before = len(web.requests)
            second.start(*SERVICES)
            waited = subprocess.run(
                [sys.executable, "-c", UNTIL_IDLE], cwd=second.folder, capture_output=True, check=False
            )
            assert waited.returncode == 0, waited.stdout
            assert second.table() == undisturbed
            asked = [r.path for r in web.requests[before:] if r.path != "/robots.txt"]
            assert len(asked) <= PAGES - had + 40
            checked = run("check", "--bootstrap", "system.yaml", cwd=second.folder)
            assert checked.returncode == 0, checked.stdout
        finally:
            site.gate.set()
            first.close()
            if second is not None:
                second.close()
