"""Domains with a wildcard: noticed by a random name, then their names cost no look-up; others are looked up each."""

from __future__ import annotations

import random

import pytest
from nephila.downloader.dns import wildcard_zones
from nephila.downloader.dns.contract import Addresses, ResolveError
from nephila.downloader.dns.guarded_resolver import MIN_TTL_S, GuardedResolver
from nephila.downloader.dns.hash_tree import HashTree
from nephila.downloader.dns.wildcard_zones import FORGET_S, WildcardZones, parent_of
from nephila.kernel.net.egress import EgressError, EgressGuard
from nephila.kernel.runtime.clock import ManualClock

NAMES = 5
FARM = ["8.8.8.8", "8.8.4.4"]


class Zone:
    """A name server: a wildcard of one parent, and names with records of their own."""

    def __init__(self, parent: str, addresses: list[str] | None, **own: list[str]) -> None:
        self.parent, self.addresses = parent, addresses
        self.own = {name.replace("_", "."): answer for name, answer in own.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str) -> Addresses:
        self.asked.append(host)
        answer = self.own.get(host) or (self.addresses if host.endswith(f".{self.parent}") else None)
        if answer is None:
            raise ResolveError("no such name", permanent=True)
        return Addresses(answer, 60.0)

    async def close(self) -> None:
        """Nothing is open."""


def guarded(zone: Zone, clock: ManualClock, names: int = NAMES) -> GuardedResolver:
    wildcards = WildcardZones(names, random.Random(1))
    return GuardedResolver(EgressGuard(False), zone, HashTree(1000), clock, ttl_s=300.0, wildcards=wildcards)


async def test_names_of_a_wildcard_cost_no_look_up_after_a_random_name_has_the_same_answer() -> None:
    zone, clock = Zone("farm.test", FARM), ManualClock()
    resolver = guarded(zone, clock)
    for number in range(100):
        addresses, _ = await resolver.resolve(f"x{number}.farm.test", 80)
        assert set(addresses) == set(FARM)
    assert len(zone.asked) == NAMES + 1
    assert zone.asked[-1] not in {f"x{number}.farm.test" for number in range(100)}
    assert (resolver.stats.lookups, resolver.stats.wildcards) == (NAMES + 1, 100 - NAMES)


async def test_a_wildcard_is_looked_up_again_after_its_time_to_live() -> None:
    zone, clock = Zone("farm.test", FARM), ManualClock()
    resolver = guarded(zone, clock)
    for number in range(NAMES + 1):
        await resolver.resolve(f"x{number}.farm.test", 80)
    clock.advance(61.0)
    zone.addresses = ["9.9.9.9"]
    for number in range(100, 110):
        addresses, _ = await resolver.resolve(f"x{number}.farm.test", 80)
        assert addresses == ("9.9.9.9",)
    assert len(zone.asked) == NAMES + 1 + 10


async def test_an_answer_of_a_wildcard_is_kept_no_longer_than_the_wildcard() -> None:
    zone, clock = Zone("farm.test", FARM), ManualClock()
    resolver = guarded(zone, clock)
    for number in range(NAMES):
        await resolver.resolve(f"x{number}.farm.test", 80)
    clock.advance(20.0)
    await resolver.resolve("late.farm.test", 80)
    clock.advance(max(40.0, MIN_TTL_S) + 1.0)
    assert resolver.cached("late.farm.test", 80) is None


async def test_names_of_which_a_random_one_has_no_address_are_looked_up_each() -> None:
    own = {f"x{number}_site_test": FARM for number in range(50)}
    zone, clock = Zone("site.test", None, **own), ManualClock()
    resolver = guarded(zone, clock)
    for number in range(50):
        await resolver.resolve(f"x{number}.site.test", 80)
    assert len(zone.asked) == 50 + 1


async def test_one_name_with_another_answer_ends_it() -> None:
    zone, clock = Zone("mixed.test", FARM, own_mixed_test=["9.9.9.9"]), ManualClock()
    resolver = guarded(zone, clock)
    for number in range(NAMES - 1):
        await resolver.resolve(f"x{number}.mixed.test", 80)
    await resolver.resolve("own.mixed.test", 80)
    for number in range(50):
        await resolver.resolve(f"y{number}.mixed.test", 80)
    assert len(zone.asked) == NAMES + 50


async def test_the_domain_its_www_and_names_of_another_parent_are_always_looked_up() -> None:
    zone = Zone("farm.test", FARM, farm_test=["9.9.9.9"], www_farm_test=["9.9.9.10"], a_b_farm_test=["9.9.9.11"])
    resolver = guarded(zone, ManualClock())
    for number in range(20):
        await resolver.resolve(f"x{number}.farm.test", 80)
    answers = [(await resolver.resolve(host, 80))[0] for host in ("farm.test", "www.farm.test", "a.b.farm.test")]
    assert answers == [("9.9.9.9",), ("9.9.9.10",), ("9.9.9.11",)]


async def test_addresses_of_a_wildcard_pass_the_guard_for_each_name() -> None:
    zone = Zone("inner.test", ["10.0.0.1"])
    resolver = guarded(zone, ManualClock())
    for number in range(20):
        with pytest.raises(EgressError):
            await resolver.resolve(f"x{number}.inner.test", 80)
    assert len(zone.asked) == NAMES + 1


async def test_no_wildcard_is_noticed_where_the_setting_is_0() -> None:
    zone = Zone("farm.test", FARM)
    resolver = guarded(zone, ManualClock(), 0)
    for number in range(50):
        await resolver.resolve(f"x{number}.farm.test", 80)
    assert len(zone.asked) == 50


@pytest.mark.parametrize(
    ("host", "parent"),
    [
        ("x.farm.test", "farm.test"),
        ("x.y.farm.co.uk", "y.farm.co.uk"),
        ("farm.co.uk", ""),
        ("www.farm.co.uk", ""),
        ("one.blogspot.com", ""),
        ("10.0.0.1", ""),
        ("::1", ""),
        ("localhost", ""),
    ],
)
def test_only_names_below_a_registrable_domain_have_a_parent(host: str, parent: str) -> None:
    assert parent_of(host) == parent


def test_memory_is_bounded_and_a_parent_without_a_wildcard_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wildcard_zones, "MOST_ZONES", 10)
    zones = WildcardZones(2)
    for number in range(100):
        zones.note(f"x.d{number}.test", FARM, 0.0)
    assert len(zones) == 10
    zones.note("y.d99.test", ["9.9.9.9"], 1.0)
    assert [zones.note(f"z{number}.d99.test", FARM, 2.0) for number in range(4)] == [""] * 4
    later = 2.0 + FORGET_S
    assert zones.note("z5.d99.test", FARM, later) == ""
    assert zones.note("z6.d99.test", FARM, later).endswith(".d99.test")
