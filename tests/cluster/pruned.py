"""A rule that GitOps deletes while a job uses it, and that comes back."""

from __future__ import annotations

import json
import time

from tests.cluster.release import Release, job
from tests.cluster.web import Web

FILES = "show-rules"
RULE = {
    "apiVersion": "nephila.dev/v1",
    "kind": "ParseRule",
    "metadata": {"name": "filed"},
    "spec": {"match": {"url": "."}, "fields": {"title": "title"}},
}


def pruned(release: Release, web: Web) -> None:
    """The job goes on; its condition Degraded, an event and a metric have the cause, until the rule is back."""
    release.run("kubectl", "create", "namespace", release.namespace, check=False)
    release.kubectl("delete", "configmap", FILES, "--ignore-not-found")
    release.kubectl("create", "configmap", FILES, *_literals("filed", "another"))
    release.install(f"rules.configMap={FILES}", "rules.prune=true")
    release.until(lambda: release.condition("parserule/filed", "Ready").startswith("True"))
    web.open()
    release.apply("CrawlJob", "show", job([web.start], rules=["filed"]))
    release.until(lambda: release.rows() > len(web.hosts), 120)
    steps = (("deleted", ("another",), "True"), ("back", ("filed", "another"), "False"))
    for what, rules, status in steps:
        _replace(release, *rules)
        began = time.monotonic()
        reached = release.until(
            lambda status=status: release.condition("crawljob/show", "Degraded").startswith(status), 180
        )
        message = release.get("crawljob/show", '{.status.conditions[?(@.type=="Degraded")].message}')
        release.step(f"a rule of a file is {what}, to the condition of the job", began, message)
        release.rule(f"Degraded is {status}", float(reached), 1)
    events = release.get("events --field-selector=involvedObject.name=show", "{.items[*].reason}").split()
    release.rule("an event of the job names the missing rule", float("RuleMissing" in events), 1, " ".join(events))
    release.rule("all pages are stored", release.wait_rows(web.goal, release.options.limit), web.goal)


def _literals(*names: str) -> list[str]:
    """Words of kubectl: each rule as a file of a ConfigMap."""
    rules = ({**RULE, "metadata": {"name": name}} for name in names)
    return [f"--from-literal={rule['metadata']['name']}.yaml={json.dumps(rule)}" for rule in rules]


def _replace(release: Release, *names: str) -> None:
    """Replace the ConfigMap, as GitOps does."""
    words = ["create", "configmap", FILES, *_literals(*names), "--dry-run=client", "-o", "json"]
    release.kubectl("replace", "-f", "-", text=release.kubectl(*words))
