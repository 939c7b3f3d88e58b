"""The chart on a real cluster: install, crawl, scale, kill, upgrade, roll back, uninstall; judged by the site's log.

    python -m tests.cluster.show [--namespace nephila-show] [--keep]

Needs kubectl and helm on the PATH, a kubeconfig, and the images in the cluster (`make images ARGS='--dev --load …'`).
Prints one line per step with its time, then the verdict; exit code 1 when a rule is broken.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cluster.pauses import pauses
from tools.release import version

ROOT = Path(__file__).parents[2]
CHART = str(ROOT / "charts/nephila")
SITE = ROOT / "tests" / "cluster" / "site.py"
RELEASE = "web"
SCHEDULER, DOWNLOADER, PARSER, STORAGE = (
    f"{RELEASE}-nephila-{one}" for one in ("scheduler", "downloader", "parser", "storage")
)
POSTGRES, KAFKA = f"{RELEASE}-nephila-postgres", f"{RELEASE}-nephila-kafka"
EARLIER = "25baa445"
"""Commit whose chart is installed first: that of the last release."""
DELAY_S = 0.5
SLACK_S = 0.02
AFTER_S = 10.0
"""A pause may begin this long after a step: members leave and join when their pods do."""


class Show:
    """One run in one namespace."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.namespace = options.namespace
        self.hosts = [f"h{number:02}" for number in range(options.hosts)]
        self.steps: list[tuple[str, float, float]] = []
        """Name, begin and end of each step, seconds since 1970."""
        self.broken: list[str] = []

    # ---- commands

    def run(self, *words: str, text: str | None = None, check: bool = True, limit_s: float = 300) -> str:
        """A command in the namespace; its output."""
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=limit_s, check=False)
        if check and done.returncode:
            raise SystemExit(
                f"{' '.join(words[:6])} …: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
            )
        return done.stdout

    def kubectl(self, *words: str, **options: Any) -> str:
        return self.run("kubectl", "-n", self.namespace, *words, **options)

    def helm(self, *words: str, **options: Any) -> str:
        return self.run("helm", "-n", self.namespace, *words, **options)

    def sql(self, query: str) -> list[list[str]]:
        """Rows of a query, by psql in the database's pod."""
        text = self.kubectl(
            "exec",
            f"{POSTGRES}-0",
            "--",
            "psql",
            "-h",
            "/var/run/postgresql",
            "-U",
            "nephila",
            "-At",
            "-F",
            "\t",
            "-c",
            query,
        )
        return [line.split("\t") for line in text.splitlines()]

    def step(self, name: str, since: float, note: str = "") -> None:
        seconds = time.monotonic() - since
        self.steps.append((name, time.time() - seconds, time.time()))
        print(f"{seconds:7.1f} s  {name}{': ' + note if note else ''}", flush=True)

    # ---- steps

    def install(self) -> None:
        began = self.installing = time.monotonic()
        self.run("kubectl", "create", "namespace", self.namespace, check=False)
        values = [
            "--set", f"image.tag={self.options.tag},crawler.contact=show@example.org,crawler.allowPrivate=true",
            "--set", f"kafka.dev.image={self.options.kafka_image},database.dev.image={self.options.postgres_image}",
            "--set", "image.pullPolicy=IfNotPresent,crawler.partitions=16",
            *(word for value in self.options.set for word in ("--set", value)),
        ]  # fmt: skip
        self.values = ["-f", str(ROOT / "charts/nephila/examples/laptop.yaml"), *values]
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(
                ["git", "archive", self.options.earlier, "charts/nephila"], cwd=ROOT, check=True, capture_output=True
            )
            subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
            chart = Path(folder, "charts", "nephila")
            values = ["-f", str(chart / "examples/laptop.yaml"), *values]
            self.helm("upgrade", "--install", RELEASE, str(chart), *values, "--wait", "--timeout=10m", limit_s=660)
        self.step(f"helm install --wait of the chart of {self.options.earlier}", began)

    def upgrade_chart(self) -> None:
        """To the chart of this tree, while the broker and the database have no volume: their pods must stay."""
        began = time.monotonic()
        before = [self.uid(one) for one in (POSTGRES, KAFKA)]
        self.helm("upgrade", RELEASE, CHART, *self.values, "--wait", "--timeout=6m", limit_s=400)
        kept = before == [self.uid(one) for one in (POSTGRES, KAFKA)]
        self.step("helm upgrade --wait to the chart of this tree", began)
        self.rule("broker and database are not replaced by a chart", float(kept), 1)

    def uid(self, name: str) -> str:
        return self.kubectl("get", "pod", f"{name}-0", "-o", "jsonpath={.metadata.uid}")

    def second_release(self) -> None:
        """It is refused, since it would serve what the first one serves."""
        began = time.monotonic()
        words = ["helm", "-n", self.namespace, "install", "second", CHART, *self.values, "--dry-run=server"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        self.step("helm install of a second release", began)
        self.rule("a second release in the namespace is refused", float("operator.unlabelled=false" in done.stderr), 1)

    def replicas(self) -> int:
        return int(self.kubectl("get", f"deployment/{DOWNLOADER}", "-o", "jsonpath={.spec.replicas}"))

    def test(self) -> None:
        began = time.monotonic()
        self.helm("test", RELEASE, "--timeout", "3m")
        self.step("helm test", began)

    def site(self) -> None:
        began = time.monotonic()
        names = [f"{host}.{self.namespace}.svc.cluster.local" for host in self.hosts]
        self.urls = [f"http://{name}/0" for name in names]
        labels = {"app": "site"}
        container = {
            "name": "site",
            "image": f"nephila-cli:{self.options.tag}",
            "command": ["python3", "/site/site.py", str(self.options.pages), *names],
            "ports": [{"containerPort": 8080}],
            "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
            "volumeMounts": [{"name": "site", "mountPath": "/site"}],
        }
        objects: list[dict[str, Any]] = [
            {"kind": "ConfigMap", "metadata": {"name": "site"}, "data": {"site.py": SITE.read_text()}},
            {
                "kind": "Pod",
                "metadata": {"name": "site", "labels": labels},
                "spec": {"containers": [container], "volumes": [{"name": "site", "configMap": {"name": "site"}}]},
            },
        ]
        for host in self.hosts:
            spec = {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}
            objects.append({"kind": "Service", "metadata": {"name": host}, "spec": spec})
        manifest = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", **one} for one in objects]}
        self.kubectl("apply", "-f", "-", text=json.dumps(manifest))
        self.kubectl("wait", "--for=condition=Ready", "pod/site", "--timeout=120s")
        self.step("site", began, f"{len(self.hosts)} hosts of {self.options.pages} pages")

    def submit(self) -> None:
        """The rule and the job, as custom resources."""
        rule = {"match": {"url": "."}, "fields": {"title": "title"}}
        job = {
            "seeds": self.urls[:1],
            "scope": {"mode": "any", "maxDepth": 100},
            "politeness": {"delay": f"{int(DELAY_S * 1000)}ms"},
            "rules": ["show"],
        }
        self.began = time.monotonic()
        self.apply("ParseRule", rule)
        self.apply("CrawlJob", job)
        while not self.rows():
            time.sleep(0.2)
        self.step("kubectl apply of ParseRule and CrawlJob to the first row", self.began)
        taken = time.monotonic() - self.installing
        print(
            f"from helm install to the first stored page: {taken:.1f} s, helm test and the start of the site included"
        )

    def apply(self, kind: str, spec: dict[str, Any]) -> None:
        """As kubectl apply -f."""
        document = {"apiVersion": "nephila.dev/v1", "kind": kind, "metadata": {"name": "show"}, "spec": spec}
        self.kubectl("apply", "-f", "-", text=json.dumps(document))

    def patch(self, plural: str, spec: dict[str, Any]) -> None:
        """As kubectl edit."""
        self.kubectl("patch", plural, "show", "--type=merge", "-p", json.dumps({"spec": spec}))

    def condition(self, plural: str, kind: str) -> str:
        """Status and reason of a condition, as `True Applied`."""
        path = f'{{.status.conditions[?(@.type=="{kind}")]'
        return self.kubectl("get", plural, "show", "-o", f"jsonpath={path}.status}} {path}.reason}}")

    def until(self, what: Callable[[], bool], limit_s: float = 60) -> bool:
        """Whether something becomes true in time."""
        end = time.monotonic() + limit_s
        while not (found := what()) and time.monotonic() < end:
            time.sleep(0.5)
        return found

    def generations(self) -> tuple[str, str]:
        """The generation of the job's resource, and the one that the operator has processed."""
        path = "jsonpath={.metadata.generation} {.status.observedGeneration}"
        first, _, second = self.kubectl("get", "crawljobs", "show", "-o", path).partition(" ")
        return first, second

    def edit(self) -> None:
        """Speed, depth and exclusions of the running job; the delay only becomes longer, so that the verdict holds."""
        before = self.pace(15)
        began = time.monotonic()
        change = {"politeness": {"delay": "3s"}, "scope": {"maxDepth": 99, "exclude": ["/never$"]}}
        self.patch("crawljobs", change)
        self.until(lambda: len(set(self.generations())) == 1)
        taken = time.monotonic() - began
        time.sleep(5)
        slow = self.pace(15)
        self.patch("crawljobs", {"politeness": {"delay": f"{int(DELAY_S * 1000)}ms"}})
        time.sleep(5)
        after = self.pace(15)
        note = f"applied after {taken:.1f} s; {before:,.0f}, then {slow:,.0f}, then {after:,.0f} pages/min"
        self.step(f"kubectl patch crawljob: delay {DELAY_S} s, 3 s, {DELAY_S} s", began, note)
        self.rule("pages/min fall with a longer delay", float(slow < before), 1)

    def change_rule(self) -> None:
        """A good change, then a bad one, which changes nothing."""
        began = time.monotonic()
        self.patch("parserules", {"fields": {"text": "p"}})
        versions = "select count(distinct rule_version) from items"
        live = self.until(lambda: self.sql(versions) == [["2"]])
        self.step("kubectl patch parserule to the first item of the new version", began)
        self.patch("parserules", {"fields": {"text": {"css": "p["}}})
        refused = self.until(lambda: self.condition("parserules", "Accepted") == "False Invalid")
        ready = self.condition("parserules", "Ready")
        self.patch("parserules", {"fields": {"text": {"css": "p"}}})
        self.rule("versions of the rule in the items", 2 if live else 1, 2)
        self.rule("a bad rule is refused in its status", float(refused), 1, f"Ready is {ready}")

    def resources(self) -> None:
        """The status of the job at its end, and its deletion."""
        state = "jsonpath={.status.state} {.status.counts.stored}"
        self.until(lambda: self.kubectl("get", "crawljobs", "show", "-o", state).startswith("idle"))
        print(self.kubectl("get", "crawljobs,parserules", "-o", "wide"))
        stored = self.kubectl("get", "crawljobs", "show", "-o", state).partition(" ")[2]
        self.rule("stored, in the status of the CrawlJob", int(stored or 0), len(self.hosts) * self.options.pages)
        began = time.monotonic()
        self.kubectl("delete", "crawljobs,parserules", "--all", "--timeout=60s")
        self.step("kubectl delete crawljobs,parserules --all", began)

    def rows(self) -> int:
        found = self.sql("select to_regclass('pages') is not null")
        if found != [["t"]]:
            return 0
        return int(self.sql("select count(*) from pages")[0][0])

    def pace(self, seconds: float) -> float:
        """Rows a minute, over some seconds."""
        before, began = self.rows(), time.monotonic()
        time.sleep(seconds)
        return 60 * (self.rows() - before) / (time.monotonic() - began)

    def scale(self, replicas: int) -> None:
        began = time.monotonic()
        self.kubectl("scale", f"deployment/{DOWNLOADER}", f"--replicas={replicas}")
        self.kubectl("rollout", "status", f"deployment/{DOWNLOADER}", "--timeout=180s")
        self.step(
            f"kubectl scale deployment/…-downloader --replicas={replicas}",
            began,
            f"then {self.pace(15):,.0f} pages/min",
        )

    def kill(self, component: str) -> None:
        began = time.monotonic()
        selector = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component={component}"
        pod = self.kubectl("get", "pods", "-l", selector, "-o", "name").split()[0]
        self.kubectl("delete", pod, "--grace-period=0", "--force", "--wait=false")
        kind = "statefulset" if component in ("scheduler", "kafka", "postgres") else "deployment"
        time.sleep(1)
        self.kubectl("rollout", "status", f"{kind}/{RELEASE}-nephila-{component}", "--timeout=240s")
        self.step(f"kubectl delete pod --grace-period=0: {component}", began)

    def upgrade(self) -> None:
        began = time.monotonic()
        change = ["--set", "crawler.logLevel=warning"]
        before = self.replicas()
        self.helm("upgrade", RELEASE, CHART, *self.values, *change, "--wait", "--timeout=6m", limit_s=400)
        self.step("helm upgrade --wait under load", began)
        self.rule("replicas that were set by hand, after helm upgrade", self.replicas(), before)
        began = time.monotonic()
        self.helm("rollback", RELEASE, "2", "--wait", "--timeout", "6m", limit_s=400)
        self.step("helm rollback --wait under load", began)

    def finish(self) -> None:
        goal = len(self.hosts) * self.options.pages
        end = time.monotonic() + self.options.limit
        while (found := self.rows()) < goal and time.monotonic() < end:
            time.sleep(2)
        self.step("crawl, from the job to the last row", self.began, f"{found:,} of {goal:,} rows")

    # ---- verdict

    def judge(self) -> None:
        goal = len(self.hosts) * self.options.pages
        lines = [
            json.loads(line)
            for line in self.kubectl("logs", "pod/site", "--tail=-1").splitlines()
            if line.startswith("{")
        ]
        pages = [line for line in lines if line["path"] != "/robots.txt"]
        distinct = {(line["host"], line["path"]) for line in pages}
        stored = int(self.sql("select count(*) from pages where outcome = 'stored'")[0][0])
        twice = int(
            self.sql("select count(*) from (select url from pages group by url having count(*) > 1) as d")[0][0]
        )
        by_host: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in lines:
            by_host[line["host"]].append(line)
        early, shortest, shortest_since_end, longest_pause = 0, 1e9, 1e9, 0.0
        for found in by_host.values():
            found.sort(key=lambda line: line["start"])
            for before, after in itertools.pairwise(found):
                if "/robots.txt" in (before["path"], after["path"]):
                    continue
                # The thread of the site may wait for a core between its last byte and its look at the clock, so only
                # the time since the first byte of the response proves a request that is too early.
                gap = after["start"] - before["sent"]
                since_end = after["start"] - before["end"]
                shortest, shortest_since_end = min(shortest, gap), min(shortest_since_end, since_end)
                if since_end < DELAY_S - SLACK_S:
                    print(
                        f"{before['host']}: {after['path']} {gap:.3f} s after the first byte, {since_end:.3f} s after "
                        f"the end of {before['path']}, {time.time() - after['start']:.0f} s ago"
                    )
                early += gap < DELAY_S - SLACK_S
        starts = sorted(line["start"] for line in lines)
        longest_pause = max((b - a for a, b in itertools.pairwise(starts)), default=0.0)
        self.rule("pages requested", len(distinct), goal, f"{len(pages) - len(distinct)} requested again")
        self.rule("rows stored", stored, goal)
        self.rule("URLs with two rows", twice, 0)
        self.rule(
            f"gaps below {DELAY_S} s", early, 0, f"shortest {shortest:.3f} s, {shortest_since_end:.3f} s by the end"
        )
        print(f"longest time without any request: {longest_pause:.1f} s")
        hosts = [[line["start"] for line in found] for found in by_host.values()]
        for name, since, until in self.steps:
            if "scale" in name or "delete pod" in name or "under load" in name:
                one, every = pauses(hosts, since, until + AFTER_S)
                print(f"pause of a host {one:.1f} s, of all hosts {every:.1f} s: {name}")

    def rule(self, name: str, found: float, wanted: float, note: str = "") -> None:
        ok = found == wanted
        if not ok:
            self.broken.append(name)
        print(f"{'ok   ' if ok else 'WRONG'} {name}: {found:,} (wanted {wanted:,}){'; ' + note if note else ''}")

    def uninstall(self) -> None:
        began = time.monotonic()
        # Resources with a finalizer would keep the namespace; CRDs are kept by the chart.
        self.kubectl("delete", "crawljobs,parserules", "--all", "--timeout=60s")
        self.helm("uninstall", RELEASE, "--wait", "--timeout", "3m")
        self.run("kubectl", "delete", "crd", "crawljobs.nephila.dev", "parserules.nephila.dev")
        self.run("kubectl", "delete", "namespace", self.namespace, "--timeout=180s", check=False)
        self.step("helm uninstall", began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--namespace", default="nephila-show")
    parser.add_argument("--tag", default=version())
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--pages", type=int, default=300, help="pages of each host")
    parser.add_argument("--limit", type=float, default=1200, help="seconds for the rest of the crawl")
    parser.add_argument("--kafka-image", default=f"nephila-dev-kafka:{version()}")
    parser.add_argument("--postgres-image", default=f"nephila-dev-postgres:{version()}")
    parser.add_argument("--earlier", default=EARLIER, metavar="COMMIT", help="whose chart is installed first")
    parser.add_argument("--set", action="append", default=[], help="a further value of the chart; may be repeated")
    parser.add_argument("--keep", action="store_true", help="do not uninstall")
    show = Show(parser.parse_args())
    show.install()
    show.upgrade_chart()
    show.second_release()
    show.test()
    show.site()
    show.submit()
    print(f"{show.pace(15):,.0f} pages/min with 1 downloader")
    show.scale(4)
    for component in ("downloader", "parser", "storage", "scheduler"):
        show.kill(component)
    show.edit()
    show.change_rule()
    show.kill("operator")
    show.upgrade()
    show.scale(1)
    show.finish()
    show.judge()
    show.resources()
    if not show.options.keep:
        show.uninstall()
    sys.exit(1 if show.broken else 0)


if __name__ == "__main__":
    main()
