"""How many further requests a process may take: N = floor(W * min((M_L - m)/M, (C_L - c)/C, (D_L - d)/D)). Pure.

m, c and d are memory in use, CPU in use and delay of the event loop; M, C and D their limits; M_L, C_L and D_L the
thresholds, 90 % of the limits. W is the number of requests that the whole container could hold: its memory divided by
the memory of one request. For c and d it is at most the configured concurrency. Memory of requests in flight counts as
used before its bytes have arrived.
"""

from __future__ import annotations

import math

import msgspec

MEMORY, CPU, LOOP, PRESSURE = "memory", "cpu", "loop", "pressure"
PRESSURE_LIMIT = 0.1
"""Share of the time in which tasks wait for memory, above which nothing further is taken."""


class Thresholds(msgspec.Struct, frozen=True):
    """Shares of each resource that may be used; `loop_s` is the limit of the event loop's delay."""

    memory: float = 0.9
    cpu: float = 0.9
    loop_s: float = 1.0


class Load(msgspec.Struct, frozen=True):
    memory_bytes: int
    memory_limit_bytes: int
    cpu_cores: float
    cores: float
    loop_delay_s: float = 0.0
    memory_pressure: float = 0.0


class Headroom(msgspec.Struct, frozen=True):
    """The share of each resource that is left below its threshold; negative above it."""

    memory: float
    cpu: float
    loop: float
    pressure: float = 1.0

    @property
    def least_time(self) -> float:
        """The share that binds, memory left out."""
        return min(self.cpu, self.loop, self.pressure)

    @property
    def resource(self) -> str:
        """The resource that binds."""
        shares = self.by_resource
        return min(shares, key=shares.__getitem__)

    @property
    def by_resource(self) -> dict[str, float]:
        """Resource → share."""
        return {MEMORY: self.memory, CPU: self.cpu, LOOP: self.loop, PRESSURE: self.pressure}


def headroom_of(load: Load, thresholds: Thresholds, reserved_bytes: float = 0.0) -> Headroom:
    """The capacity that is left. `reserved_bytes`: memory that requests in flight are going to need."""
    used = load.memory_bytes + reserved_bytes
    return Headroom(
        memory=thresholds.memory - used / max(load.memory_limit_bytes, 1),
        cpu=thresholds.cpu - load.cpu_cores / max(load.cores, 1e-3),
        loop=0.9 - load.loop_delay_s / max(thresholds.loop_s, 1e-3),
        pressure=0.0 if load.memory_pressure > PRESSURE_LIMIT else 1.0,
    )


def weight_of(memory_limit_bytes: int, request_bytes: float) -> int:
    """W: requests that the whole container could hold, at least 1."""
    return max(1, int(memory_limit_bytes / max(request_bytes, 1.0)))


def further_by_memory(weight: int, headroom: Headroom, processes: int = 1) -> int:
    """N by memory: requests to take beyond those in flight; negative: so many too many. `processes` share it."""
    return math.floor(weight * headroom.memory / processes)


def further_by_time(weight: int, most: int, headroom: Headroom, processes: int = 1) -> int:
    """N by CPU, event loop and pressure; W is at most `most` here, so that a small excess takes little away."""
    return math.floor(min(weight, most) * headroom.least_time / processes)
