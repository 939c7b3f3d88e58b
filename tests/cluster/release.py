"""A release of the chart in a namespace, by kubectl and helm: commands, steps with their time, rules that must hold."""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/nephila"
DELAY_S = 0.5
"""Delay of the jobs."""


class Release:
    """One release in one namespace, and what was seen of it."""

    def __init__(self, options: argparse.Namespace, namespace: str = "nephila-show", name: str = "web") -> None:
        self.options, self.namespace, self.name = options, namespace, name
        self.steps: list[tuple[str, float, float]] = []
        """Name, begin and end of each step, seconds since 1970."""
        self.broken: list[str] = []
        self.values = [
            "--set", f"image.tag={options.tag},crawler.contact=show@example.org,crawler.allowPrivate=true",
            "--set", f"kafka.dev.image={options.kafka_image},database.dev.image={options.postgres_image}",
            "--set", "crawler.partitions=16",
            *(word for value in options.set for word in ("--set", value)),
        ]  # fmt: skip
        """Words of helm: images and settings of a test."""

    def component(self, name: str) -> str:
        """Name of the objects of a component."""
        return f"{self.name}-nephila-{name}"

    # ---- commands

    def run(self, *words: str, text: str | None = None, check: bool = True, limit_s: float = 300) -> str:
        """A command; its output. Ends the run with its errors if it fails."""
        limit_s *= self.options.patience
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=limit_s, check=False)
        if check and done.returncode:
            raise SystemExit(
                f"{' '.join(words[:6])} …: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
            )
        return done.stdout

    def kubectl(self, *words: str, **options: Any) -> str:
        """kubectl in the namespace."""
        return self.run("kubectl", "-n", self.namespace, *words, **options)

    def helm(self, *words: str, **options: Any) -> str:
        """helm in the namespace."""
        return self.run("helm", "-n", self.namespace, *words, **options)

    def get(self, what: str, path: str) -> str:
        """A field of an object, as jsonpath; empty if the object is missing. `what` may have options."""
        return self.kubectl("get", *what.split(), "-o", f"jsonpath={path}", check=False)

    def sql(self, query: str, check: bool = True) -> list[list[str]]:
        """Rows of a query, by psql in the pod of the database."""
        words = ["psql", "-h", "/var/run/postgresql", "-U", "nephila", "-At", "-F", "\t", "-c", query]
        text = self.kubectl("exec", f"{self.component('postgres')}-0", "--", *words, check=check)
        return [line.split("\t") for line in text.splitlines()]

    def nephila(self, *words: str, **options: Any) -> str:
        """The command line, in a pod of the API, with the settings of the release."""
        where = ["--bootstrap", "/etc/nephila/system.yaml"]
        return self.kubectl("exec", f"deployment/{self.component('api')}", "--", "nephila", *words, *where, **options)

    # ---- what was seen

    def step(self, name: str, since: float, note: str = "") -> None:
        """Print a step that began at `since` (monotonic)."""
        seconds = time.monotonic() - since
        self.steps.append((name, time.time() - seconds, time.time()))
        print(f"{seconds:7.1f} s  {name}{': ' + note if note else ''}", flush=True)

    def rule(self, name: str, found: float, wanted: float, note: str = "") -> None:
        """Print a figure that must be `wanted`."""
        if found != wanted:
            self.broken.append(name)
        verdict = "ok   " if found == wanted else "WRONG"
        print(f"{verdict} {name}: {found:,} (wanted {wanted:,}){'; ' + note if note else ''}", flush=True)

    def limit(self, seconds: float) -> str:
        """A time limit of kubectl and helm; `--patience` times as long."""
        return f"{seconds * self.options.patience:.0f}s"

    def until(self, what: Callable[[], bool], limit_s: float = 60) -> bool:
        """Whether something becomes true within `limit_s`, times `--patience`."""
        end = time.monotonic() + limit_s * self.options.patience
        while not (found := what()) and time.monotonic() < end:
            time.sleep(0.5)
        return found

    # ---- the release

    def install(self, *values: str, chart: Path = CHART, example: str = "examples/laptop.yaml") -> None:
        """Install or upgrade, and wait until all pods are ready. `example` is a file of the chart; empty: the values
        as shipped."""
        self.run("kubectl", "create", "namespace", self.namespace, check=False)
        files = ["-f", str(chart / example)] if example else []
        words = ["upgrade", "--install", self.name, str(chart), *files, *self.values]
        words += [word for value in values for word in ("--set", value)]
        self.helm(*words, "--wait", "--timeout", self.limit(600), limit_s=660)

    def uninstall(self) -> None:
        """Delete the resources first: one with a finalizer would keep the namespace. CRDs are kept by the chart."""
        began = time.monotonic()
        self.kubectl("delete", "crawljobs,parserules", "--all", f"--timeout={self.limit(60)}", check=False)
        self.helm("uninstall", self.name, "--wait", "--timeout", self.limit(180), check=False)
        self.step("helm uninstall", began)

    def delete_namespace(self) -> None:
        """With all that is in it."""
        self.run("kubectl", "delete", "namespace", self.namespace, f"--timeout={self.limit(180)}", check=False)

    def uid(self, name: str) -> str:
        """The identity of a pod."""
        return self.get(f"pod/{name}", "{.metadata.uid}")

    def scale(self, component: str, replicas: int) -> None:
        """kubectl scale, until all members are ready."""
        deployment = f"deployment/{self.component(component)}"
        self.kubectl("scale", deployment, f"--replicas={replicas}")
        self.kubectl("rollout", "status", deployment, f"--timeout={self.limit(180)}")

    def selector(self, component: str) -> str:
        """Labels of the pods of a component."""
        return f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={component}"

    def ready(self, component: str) -> set[str]:
        """Identities of the pods that are ready."""
        words = ["get", "pods", "-l", self.selector(component), "-o", "json"]
        pods = json.loads(self.kubectl(*words))["items"]
        ready = {"type": "Ready", "status": "True"}
        return {
            pod["metadata"]["uid"]
            for pod in pods
            if any(ready.items() <= condition.items() for condition in pod["status"].get("conditions", []))
        }

    def kill(self, component: str) -> None:
        """Delete the first pod of a component by force, until as many as before are ready without it."""
        began = time.monotonic()
        before = self.ready(component)
        pod = self.kubectl("get", "pods", "-l", self.selector(component), "-o", "name").split()[0]
        killed = self.get(pod, "{.metadata.uid}")
        self.kubectl("delete", pod, "--grace-period=0", "--force", "--wait=false")
        healed = self.until(lambda: len(self.ready(component) - {killed}) >= max(len(before), 1), 240)
        self.step(f"kubectl delete pod --grace-period=0: {component}", began, "" if healed else "NOT READY")
        self.rule(f"a new pod of {component} is ready", float(healed), 1)

    # ---- resources and rows

    def apply(self, kind: str, name: str, spec: dict[str, Any], labels: dict[str, str] | None = None) -> None:
        """As kubectl apply -f."""
        metadata = {"name": name, "labels": labels or {}}
        document = {"apiVersion": "nephila.dev/v1", "kind": kind, "metadata": metadata, "spec": spec}
        self.kubectl("apply", "-f", "-", text=json.dumps(document))

    def patch(self, resource: str, spec: dict[str, Any]) -> None:
        """As kubectl edit; `resource` is `PLURAL/NAME`."""
        self.kubectl("patch", resource, "--type=merge", "-p", json.dumps({"spec": spec}))

    def condition(self, resource: str, kind: str) -> str:
        """Status and reason of a condition, as `True Applied`."""
        path = f'{{.status.conditions[?(@.type=="{kind}")]'
        return self.get(resource, f"{path}.status}} {path}.reason}}")

    def rows(self) -> int:
        """Rows of all outcomes; 0 before the tables are there, and while the database is away."""
        if self.sql("select to_regclass('pages') is not null", check=False) != [["t"]]:
            return 0
        found = self.sql("select count(*) from pages", check=False)
        return int(found[0][0]) if found else 0

    def wait_rows(self, goal: int, limit_s: float) -> int:
        """The rows, when there are `goal` or the time is over."""
        self.until(lambda: self.rows() >= goal, limit_s)
        return self.rows()

    def pace(self, seconds: float) -> float:
        """Rows a minute, over some seconds."""
        before, began = self.rows(), time.monotonic()
        time.sleep(seconds)
        return 60 * (self.rows() - before) / (time.monotonic() - began)


def job(seeds: Sequence[str], *, max_pages: int | None = None, **more: Any) -> dict[str, Any]:
    """Spec of a crawl of the whole site, or of so many pages."""
    scope = {"mode": "any", "maxDepth": 100, **({} if max_pages is None else {"maxPages": max_pages})}
    polite = {"delay": f"{int(DELAY_S * 1000)}ms"}
    return {"seeds": list(seeds), "scope": scope, "politeness": polite, **more}
