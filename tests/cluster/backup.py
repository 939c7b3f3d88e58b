"""A backup of a running crawl by the chart's CronJob, the loss of all else, a restore, the rest of the crawl.

The broker compacts its topics before the backup: a system of some days has no first records.
"""

from __future__ import annotations

import time

from tests.cluster.compaction import compact
from tests.cluster.release import Release
from tests.cluster.sections import start
from tests.cluster.web import Web

ROWS = "select job, url_key, url, outcome, status, sha256 from pages order by 1, 2"


def backup(release: Release, web: Web) -> None:
    """Rows after a restore are those of the crawl without one; pages after the backup are fetched again."""
    values = (
        "backup.enabled=true",
        f"backup.postgresImage={release.options.postgres_image}",
        "blobStore.persistence.enabled=true",
    )
    release.install(*values)
    start(release, web)
    release.wait_rows(web.goal // 3, release.options.limit)
    compact(release)
    began = time.monotonic()
    release.kubectl("create", "job", f"--from=cronjob/{release.component('backup')}", "now")
    done = release.until(lambda: release.get("job/now", "{.status.succeeded}") == "1", 180)
    release.step("backup of the running crawl", began, f"{release.rows():,} rows at its end")
    release.rule("the backup is complete", float(done), 1)
    release.wait_rows(web.goal, release.options.limit)
    undisturbed = release.sql(ROWS)
    began = time.monotonic()
    release.helm("uninstall", release.name, "--wait", "--timeout", release.limit(180))
    claims = release.get("pvc", "{.items[*].metadata.name}").split()
    lost = [one for one in claims if one != release.component("backup")]
    release.kubectl("delete", "job/now", "--ignore-not-found", f"--timeout={release.limit(60)}")
    release.kubectl("delete", "pvc", *lost, f"--timeout={release.limit(60)}")
    release.install(*values, "restore.enabled=true")
    release.step(f"uninstall, {len(lost)} claims deleted, install with a restore", began)
    began = time.monotonic()
    _wait_restore(release)
    release.step("the Job of the restore", began, f"{release.rows():,} rows")
    began = time.monotonic()
    release.install(*values)
    rows = release.wait_rows(web.goal, release.options.limit)
    release.step("services up again, until the last row", began)
    release.rule("rows that differ from those before the loss", len(_different(release.sql(ROWS), undisturbed)), 0)
    twice = "select count(*) from (select url from pages group by url having count(*) > 1) as d"
    release.rule("rows", rows, web.goal)
    release.rule("URLs with two rows", int(release.sql(twice)[0][0]), 0)
    verdict = web.verdict(0.0)
    release.rule("pages requested", verdict.pages, web.goal, f"{verdict.again} requested again, after the backup")


def _different(rows: list[list[str]], others: list[list[str]]) -> set[tuple[str, ...]]:
    """Rows of one table alone."""
    return set(map(tuple, rows)) ^ set(map(tuple, others))


def _wait_restore(release: Release) -> None:
    """Wait for the end of the Job. Ends the run with its log if it fails."""
    selector = release.selector("restore")
    words = ["wait", "--for=condition=complete", f"--timeout={release.limit(180)}", "job", "-l", selector]
    if not release.kubectl(*words, check=False):
        raise SystemExit(release.kubectl("logs", "--all-containers", "-l", selector, check=False)[-3000:])
