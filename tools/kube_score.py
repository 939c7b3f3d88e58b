"""Runs kube-score over the rendered examples of the chart and prints each finding once with its objects.

    python -m tools.kube_score [KUBE_SCORE]

KUBE_SCORE is the program, `kube-score` by default (go install github.com/zegl/kube-score/cmd/kube-score@latest).
docs/kubernetes.md explains the findings that stay.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tools import helm

CHART = Path(__file__).parents[1] / "charts" / "nephila"
EXAMPLES = ("laptop", "production", "airgapped")
RESOURCES = (
    "monitoring.coreos.com/v1/PrometheusRule",
    "monitoring.coreos.com/v1/PodMonitor",
    "keda.sh/v1alpha1/ScaledObject",
)
ADVICE = 5
"""Grades up to this are findings: critical 1, warning 5; 10 is without a finding."""


def findings(program: str, example: str) -> dict[tuple[str, str], set[str]]:
    """(Check, finding) → objects. Raises `CalledProcessError` when helm fails."""
    apis = [word for one in RESOURCES for word in ("--api-versions", one)]
    values = ["-f", str(CHART / "examples" / f"{example}.yaml"), "--set", "crawler.contact=you@example.org"]
    words = ["template", "web", str(CHART), "-n", "crawl", "--kube-version", "1.34.0", *apis, *values]
    manifests = subprocess.run([str(helm.find()), *words], check=True, stdout=subprocess.PIPE, text=True).stdout
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(manifests)
        file.flush()
        command = [program, "score", "--output-format", "json", file.name]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in json.loads(done.stdout):
        for check in one["checks"]:
            if check.get("skipped") or check["grade"] > ADVICE:
                continue
            for comment in check["comments"] or [{"summary": ""}]:
                found[check["check"]["id"], comment["summary"]].add(one["object_name"].partition("/")[0])
    return found


def main() -> None:
    """Print the findings by example."""
    program = sys.argv[1] if len(sys.argv) > 1 else "kube-score"
    for example in EXAMPLES:
        print(example)
        for (check, summary), objects in sorted(findings(program, example).items()):
            print(f"  {check}: {summary}: {', '.join(sorted(objects))}")


if __name__ == "__main__":
    main()
