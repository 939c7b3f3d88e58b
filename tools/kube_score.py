"""Runs kube-score over the rendered examples of the chart; a finding that is not one of `STAY` is a fault.

    python -m tools.kube_score                          findings by example; exit 1 with a new one
    python -m tools.kube_score install [--optional]     the program, from its Go module, into the user's cache

docs/kubernetes.md explains the findings that stay.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools import helm
from tools.go_program import GoProgram
from tools.install import run

CHART = Path(__file__).parents[1] / "charts" / "nephila"
EXAMPLES = tuple(sorted(path.stem for path in (CHART / "examples").glob("*.yaml")))
KUBE_SCORE: Final = GoProgram("kube-score", "github.com/zegl/kube-score/cmd/kube-score", "v1.20.0", "kube_score")
RESOURCES = (
    "monitoring.coreos.com/v1/PrometheusRule",
    "monitoring.coreos.com/v1/PodMonitor",
    "monitoring.coreos.com/v1/ServiceMonitor",
    "keda.sh/v1alpha1/ScaledObject",
)
ALL = frozenset({"CronJob", "Deployment", "Job", "Pod", "StatefulSet"})
ADVICE = 5
"""Grades up to this are findings: critical 1, warning 5; 10 is without a finding."""


STAY: Final = {
    ("container-resources", "CPU limit is not set"): ALL,
    ("container-ephemeral-storage-request-and-limit", "Ephemeral Storage limit is not set"): ALL,
    ("container-ephemeral-storage-request-and-limit", "Ephemeral Storage request is not set"): ALL,
    ("container-image-pull-policy", "ImagePullPolicy is not set to Always"): ALL,
    ("deployment-replicas", "Deployment few replicas"): {"Deployment"},
    ("deployment-has-host-podantiaffinity", "Deployment does not have a host podAntiAffinity set"): {"Deployment"},
    ("statefulset-has-host-podantiaffinity", "StatefulSet does not have a host podAntiAffinity set"): {"StatefulSet"},
    # The broker and the database of the dev modes.
    (
        "container-security-context-readonlyrootfilesystem",
        "The pod has a container with a writable root filesystem",
    ): {"StatefulSet"},
    ("container-security-context-user-group-id", "The container is running with a low user ID"): {"StatefulSet"},
    ("container-security-context-user-group-id", "The container running with a low group ID"): {"StatefulSet"},
    ("pod-probes-identical", "Container has the same readiness and liveness probe"): {"StatefulSet"},
    ("statefulset-has-servicename", "StatefulSet does not have a valid serviceName"): {"StatefulSet"},
}
"""(Check, finding) → kinds of objects that may have it."""


def findings(example: str) -> dict[tuple[str, str], set[str]]:
    """(Check, finding) → objects. Raises `Missing` without kube-score or helm."""
    apis = [word for one in RESOURCES for word in ("--api-versions", one)]
    values = ["-f", str(CHART / "examples" / f"{example}.yaml"), "--set", "crawler.contact=you@example.org"]
    words = ["template", "web", str(CHART), "-n", "crawl", "--kube-version", "1.34.0", *apis, *values]
    manifests = subprocess.run([str(helm.find()), *words], check=True, stdout=subprocess.PIPE, text=True).stdout
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(manifests)
        file.flush()
        command = [str(KUBE_SCORE.find()), "score", "--output-format", "json", file.name]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in json.loads(done.stdout):
        for check in one["checks"]:
            if check.get("skipped") or check["grade"] > ADVICE:
                continue
            for comment in check["comments"] or [{"summary": ""}]:
                found[check["check"]["id"], comment["summary"]].add(one["object_name"].partition("/")[0])
    return found


def unexpected(found: Mapping[tuple[str, str], set[str]]) -> list[str]:
    """A line for each finding that does not stay."""
    return [
        f"{check}: {summary}: {', '.join(sorted(kinds))}"
        for (check, summary), objects in sorted(found.items())
        if (kinds := objects - STAY.get((check, summary), set()))
    ]


def main() -> int:
    """Print the findings by example."""
    new = []
    for example in EXAMPLES:
        print(example)
        found = findings(example)
        for (check, summary), objects in sorted(found.items()):
            print(f"  {check}: {summary}: {', '.join(sorted(objects))}")
        new += [f"{example}: {line}" for line in unexpected(found)]
    print("\n".join(["new:", *new]) if new else "none is new")
    return bool(new)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(run(__doc__, KUBE_SCORE.install, "kube-score", "install Go and run this again"))
    sys.exit(main())
