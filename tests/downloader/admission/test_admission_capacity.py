"""How many further requests a container takes: none at a threshold, fewer than none above it, more with more room."""

from __future__ import annotations

import random

import pytest
from nephila.downloader.admission.capacity import (
    CPU,
    LOOP,
    MEMORY,
    PRESSURE,
    Load,
    Thresholds,
    further_by_memory,
    further_by_time,
    headroom_of,
    weight_of,
)

MIB = 1 << 20
HALF = Thresholds(memory=0.5, cpu=0.5, loop_s=2.0)


def by_memory(used_mib: int, reserved_mib: int = 0, processes: int = 1) -> int:
    """Requests of 10 MiB in a container of 1,000 MiB of which half may be used."""
    load = Load(used_mib * MIB, 1000 * MIB, 0.0, 4.0)
    return further_by_memory(weight_of(1000 * MIB, 10 * MIB), headroom_of(load, HALF, reserved_mib * MIB), processes)


def by_time(cpu_cores: float = 0.0, loop_s: float = 0.0, pressure: float = 0.0, processes: int = 1) -> int:
    """Requests by CPU and loop, of at most 64, in a container of four cores and much memory."""
    load = Load(0, 1000 * MIB, cpu_cores, 4.0, loop_s, pressure)
    return further_by_time(weight_of(1000 * MIB, 1.0), 64, headroom_of(load, HALF), processes)


@pytest.mark.parametrize(
    ("used", "further"),
    [(0, 50), (250, 25), (499, 0), (500, 0), (501, -1), (600, -10)],
)
def test_memory_below_the_threshold_holds_this_many_requests(used: int, further: int) -> None:
    """What is free below 500 MiB, in requests of 10 MiB; a started one does not fit."""
    assert by_memory(used) == further


def test_memory_that_is_promised_counts_as_used() -> None:
    """Bodies in flight need it before it shows."""
    assert by_memory(125, reserved_mib=250) == by_memory(375) == 12


def test_processes_of_a_container_take_equal_shares() -> None:
    """Of what is free, and of what is too much; rounded down, so that together they never take more."""
    assert [by_memory(250, processes=processes) for processes in (1, 2, 3)] == [25, 12, 8]
    assert [by_memory(600, processes=processes) for processes in (1, 2, 3)] == [-10, -5, -4]
    assert [by_time(processes=processes) for processes in (1, 2, 3)] == [32, 16, 10]


@pytest.mark.parametrize(("cores", "further"), [(0.0, 32), (1.0, 16), (2.0, 0), (2.5, -8), (4.0, -32)])
def test_cpu_is_a_share_of_the_cores(cores: float, further: int) -> None:
    """Two of four cores may be used; the memory of the container does not multiply the answer."""
    assert by_time(cores) == further


def test_a_late_loop_takes_nothing() -> None:
    """At nine tenths of its limit of two seconds; with less it does not bind where CPU binds."""
    assert by_time(loop_s=1.8) == 0
    assert by_time(loop_s=2.6) < 0
    assert by_time(loop_s=0.5) == 32


@pytest.mark.parametrize(("pressure", "further"), [(0.0, 32), (0.1, 32), (0.11, 0), (1.0, 0)])
def test_tasks_that_wait_for_memory_stop_the_rise(pressure: float, further: int) -> None:
    """Above a tenth of the time; nothing is taken away."""
    assert by_time(pressure=pressure) == further


@pytest.mark.parametrize(
    ("load", "resource"),
    [
        (Load(900 * MIB, 1000 * MIB, 1.0, 4.0), MEMORY),
        (Load(100 * MIB, 1000 * MIB, 3.0, 4.0), CPU),
        (Load(100 * MIB, 1000 * MIB, 1.0, 4.0, loop_delay_s=1.7), LOOP),
        (Load(100 * MIB, 1000 * MIB, 1.0, 4.0, memory_pressure=0.5), PRESSURE),
    ],
)
def test_the_resource_with_the_least_room_is_named(load: Load, resource: str) -> None:
    """As `bound_by` of the admission reports it."""
    assert headroom_of(load, HALF).resource == resource


def test_limits_of_zero_are_no_error() -> None:
    """A container whose files make no sense takes nothing; a request without bytes counts as one byte."""
    nothing = headroom_of(Load(1, 0, 0.1, 0.0, 0.1), Thresholds(loop_s=0.0))
    assert max(nothing.memory, nothing.cpu, nothing.loop) < 0
    assert weight_of(0, 40.0 * MIB) == 1
    assert weight_of(100, 0.0) == 100


@pytest.mark.parametrize("seed", range(5))
def test_more_load_never_admits_more(seed: int) -> None:
    """Of any resource, at any load."""
    rng = random.Random(seed)
    for _ in range(200):
        less, more = sorted(rng.random() * 1.5 for _ in range(2))
        assert by_memory(int(more * 1000)) <= by_memory(int(less * 1000))
        assert by_time(cpu_cores=more * 4) <= by_time(cpu_cores=less * 4)
        assert by_time(loop_s=more * 2) <= by_time(loop_s=less * 2)
        assert by_time(pressure=more) <= by_time(pressure=less)
