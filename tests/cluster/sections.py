"""Sections of the run: each installs a release, does one thing to it under load, and judges."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.cluster.pauses import pauses
from tests.cluster.release import CHART, DELAY_S, ROOT, Release, job
from tests.cluster.web import Web

COMPONENTS = ("kafka", "postgres", "scheduler", "downloader", "parser", "storage", "api", "operator")
AFTER_S = 10.0
"""A pause may begin this long after a step: members leave and join when their pods do."""
DISTURBING = ("scale", "delete pod", "upgrade", "rollback")
"""Words in names of steps that may pause hosts."""


def start(release: Release, web: Web) -> float:
    """Open the site, apply a rule and a job, wait for the first row; when the job was applied (monotonic)."""
    web.open()
    began = time.monotonic()
    release.apply("ParseRule", "show", {"match": {"url": "."}, "fields": {"title": "title"}})
    release.apply("CrawlJob", "show", job([web.start], rules=["show"]))
    release.until(lambda: release.rows() > 0, 120)
    release.step("kubectl apply of ParseRule and CrawlJob to the first row", began)
    return began


def finish(release: Release, web: Web, began: float) -> None:
    """Wait for the last row; pages, rows, gaps, pauses."""
    found = release.wait_rows(web.goal, release.options.limit)
    release.step("crawl, from the job to the last row", began, f"{found:,} of {web.goal:,} rows")
    verdict = web.verdict(DELAY_S)
    stored = int(release.sql("select count(*) from pages where outcome = 'stored'")[0][0])
    twice = "select count(*) from (select url from pages group by url having count(*) > 1) as d"
    release.rule("pages requested", verdict.pages, web.goal, f"{verdict.again} requested again")
    release.rule("rows stored", stored, web.goal)
    release.rule("URLs with two rows", int(release.sql(twice)[0][0]), 0)
    release.rule(f"gaps below {DELAY_S} s", verdict.early, 0, f"shortest {verdict.shortest_gap_s:.3f} s")
    print(f"longest time without any request: {verdict.longest_pause_s:.1f} s")
    for name, since, until in release.steps:
        if any(word in name for word in DISTURBING):
            one, every = pauses(verdict.starts, since, until + AFTER_S)
            print(f"pause of a host {one:.1f} s, of all hosts {every:.1f} s: {name}")


def scale(release: Release, replicas: int) -> None:
    """Downloaders, with the pages a minute afterwards."""
    began = time.monotonic()
    release.scale("downloader", replicas)
    name = f"kubectl scale deployment/…-downloader --replicas={replicas}"
    release.step(name, began, f"then {release.pace(15):,.0f} pages/min")


def downloaders(release: Release) -> int:
    """Wanted number of downloaders."""
    return int(release.get(f"deployment/{release.component('downloader')}", "{.spec.replicas}"))


@contextlib.contextmanager
def earlier_chart(commit: str) -> Iterator[Path]:
    """The folder of the chart of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["git", "archive", commit, "charts/nephila"]
        archive = subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder, "charts", "nephila")


def upgrade(release: Release, web: Web) -> None:
    """From the chart of `--earlier` to this one and back, under load, on a cluster without volumes."""
    began = time.monotonic()
    with earlier_chart(release.options.earlier) as chart:
        release.install(chart=chart)
    release.step(f"helm install --wait of the chart of {release.options.earlier}", began)
    crawl = start(release, web)
    scale(release, 2)
    pods = [f"{release.component(one)}-0" for one in ("postgres", "kafka")]
    before = [release.uid(pod) for pod in pods]
    began = time.monotonic()
    release.install()
    release.step("helm upgrade --wait to the chart of this tree", began)
    kept = before == [release.uid(pod) for pod in pods]
    release.rule("broker and database are not replaced by a chart", float(kept), 1)
    release.rule("downloaders that were scaled by hand, after helm upgrade", downloaders(release), 2)
    _second_is_refused(release)
    began = time.monotonic()
    release.helm("test", release.name, "--timeout", release.limit(180))
    release.step("helm test", began)
    began = time.monotonic()
    release.install("crawler.logLevel=warning")
    release.step("helm upgrade --wait of a value", began)
    release.rule("downloaders after it", downloaders(release), 2)
    began = time.monotonic()
    release.helm("rollback", release.name, "2", "--wait", "--timeout", release.limit(360), limit_s=400)
    release.step("helm rollback --wait", began)
    finish(release, web, crawl)


def _second_is_refused(release: Release) -> None:
    """A second release would serve what the first one serves."""
    words = ["helm", "-n", release.namespace, "install", "second", str(CHART), *release.values, "--dry-run=server"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    release.rule("a second release in the namespace is refused", float("operator.unlabelled=false" in done.stderr), 1)


def kills(release: Release, web: Web) -> None:
    """Every component is killed in turn, while the job and its rule are changed. Broker and database have volumes."""
    began = time.monotonic()
    release.install()
    release.step("helm install --wait", began)
    crawl = start(release, web)
    print(f"from helm install to the first stored page: {time.monotonic() - began:.1f} s, the site's start included")
    print(f"{release.pace(15):,.0f} pages/min with 1 downloader")
    scale(release, 4)
    _change_job(release)
    _change_rule(release)
    for component in COMPONENTS:
        release.kill(component)
        print(f"          {release.pace(10):,.0f} pages/min", flush=True)
    scale(release, 1)
    release.rule("the crawl still runs after the last step", float(release.rows() < web.goal), 1, "more --pages")
    finish(release, web, crawl)
    _resources(release, web)


def _generations(release: Release) -> list[str]:
    """The generation of the job's resource, and the one that the operator has processed."""
    return release.get("crawljob/show", "{.metadata.generation} {.status.observedGeneration}").split()


def _change_job(release: Release) -> None:
    """Speed, depth and exclusions of the running job; the delay only becomes longer, so that the verdict holds."""
    before, began = release.pace(15), time.monotonic()
    change = {"politeness": {"delay": "3s"}, "scope": {"maxDepth": 99, "exclude": ["/never$"]}}
    release.patch("crawljob/show", change)
    release.until(lambda: len(set(_generations(release))) == 1)
    taken = time.monotonic() - began
    time.sleep(5)
    slow = release.pace(15)
    release.patch("crawljob/show", {"politeness": {"delay": f"{int(DELAY_S * 1000)}ms"}})
    note = f"applied after {taken:.1f} s; {before:,.0f}, then {slow:,.0f} pages/min"
    release.step("kubectl patch crawljob: a delay of 3 s", began, note)
    release.rule("pages/min fall with a longer delay", float(slow < before), 1)


def _change_rule(release: Release) -> None:
    """A good change, then a bad one, which changes nothing."""
    began = time.monotonic()
    release.patch("parserule/show", {"fields": {"text": "p"}})
    versions = "select count(distinct rule_version) from items"
    live = release.until(lambda: release.sql(versions) == [["2"]])
    release.step("kubectl patch parserule to the first item of the new version", began)
    release.patch("parserule/show", {"fields": {"text": {"css": "p["}}})
    refused = release.until(lambda: release.condition("parserule/show", "Accepted") == "False Invalid")
    ready = release.condition("parserule/show", "Ready")
    release.patch("parserule/show", {"fields": {"text": {"css": "p"}}})
    release.rule("versions of the rule in the items", 2 if live else 1, 2)
    release.rule("a bad rule is refused in its status", float(refused), 1, f"Ready is {ready}")


def _resources(release: Release, web: Web) -> None:
    """The status of the job at its end, and its deletion."""
    state = "{.status.state} {.status.counts.stored}"
    release.until(lambda: release.get("crawljob/show", state).startswith("idle"))
    print(release.kubectl("get", "crawljobs,parserules", "-o", "wide"))
    stored = release.get("crawljob/show", state).partition(" ")[2]
    release.rule("stored, in the status of the CrawlJob", int(stored or 0), web.goal)
    began = time.monotonic()
    release.kubectl("delete", "crawljobs,parserules", "--all", f"--timeout={release.limit(60)}")
    release.step("kubectl delete crawljobs,parserules --all", began)


def shipped(release: Release, web: Web) -> None:
    """The values as shipped: four downloaders find room on this node, and an upgrade keeps them."""
    began = time.monotonic()
    release.install("crawler.partitions=64", example="")
    release.step("helm install --wait with the values as shipped", began)
    crawl = start(release, web)
    scale(release, 4)
    pending = release.get("pods --field-selector=status.phase=Pending", "{.items[*].metadata.name}")
    release.rule("pods without a node", len(pending.split()), 0)
    began = time.monotonic()
    release.install("crawler.partitions=64", "crawler.logLevel=warning", example="")
    release.step("helm upgrade --wait of a value", began)
    release.rule("downloaders after it", downloaders(release), 4)
    finish(release, web, crawl)


def releases(release: Release, web: Web) -> None:
    """Two releases of a namespace: each has its own jobs, and no page is fetched by both."""
    second = Release(release.options, release.namespace, "second")
    began = time.monotonic()
    release.install()
    second.install("operator.unlabelled=false", "kafka.config.prefix=second-")
    release.step("helm install --wait of two releases", began)
    web.open()
    release.apply("CrawlJob", "first", job([web.start], max_pages=30))
    release.apply("CrawlJob", "second", job([web.start], max_pages=20), {"nephila.dev/release": "second"})
    owner = "{.status.release} {.status.state}"
    ended = release.until(
        lambda: all(release.get(f"crawljob/{one}", "{.status.state}") == "limit" for one in ("first", "second")), 120
    )
    release.step("two jobs of two releases", began, "both at their limit" if ended else "not both ended")
    for name, rows, one in (("first", 30, release), ("second", 20, second)):
        print(f"{name}: {release.get(f'crawljob/{name}', owner)}")
        release.rule(f"rows of the release {one.name}", one.rows(), rows)
    verdict = web.verdict(DELAY_S)
    release.rule("requests of both", verdict.pages + verdict.again, 50)
    second.kubectl("delete", "crawljob/second", f"--timeout={second.limit(60)}")
    second.helm("uninstall", "second", "--wait", "--timeout", second.limit(180))


def rules(release: Release, web: Web) -> None:
    """A rule of a file that was deleted or edited by hand is that of its file again within a minute."""
    name = "show-rules"
    head = {"apiVersion": "nephila.dev/v1", "kind": "ParseRule", "metadata": {"name": "filed"}}
    document = {**head, "spec": {"match": {"url": "."}, "fields": {"title": "title"}}}
    release.run("kubectl", "create", "namespace", release.namespace, check=False)
    release.kubectl("delete", "configmap", name, "--ignore-not-found")
    release.kubectl("create", "configmap", name, f"--from-literal=filed.yaml={json.dumps(document)}")
    release.install(f"rules.configMap={name}")
    spec = "{.spec}"
    if not release.until(lambda: release.get("parserule/filed", spec) != ""):
        raise SystemExit(release.kubectl("logs", f"deployment/{release.component('operator')}", "--tail=20"))
    wanted = release.get("parserule/filed", spec)
    steps: tuple[tuple[str, Callable[[], object]], ...] = (
        ("delete", lambda: release.kubectl("delete", "parserule/filed", f"--timeout={release.limit(60)}")),
        ("edit", lambda: release.patch("parserule/filed", {"fields": {"title": "h1"}})),
    )
    for what, change in steps:
        change()
        began = time.monotonic()
        healed = release.until(lambda: release.get("parserule/filed", spec) == wanted, 60)
        release.step(f"kubectl {what} of a rule of a file, until it is back", began)
        release.rule(f"healed after {what}", float(healed), 1)
