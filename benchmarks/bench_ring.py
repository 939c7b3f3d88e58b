"""Partitions moved and load when a member joins or leaves: the ring, the ring without memory, modulo, aiokafka's
sticky.

For each N from 2 to 200 and P the smallest power of two >= 16 N: one join and one leave of a random member, from what
the same rule gave for N members. Ideal = P / (N + 1) moved by a join, what the leaver had by a leave. Sticky gets what
each member had, as it would in a group; it is slow, so its N go in steps.

    python -m benchmarks.bench_ring [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.structs import TopicPartition
from nephila.kernel.ring import assign_partitions

from benchmarks.report import save, versions

Owners = list[str]
Rule = Callable[[Sequence[str], int, Owners], Owners]


def ring(names: Sequence[str], partitions: int, before: Owners) -> Owners:
    """As the group assignor uses it."""
    return assign_partitions(names, partitions, dict(enumerate(before)))


def bare_ring(names: Sequence[str], partitions: int, before: Owners) -> Owners:
    """The same without memory."""
    return assign_partitions(names, partitions)


def modulo(names: Sequence[str], partitions: int, before: Owners) -> Owners:
    """Partition number modulo the number of members."""
    return [sorted(names)[p % len(names)] for p in range(partitions)]


class _Cluster:
    def __init__(self, partitions: int) -> None:
        self.partitions = partitions

    def topics(self) -> set[str]:
        """The only one."""
        return {"t"}

    def partitions_for_topic(self, topic: str) -> set[int]:
        """All of them."""
        return set(range(self.partitions))


def sticky(names: Sequence[str], partitions: int, before: Owners) -> Owners:
    """aiokafka's sticky assignor, with what each member had."""
    members = {}
    for name in names:
        had = [TopicPartition("t", p) for p, owner in enumerate(before) if owner == name]
        data = StickyPartitionAssignor._metadata(["t"], had, 1) if had else None
        members[name] = data or ConsumerProtocolMemberMetadata(0, ["t"], b"")
    result = StickyPartitionAssignor.assign(_Cluster(partitions), members)
    owners = [""] * partitions
    for name, assignment in result.items():
        for _, numbers in assignment.assignment:
            for p in numbers:
                owners[p] = name
    return owners


RULES: dict[str, tuple[Rule, int]] = {"ring": (ring, 1), "ring without memory": (bare_ring, 1), "modulo": (modulo, 1)}
"""Rule, and the step of N."""
RULES["aiokafka sticky"] = (sticky, 18)


def one(rule: Rule, count: int, rng: random.Random) -> list[tuple[float, float, float]]:
    """(moved / ideal, share that passed between members that stay, load max / mean) of one join and one leave."""
    partitions = 16
    while partitions < 16 * count:
        partitions *= 2
    names = [f"downloader-{rng.randrange(10**6)}-{i}" for i in range(count)]
    before = rule(names, partitions, [])
    leaver = rng.choice(names)
    rows = []
    for after_names in ([*names, "new"], [name for name in names if name != leaver]):
        after = rule(after_names, partitions, before)
        pairs = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        old = sum(a != leaver and b != "new" if len(after_names) < count else b != "new" for a, b in pairs)
        ideal = partitions / (count + 1) if len(after_names) > count else max(before.count(leaver), 1)
        load = max(Counter(after).values()) * len(after_names) / partitions
        rows.append((len(pairs) / ideal, old / partitions, load))
    return rows


def measure(name: str, rule: Rule, step: int) -> dict[str, float | str]:
    """One rule over all N."""
    rng, began = random.Random(7), time.process_time()
    rows = [row for count in range(2, 201, step) for row in one(rule, count, rng)]
    return {
        "rule": name,
        "moved_mean": round(mean(row[0] for row in rows), 3),
        "moved_worst": round(max(row[0] for row in rows), 3),
        "between_old_mean": round(mean(row[1] for row in rows), 5),
        "between_old_worst": round(max(row[1] for row in rows), 5),
        "load_mean": round(mean(row[2] for row in rows), 3),
        "load_worst": round(max(row[2] for row in rows), 3),
        "cpu_ms_per_placement": round(1000 * (time.process_time() - began) / (len(rows) * 1.5), 2),
    }


def main() -> None:
    """Measure every rule, print a table, write the raw result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    out = parser.parse_args().out
    results = [measure(name, rule, step) for name, (rule, step) in RULES.items()]
    print("N = 2..200, P >= 16 N; moved / ideal, share of P between members that stay, max / mean load")
    for row in results:
        print(json.dumps(row))
    print(save("ring", {"results": results, "versions": versions("aiokafka")}, out))


if __name__ == "__main__":
    main()
