"""A rotated password of the database: the Secret and the server change, no pod does."""

from __future__ import annotations

import json
import time
from base64 import b64encode

from tests.cluster.release import Release
from tests.cluster.sections import finish, start
from tests.cluster.web import Web

ROTATED = "rotated-by-the-run"
SESSIONS = (
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'nephila' and pid <> pg_backend_pid()"
)


def password(release: Release, web: Web) -> None:
    """Rows are written again without a restart, once the kubelet has renewed the file."""
    release.install()
    crawl = start(release, web)
    members = release.ready("storage")
    before = release.rows()
    began = time.monotonic()
    release.sql(f"alter role nephila password '{ROTATED}'")
    release.sql(SESSIONS)
    refused = release.until(lambda: release.rows() == before or not release.ready("storage"), 30)
    data = {"data": {"password": b64encode(ROTATED.encode()).decode()}}
    release.kubectl("patch", f"secret/{release.component('postgres')}", "--type=merge", "-p", json.dumps(data))
    rotated, stored = time.monotonic(), release.rows()
    written = release.until(lambda: release.rows() > stored + len(web.hosts), 240)
    release.step("a rotated password, to further rows", began, f"{time.monotonic() - rotated:.1f} s after the Secret")
    release.rule("rows are written with the new password", float(refused and written), 1)
    release.rule("storage has the same pod", float(release.ready("storage") == members), 1)
    restarts = release.kubectl(
        "get",
        "pods",
        "-l",
        release.selector("storage"),
        "-o",
        "jsonpath={.items[*].status.containerStatuses[*].restartCount}",
    )
    release.rule("restarts of storage", int(restarts), 0)
    finish(release, web, crawl)
