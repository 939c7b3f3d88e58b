"""More partitions under load, compaction after it, and the restart of all pods at once."""

from __future__ import annotations

import time

from tests.cluster.compaction import compact
from tests.cluster.release import Release
from tests.cluster.sections import COMPONENTS, finish, start
from tests.cluster.web import Web

PARTITIONS = 64


def growth(release: Release, web: Web) -> None:
    """From 16 to 64 partitions, compaction, all pods deleted at once: no URL is lost."""
    release.install()
    crawl = start(release, web)
    release.wait_rows(web.goal // 10, release.options.limit)
    began = time.monotonic()
    release.nephila("service", "topics", "grow", "--to", str(PARTITIONS), limit_s=600)
    release.step(f"nephila service topics grow --to {PARTITIONS}", began, f"{release.rows():,} rows at its end")
    compact(release)
    restart(release)
    release.rule("the crawl still runs after the last step", float(release.rows() < web.goal), 1, "more --pages")
    finish(release, web, crawl)


def restart(release: Release) -> None:
    """Delete all pods of a release by force, until as many others are ready."""
    began = time.monotonic()
    before = {component: release.ready(component) for component in COMPONENTS}
    instance = f"app.kubernetes.io/instance={release.name}"
    release.kubectl("delete", "pods", "-l", instance, "--grace-period=0", "--force", "--wait=false")
    healed = release.until(
        lambda: all(len(release.ready(component) - uids) >= len(uids) for component, uids in before.items()), 300
    )
    release.step("kubectl delete pods --grace-period=0 of all components at once", began)
    release.rule("all pods are ready again", float(healed), 1)
