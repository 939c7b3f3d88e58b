"""A system over Kafka is lost with its broker and its database; the chart's commands bring it back, and it goes on.

The scripts are those of the rendered CronJob and Job, with the paths of this machine. The system has grown, and the
broker has compacted its topics before the backup.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from nephila.kernel.bus.contract import newest
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import JOBS, SETTINGS
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.grow import present
from nephila_tools.backup import archive

from tests.chart.test_backup_job import RESTORE, restore_job
from tests.chart.test_chart import named, objects
from tests.contracts.buses import compacted
from tests.e2e.test_backup_of_a_system import PAGES, UNTIL_IDLE, PostgresSystem, Site, database
from tests.e2e.test_services_over_kafka import SERVICES
from tests.e2e.web import NEPHILA, run, serve
from tools.kafka_broker import Broker

ROOT = Path(__file__).parents[2]


def scripts(pod: dict[str, Any]) -> list[str]:
    """The scripts of a pod's containers, in the order in which they run."""
    return [container["args"][0] for place in ("initContainers", "containers") for container in pod[place]]


def run_pod(pod: dict[str, Any], system: PostgresSystem, backups: Path) -> list[subprocess.CompletedProcess[str]]:
    """Run the scripts of a pod until one fails, with the files of a system in place of the pod's volumes."""
    done = []
    programs = system.folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "nephila").write_text(f'#!/bin/sh\nexec {shlex.join(NEPHILA)} "$@"\n')
    (programs / "nephila").chmod(0o755)
    password = system.folder / "password"
    password.write_text(psycopg.conninfo.conninfo_to_dict(system.store)["password"])
    paths = {
        "/etc/nephila/system.yaml": str(system.folder / "system.yaml"),
        "/etc/nephila-database/password": str(password),
        "/backups": str(backups),
        "postgresql://nephila@web-nephila-postgres/nephila": system.store.replace(f":{password.read_text()}@", "@"),
    }
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "services"), str(ROOT)]),
    }
    for script in scripts(pod):
        for path, here in paths.items():
            script = script.replace(path, here)
        words = ["sh", "-ceu", script]
        done.append(
            subprocess.run(
                words, cwd=system.folder, env=environment, capture_output=True, text=True, timeout=120, check=False
            )
        )
        if done[-1].returncode:
            break
    return done


async def compact(broker: Broker, prefix: str) -> None:
    """Let the broker compact the topics of jobs and settings; their state stays."""
    config = KafkaConfig(bootstrap=broker.address, prefix=prefix, partitions=16)
    bus = KafkaBus(config, SystemClock())
    await bus.start()
    try:
        for topic in (JOBS, SETTINGS):
            state = await newest(bus, topic)
            await compacted(config, bus, topic, next(reversed(state.values())))
    finally:
        await bus.close()


@pytest.fixture
def brokers(tmp_path):
    """Two brokers, the second with nothing on it."""
    folders = [tmp_path / "broker", tmp_path / "another"]
    started = []
    try:
        for folder in folders:
            folder.mkdir()
            started.append(Broker(folder).start())
        yield started
    finally:
        for broker in started:
            broker.stop()


def test_a_lost_system_comes_back_by_the_commands_of_the_chart(tmp_path, brokers, store):
    """Rows are those of a crawl that nothing has disturbed."""
    lost, empty = brokers
    site = Site()
    backups = tmp_path / "backups"
    backups.mkdir()
    pod = named(objects(*RESTORE), "CronJob", "web-nephila-backup")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    with serve(site) as web:
        first = PostgresSystem(tmp_path / "first", lost, web, store, "first-")
        second = None
        try:
            first.create()
            first.start(*SERVICES)
            site.gate.clear()
            words = [*NEPHILA, "crawl", "http://h0.test/0", "--scope", "any", "--bootstrap", "system.yaml"]
            crawl = subprocess.Popen([*words, "--delay", "0.01", "--json"], cwd=first.folder, stdout=subprocess.PIPE)
            assert site.reached.wait(60)
            grown = run("service", "topics", "grow", "--bootstrap", "system.yaml", "--to", "32", cwd=first.folder)
            assert grown.returncode == 0, grown.stderr
            asyncio.run(compact(lost, "first-"))
            for done in run_pod(pod, first, backups):
                assert done.returncode == 0, done.stderr
            (backup,) = archive.finished(backups)
            assert archive.rows_beside(backup).exists()
            site.gate.set()
            out, _ = crawl.communicate(timeout=120)
            assert json.loads(out)["outcomes"]["stored"] == PAGES
            undisturbed = first.table()
            first.close()
            lost.crash()

            second = PostgresSystem(tmp_path / "second", empty, web, database(store), "second-")
            job = restore_job(*RESTORE)["spec"]["template"]["spec"]
            rows, frontier = run_pod(job, second, backups)
            assert (rows.returncode, frontier.returncode) == (0, 0), rows.stderr + frontier.stderr
            had = len(second.table())
            assert 0 < had < PAGES
            config = KafkaConfig(bootstrap=empty.address, prefix="second-", partitions=16)
            assert asyncio.run(present(config)).count == 32
            again = run_pod(job, second, backups)
            assert [done.returncode for done in again] == [1]
            assert "the database has tables of nephila already" in again[0].stderr

            second.start(*SERVICES)
            waited = subprocess.run(
                [sys.executable, "-c", UNTIL_IDLE], cwd=second.folder, capture_output=True, check=False
            )
            assert waited.returncode == 0, waited.stdout
            assert second.table() == undisturbed
            checked = run("check", "--bootstrap", "system.yaml", cwd=second.folder)
            assert checked.returncode == 0, checked.stdout
        finally:
            site.gate.set()
            first.close()
            if second is not None:
                second.close()
