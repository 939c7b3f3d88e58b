"""A backup of a running crawl by the chart's CronJob, the loss of all else, a restore, the rest of the crawl."""

from __future__ import annotations

import time

from tests.cluster.release import Release
from tests.cluster.sections import start
from tests.cluster.web import Web


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
    release.install(*values, "restore.enabled=true")
    release.step(f"uninstall, {len(lost)} claims deleted, install with a restore", began)
    began = time.monotonic()
    _wait_restore(release)
    release.step("the Job of the restore", began, f"{release.rows():,} rows")
    began = time.monotonic()
    release.install(*values)
    found = release.wait_rows(web.goal, release.options.limit)
    release.step("services up again, until the last row", began)
    twice = "select count(*) from (select url from pages group by url having count(*) > 1) as d"
    release.rule("rows", found, web.goal)
    release.rule("URLs with two rows", int(release.sql(twice)[0][0]), 0)
    verdict = web.verdict(0.0)
    release.rule("pages requested", verdict.pages, web.goal, f"{verdict.again} requested again, after the backup")


def _wait_restore(release: Release) -> None:
    """Wait for the end of the Job. Ends the run with its log if it fails."""
    selector = f"app.kubernetes.io/instance={release.name},app.kubernetes.io/component=restore"
    words = ["wait", "--for=condition=complete", "--timeout=180s", "job", "-l", selector]
    if not release.kubectl(*words, check=False):
        raise SystemExit(release.kubectl("logs", "--all-containers", "-l", selector, check=False)[-3000:])
