"""KEDA's decision about downloaders, computed from samples of its trigger: replicas over time, and how often they flap.

    python -m tools.keda --samples FILE [--target HOSTS] [--plot FILE]

The trigger is a Prometheus query (templates/keda.yaml) with an average target per replica. The HorizontalPodAutoscaler
that KEDA creates decides every 15 s, as Kubernetes documents it: ceil(metric / target), unchanged within 10 % of the
target; for a decrease the highest recommendation of the stabilisation window counts; then at most what the policies
allow per period. The replica count has no effect on the samples: they are those of one recorded run.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

CHART = Path(__file__).parents[1] / "charts" / "nephila"
POLLING_INTERVAL_S = 15
TOLERANCE = 0.1
"""The autoscaler's default: no change where metric and target differ by less."""
FLAP_S = 600.0
"""A replica that is removed and added again within this time has flapped."""
TAIL_S = 900.0
"""After the last sample the metric is taken as it was, so that the decrease is seen."""
Sample = tuple[float, float]
"""Seconds, value of the trigger."""


@dataclass(frozen=True, slots=True)
class Policy:
    """At most `pods`, or `percent` of the replicas, per period; the larger of the two."""

    pods: int
    percent: int
    period_s: float


@dataclass(frozen=True, slots=True)
class Scaling:
    """The values of a ScaledObject."""

    target: float
    min_replicas: int
    max_replicas: int
    stabilization_s: float
    down: Policy
    up: Policy = Policy(4, 100, 15)
    """The default of Kubernetes."""


def of_chart() -> Scaling:
    """The values of the chart."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())["downloader"]["keda"]
    template = (CHART / "templates" / "keda.yaml").read_text()
    found = re.search(r"policies: \[\{type: Pods, value: (\d+), periodSeconds: (\d+)\}\]", template)
    assert found is not None, "templates/keda.yaml has another policy"
    return Scaling(
        float(values["hostsPerReplica"]),
        int(values["minReplicas"]),
        int(values["maxReplicas"]),
        float(values["stabilizationSeconds"]),
        Policy(int(found[1]), 0, float(found[2])),
    )


def query(namespace: str) -> str:
    """The query of the trigger, over all releases of a namespace: in a recording members have names of their own."""
    text = (CHART / "templates" / "keda.yaml").read_text()
    found = re.search(r"query: (sum\(nephila_scheduler_hosts_ready.*)", text)
    assert found is not None
    return found[1].replace(', pod=~"{{ $full }}-scheduler-.*"', "").replace("{{ $.Release.Namespace }}", namespace)


def decide(samples: Sequence[Sample], scaling: Scaling) -> list[tuple[float, int]]:
    """(seconds, replicas) at every decision."""
    replicas = scaling.min_replicas
    wanted: list[tuple[float, int]] = []
    changes: list[tuple[float, int]] = []
    found = []
    for at, value in samples:
        ratio = value / (scaling.target * replicas)
        wish = replicas if abs(1 - ratio) <= TOLERANCE else math.ceil(value / scaling.target)
        wanted.append((at, wish))
        recent = [one for when, one in wanted if when > at - scaling.stabilization_s or when == at]
        desired = wish if wish >= replicas else min(max(recent), replicas)
        desired = min(max(desired, _lowest(replicas, changes, at, scaling)), _highest(replicas, changes, at, scaling))
        desired = min(max(desired, scaling.min_replicas), scaling.max_replicas)
        if desired != replicas:
            changes.append((at, desired - replicas))
            replicas = desired
        found.append((at, replicas))
    return found


def _highest(replicas: int, changes: list[tuple[float, int]], at: float, scaling: Scaling) -> int:
    """The most replicas that the policy of an increase allows now."""
    policy = scaling.up
    start = replicas - sum(by for when, by in changes if by > 0 and when > at - policy.period_s)
    return start + max(policy.pods, math.ceil(start * policy.percent / 100))


def _lowest(replicas: int, changes: list[tuple[float, int]], at: float, scaling: Scaling) -> int:
    """The fewest replicas that the policy of a decrease allows now."""
    policy = scaling.down
    start = replicas - sum(by for when, by in changes if by < 0 and when > at - policy.period_s)
    return start - max(policy.pods, math.floor(start * policy.percent / 100))


def flaps(decisions: Sequence[tuple[float, int]]) -> int:
    """Increases within `FLAP_S` of a decrease."""
    count, before, fell_at = 0, decisions[0][1] if decisions else 0, -math.inf
    for at, replicas in decisions:
        if replicas < before:
            fell_at = at
        elif replicas > before and at - fell_at <= FLAP_S:
            count += 1
        before = replicas
    return count


def write(samples: Sequence[Sample], path: Path) -> None:
    """Keep samples for `main`."""
    path.write_text(json.dumps([[round(at, 1), value] for at, value in samples]) + "\n")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=Path, required=True, help="JSON: [[seconds, value of the trigger], ...]")
    parser.add_argument("--target", type=float, help="hosts per replica; without it that of the chart's values")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args(words)
    samples = [(float(at), float(value)) for at, value in json.loads(options.samples.read_text())]
    samples += [
        (samples[-1][0] + t, samples[-1][1]) for t in range(POLLING_INTERVAL_S, int(TAIL_S), POLLING_INTERVAL_S)
    ]
    chart = of_chart()
    chart = replace(chart, target=options.target or chart.target)
    variants = {
        "no stabilisation window, no policy": replace(chart, stabilization_s=0, down=Policy(0, 100, 15)),
        f"values of the chart: window {chart.stabilization_s:g} s, 1 pod per {chart.down.period_s:g} s": chart,
    }
    decisions = {name: decide(samples, scaling) for name, scaling in variants.items()}
    for name, found in decisions.items():
        print(f"{name}: at most {max(n for _, n in found)} replicas, {flaps(found)} flaps")
    if options.plot is not None:
        _plot(samples, decisions, chart.target, options.plot)


def _plot(samples: Sequence[Sample], decisions: dict[str, list[tuple[float, int]]], target: float, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(10, 6), sharex=True)
    top.plot(*zip(*samples, strict=True), linewidth=1.2)
    top.axvline(samples[-1][0] - TAIL_S + POLLING_INTERVAL_S, color="grey", linestyle=":")
    top.set_ylabel("hosts ready + fetches in flight")
    for name, found in decisions.items():
        label = f"{name}: {flaps(found)} flaps"
        bottom.step(*zip(*found, strict=True), where="post", linewidth=1.4, label=label)
    bottom.set_ylabel(f"downloaders ({target:g} hosts each)")
    bottom.set_xlabel("seconds; right of the dotted line the last value is held")
    bottom.legend(fontsize=8)
    for axis in (top, bottom):
        axis.grid(alpha=0.3)
        axis.set_ylim(bottom=0)
    figure.tight_layout()
    figure.savefig(path, dpi=75)
    plt.close(figure)


if __name__ == "__main__":
    main()
