"""A page whose text and link are made by scripts, in the browsers of the chart."""

from __future__ import annotations

import time

from tests.cluster.release import ROOT, Release, job
from tests.cluster.web import Web, write_to_node

PROFILE = ROOT / "docker/seccomp-browser.json"
SECCOMP = "/var/lib/kubelet/seccomp"
"""Folder of the node in which its kubelet looks for profiles."""


def rendered(release: Release, web: Web) -> None:
    """The sandbox of Chromium is on: the profile of seccomp is copied to the node before."""
    release.run("kubectl", "create", "namespace", release.namespace, check=False)
    write_to_node(release, PROFILE, SECCOMP)
    began = time.monotonic()
    release.install("browser.enabled=true")
    release.step("helm install --wait with a browser", began)
    web.open()
    began = time.monotonic()
    release.apply("CrawlJob", "rendered", job([f"http://{web.names[0]}/scripted"], render="always"))
    release.wait_rows(2, 300)
    release.step("a rendered page and the page behind its link", began)
    # A row of the answer is a line.
    columns = "substring(url from '[^/]*$'), replace(text, E'\\n', ' ')"
    texts = dict(release.sql(f"select {columns} from pages where outcome = 'stored'"))
    print(texts)
    release.rule("text by a script", float("written by a script" in texts.get("scripted", "")), 1)
    release.rule("page behind a link by a script", float("behind" in texts), 1)
