"""What happens to the system and when: a seeded order of faults. Pure; the times are seconds after the start.

Invariant: the same seed and counts give the same plan; the scalings stand in their own order, everything else is
shuffled; two faults are at least half of `every_s` apart.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

KILL, FREEZE, BROKER, SCALE = "kill -9", "freeze", "broker kill -9", "scale"
SERVICES = ("scheduler", "downloader", "parser", "storage")
TOPOLOGIES = {"services": SERVICES, "fetchparse": ("scheduler", "fetchparse", "storage")}
"""The programs of a system, by the name that the chart has for it; the second one fetches, and is scaled."""


@dataclass(frozen=True)
class Counts:
    """How much is to happen."""

    kills: int = 3
    """kill -9 of each kind of service."""
    freezes: int = 2
    """SIGSTOP of each kind of service."""
    broker_kills: int = 2
    scales: tuple[int, ...] = (2, 5, 3)
    """Numbers of members that fetch, one after the other."""


@dataclass(frozen=True)
class Fault:
    """One thing that happens."""

    at_s: float
    what: str
    service: str = ""
    draw: float = 0.0
    """Which member of the service, as a share of those that are there then."""
    size: int = 0
    """Members after a scaling."""

    def __str__(self) -> str:
        return f"{self.what} {self.service}{f' to {self.size}' if self.size else ''}".strip()


def plan(
    seed: int,
    counts: Counts,
    *,
    first_s: float,
    every_s: float,
    services: tuple[str, ...] = SERVICES,
    struck: tuple[str, ...] | None = None,
) -> list[Fault]:
    """The faults in the order of their times. `struck`: the services that are killed and frozen; None: all."""
    rng = random.Random(seed)
    struck = services if struck is None else struck
    bag = [(what, service) for service in struck for what in [KILL] * counts.kills + [FREEZE] * counts.freezes]
    bag += [(BROKER, "")] * counts.broker_kills + [(SCALE, services[1])] * len(counts.scales)
    rng.shuffle(bag)
    sizes = iter(counts.scales)
    at_s, faults = first_s, []
    for what, service in bag:
        faults.append(Fault(at_s, what, service, rng.random(), next(sizes) if what == SCALE else 0))
        at_s += every_s * rng.uniform(0.5, 1.5)
    return faults
