"""A backup of a running crawl by the chart's CronJob, the loss of all else, a restore, the rest of the crawl."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.cluster.release import Release
from tests.cluster.sections import start
from tests.cluster.web import Web

SERVICES = ("scheduler", "downloader", "parser", "storage", "operator")
STOPPED = [f"{one}.replicas=0" for one in SERVICES]


def backup(release: Release, web: Web) -> None:
    """Rows after the restore are those of the whole site, each once; pages after the backup are fetched again."""
    values = (
        "backup.enabled=true",
        f"backup.postgresImage={release.options.postgres_image}",
        "blobStore.persistence.enabled=true",
    )
    release.install(*values)
    start(release, web)
    release.wait_rows(web.goal // 3, release.options.limit)
    began = time.monotonic()
    release.kubectl("create", "job", f"--from=cronjob/{release.component('backup')}", "now")
    done = release.until(lambda: release.get("job/now", "{.status.succeeded}") == "1", 180)
    release.step("backup of the running crawl", began, f"{release.rows():,} rows at its end")
    release.rule("the backup is complete", float(done), 1)
    release.wait_rows(web.goal * 2 // 3, release.options.limit)
    began = time.monotonic()
    release.helm("uninstall", release.name, "--wait", "--timeout", "3m")
    claims = release.get("pvc", "{.items[*].metadata.name}").split()
    lost = [one for one in claims if one != release.component("backup")]
    release.kubectl("delete", "job/now", "--ignore-not-found", "--timeout=60s")
    release.kubectl("delete", "pvc", *lost, "--timeout=60s")
    release.install(*values, *STOPPED)
    release.step(f"uninstall, {len(lost)} claims deleted, install with no service", began)
    began = time.monotonic()
    _restore(release)
    release.step("nephila restore and pg_restore", began, f"{release.rows():,} rows")
    began = time.monotonic()
    release.install(*values)
    found = release.wait_rows(web.goal, release.options.limit)
    release.step("services up again, until the last row", began)
    twice = "select count(*) from (select url from pages group by url having count(*) > 1) as d"
    release.rule("rows", found, web.goal)
    release.rule("URLs with two rows", int(release.sql(twice)[0][0]), 0)
    verdict = web.verdict(0.0)
    release.rule("pages requested", verdict.pages, web.goal, f"{verdict.again} requested again, after the backup")


def _restore(release: Release) -> None:
    """Both commands of docs/operations.md, in pods with the claim and the settings of the release."""
    newest = "newest=$(ls -d /backups/*Z | sort | tail -n 1); "
    database = f"postgresql://nephila@{release.component('postgres')}/nephila"
    cli = f"nephila-cli:{release.options.tag}"
    frontier = f'{newest} nephila restore "$newest" --bootstrap /etc/nephila/system.yaml --without-rows'
    _run(release, "restore-frontier", cli, frontier)
    rows = f'{newest} pg_restore --exit-on-error --no-owner --dbname={database} "$newest.rows.dump"'
    _run(release, "restore-rows", release.options.postgres_image, rows)


def _run(release: Release, name: str, image: str, script: str) -> None:
    """A pod until its end. Ends the run with its log if it fails."""
    secret = {"name": release.component("postgres"), "key": "password"}
    volumes: list[dict[str, Any]] = [
        {"name": "backups", "persistentVolumeClaim": {"claimName": release.component("backup")}},
        {"name": "blobs", "persistentVolumeClaim": {"claimName": release.component("blobs")}},
        {"name": "config", "configMap": {"name": release.component("config")}},
    ]
    places = {"backups": "/backups", "blobs": "/blobs", "config": "/etc/nephila"}
    container = {
        "name": name,
        "image": image,
        "command": ["sh", "-euc", script],
        "env": [
            {"name": "PGPASSWORD", "valueFrom": {"secretKeyRef": secret}},
            {"name": "HOME", "value": "/tmp"},  # noqa: S108 - of the pod
        ],
        "volumeMounts": [{"name": one, "mountPath": path} for one, path in places.items()],
    }
    security = {"runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001}
    spec = {"restartPolicy": "Never", "securityContext": security, "containers": [container], "volumes": volumes}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    release.kubectl("apply", "-f", "-", text=json.dumps(pod))
    phase = "{.status.phase}"
    release.until(lambda: release.get(f"pod/{name}", phase) in ("Succeeded", "Failed"), 180)
    log = release.kubectl("logs", f"pod/{name}", check=False)
    if release.get(f"pod/{name}", phase) != "Succeeded":
        raise SystemExit(f"{name}: {log[-3000:]}")
    print(log.strip()[-400:])
