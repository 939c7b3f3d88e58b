"""Names to checked addresses: looked up once, cached for a time, checked before use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from nephila.downloader.dns.contract import Addresses, ResolveError, interleave
from nephila.downloader.dns.guarded_resolver import MAX_NEGATIVE_TTL_S, GuardedResolver
from nephila.downloader.dns.hash_tree import HashTree
from nephila.downloader.dns.system_resolver import SystemResolver
from nephila.kernel.net.egress import EgressError, EgressGuard, HostMap
from nephila.kernel.runtime.clock import ManualClock


class Names:
    """A resolver from a table; records the names looked up."""

    def __init__(self, **table: Sequence[str] | Exception) -> None:
        self.table = {name.replace("_", "."): found for name, found in table.items()}
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None
        self.ttl_s: float | None = None

    async def resolve(self, host: str) -> Addresses:
        """See `Resolver.resolve`."""
        self.asked.append(host)
        if self.gate is not None:
            await self.gate.wait()
        found = self.table.get(host, ResolveError("no such name"))
        if isinstance(found, Exception):
            raise found
        return Addresses(found, self.ttl_s)

    async def close(self) -> None:
        """See `Resolver.close`."""


def resolver(
    names: Names, clock: ManualClock, *entries: str, private: bool = False, size: int = 100
) -> GuardedResolver:
    """A guarded resolver with short times."""
    return GuardedResolver(
        EgressGuard(private), names, HashTree(size), clock, HostMap(entries), ttl_s=60, negative_ttl_s=10
    )


async def test_asked_once() -> None:
    """An answer is used until its time is over."""
    names, clock = Names(a_test=["8.8.8.8", "10.0.0.1"]), ManualClock()
    found = resolver(names, clock)
    assert found.cached("a.test", 80) is None
    assert await found.resolve("a.test", 80) == (("8.8.8.8",), 80)
    assert found.cached("a.test", 443) == (("8.8.8.8",), 443)
    clock.advance(61)
    assert found.cached("a.test", 80) is None
    await found.resolve("a.test", 80)
    assert names.asked == ["a.test", "a.test"]


async def test_one_question_at_a_time() -> None:
    """Concurrent look-ups of one name share one query."""
    names, clock = Names(a_test=["8.8.8.8"]), ManualClock()
    names.gate = asyncio.Event()
    found = resolver(names, clock)
    waiting = [asyncio.ensure_future(found.resolve("a.test", 80)) for _ in range(20)]
    await asyncio.sleep(0)
    names.gate.set()
    assert set(await asyncio.gather(*waiting)) == {(("8.8.8.8",), 80)}
    assert names.asked == ["a.test"]


async def test_a_cancelled_question() -> None:
    """When the caller that looks up is cancelled, another caller looks up."""
    names, clock = Names(a_test=["8.8.8.8"]), ManualClock()
    names.gate = asyncio.Event()
    found = resolver(names, clock)
    first = asyncio.ensure_future(found.resolve("a.test", 80))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(found.resolve("a.test", 80))
    await asyncio.sleep(0)
    first.cancel()
    names.gate.set()
    assert await second == (("8.8.8.8",), 80)


async def test_failures_are_remembered() -> None:
    """A name that fails is not looked up again at once."""
    names, clock = Names(), ManualClock()
    found = resolver(names, clock)
    for _ in range(3):
        with pytest.raises(ResolveError, match="no such name"):
            await found.resolve("gone.test", 80)
    assert names.asked == ["gone.test"]
    clock.advance(11)
    with pytest.raises(ResolveError):
        await found.resolve("gone.test", 80)
    assert names.asked == ["gone.test"] * 2


async def test_rebinding() -> None:
    """A name whose addresses change is checked at each look-up."""
    names, clock = Names(a_test=["8.8.8.8"]), ManualClock()
    found = resolver(names, clock)
    await found.resolve("a.test", 80)
    names.table["a.test"] = ["127.0.0.1"]
    clock.advance(61)
    with pytest.raises(EgressError, match="loopback"):
        await found.resolve("a.test", 80)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:7f00:1", "169.254.169.254"])
async def test_literals_are_not_asked_for(host: str) -> None:
    """A literal is judged as it stands."""
    names = Names()
    with pytest.raises(EgressError):
        await resolver(names, ManualClock()).resolve(host, 80)
    assert names.asked == []


async def test_bad_port_before_any_question() -> None:
    """A blocked port is refused before a name is looked up, and again when it comes from the cache."""
    names = Names(a_test=["8.8.8.8"])
    found = resolver(names, ManualClock())
    with pytest.raises(EgressError, match="port 25"):
        await found.resolve("a.test", 25)
    assert names.asked == []
    await found.resolve("a.test", 80)
    with pytest.raises(EgressError, match="port 25"):
        found.cached("a.test", 25)


async def test_mapped_hosts_are_guarded() -> None:
    """A host map answers instead of DNS, and the guard still stands."""
    names = Names()
    with pytest.raises(EgressError, match="loopback"):
        await resolver(names, ManualClock(), "*.x.test=127.0.0.1").resolve("a.x.test", 80)
    found = resolver(names, ManualClock(), "*.x.test=127.0.0.1:8088", private=True)
    assert await found.resolve("a.x.test", 80) == (("127.0.0.1",), 8088)
    assert names.asked == []


async def test_memory_is_bounded() -> None:
    """Beyond the size of the cache another name is evicted."""
    names, clock = Names(a_test=["8.8.8.8"], b_test=["8.8.4.4"], c_test=["1.1.1.1"]), ManualClock()
    found = resolver(names, clock, size=2)
    for host in ("a.test", "b.test", "c.test"):
        await found.resolve(host, 80)
    assert found.names == 2
    assert found.cached("c.test", 80) is not None


@pytest.mark.parametrize(
    ("ttl_s", "used_s"), [(None, 60.0), (0.0, 30.0), (45.0, 45.0), (9_999.0, 60.0)], ids=["none", "0", "45", "large"]
)
async def test_an_answer_is_used_for_its_ttl_within_bounds(ttl_s: float | None, used_s: float) -> None:
    """At least 30 s, at most the setting."""
    names, clock = Names(a_test=["8.8.8.8"]), ManualClock()
    names.ttl_s = ttl_s
    found = resolver(names, clock)
    await found.resolve("a.test", 80)
    clock.advance(used_s - 0.1)
    assert found.cached("a.test", 80) is not None
    clock.advance(0.1)
    assert found.cached("a.test", 80) is None
    await found.close()


async def test_a_name_in_use_is_looked_up_before_its_answer_expires() -> None:
    """Once, in the background, while the old answer is used; an unused name is not."""
    names, clock = Names(a_test=["8.8.8.8"], b_test=["8.8.8.8"]), ManualClock()
    found = resolver(names, clock)
    await found.resolve("a.test", 80)
    await found.resolve("b.test", 80)
    clock.advance(50)
    names.table["a.test"] = ["1.1.1.1"]
    for _ in range(3):
        assert found.cached("a.test", 80) == (("8.8.8.8",), 80)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert names.asked == ["a.test", "b.test", "a.test"]
    clock.advance(30)
    assert found.cached("a.test", 80) == (("1.1.1.1",), 80)
    assert found.cached("b.test", 80) is None
    assert (found.stats.refreshes, found.stats.lookups) == (1, 3)
    await found.close()


async def test_a_refresh_is_checked_by_the_guard() -> None:
    """A name that changes to an inner address is refused from then on."""
    names, clock = Names(a_test=["8.8.8.8"]), ManualClock()
    found = resolver(names, clock)
    await found.resolve("a.test", 80)
    names.table["a.test"] = ["10.0.0.1"]
    clock.advance(50)
    assert found.cached("a.test", 80) == (("8.8.8.8",), 80)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(EgressError, match="private"):
        found.cached("a.test", 80)
    await found.close()


async def test_a_refresh_in_flight_ends_with_the_resolver() -> None:
    """It is cancelled: no task is left, and nothing more is stored."""
    names, clock = Names(a_test=["8.8.8.8"]), ManualClock()
    found = resolver(names, clock)
    await found.resolve("a.test", 80)
    clock.advance(50)
    names.gate = asyncio.Event()
    found.cached("a.test", 80)
    await asyncio.sleep(0)
    assert names.asked == ["a.test", "a.test"]
    await found.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_stale_answer_is_served_while_the_servers_fail() -> None:
    """For a limited time, with a new look-up every 30 s; the answer of a server ends it, a refusal as well."""
    names, clock = Names(a_test=["8.8.8.8"]), ManualClock()
    found = GuardedResolver(EgressGuard(), names, HashTree(9), clock, ttl_s=60, negative_ttl_s=10, stale_s=100)
    await found.resolve("a.test", 80)
    names.table["a.test"] = ResolveError("SERVFAIL")
    clock.advance(70)
    assert await found.resolve("a.test", 80) == (("8.8.8.8",), 80)
    assert await found.resolve("a.test", 80) == (("8.8.8.8",), 80)
    assert (len(names.asked), found.stats.stale_served) == (2, 1)
    clock.advance(31)
    assert await found.resolve("a.test", 80) == (("8.8.8.8",), 80)
    assert (len(names.asked), found.stats.stale_served) == (3, 2)
    clock.advance(61)
    with pytest.raises(ResolveError, match="SERVFAIL"):
        await found.resolve("a.test", 80)
    names.table["a.test"] = ["1.1.1.1"]
    clock.advance(1)
    assert await found.resolve("a.test", 80) == (("1.1.1.1",), 80)
    names.table["a.test"] = ResolveError("no such name", permanent=True)
    clock.advance(61)
    with pytest.raises(ResolveError, match="no such name"):
        await found.resolve("a.test", 80)
    assert found.stats.failures == 3
    await found.close()


async def test_a_failed_refresh_keeps_the_fresh_answer() -> None:
    """And is not repeated at once."""
    names, clock = Names(a_test=["8.8.8.8"]), ManualClock()
    found = resolver(names, clock)
    await found.resolve("a.test", 80)
    names.table["a.test"] = ResolveError("SERVFAIL")
    clock.advance(50)
    for _ in range(5):
        assert found.cached("a.test", 80) == (("8.8.8.8",), 80)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert (len(names.asked), found.stats.stale_served) == (2, 0)
    await found.close()


async def test_many_addresses() -> None:
    """Of a name with thousands of addresses a few are kept."""
    names = Names(a_test=[f"8.8.{n >> 8}.{n & 255}" for n in range(4_000)])
    addresses, _ = await resolver(names, ManualClock()).resolve("a.test", 80)
    assert addresses == tuple(f"8.8.0.{n}" for n in range(32))


def test_families_in_turn() -> None:
    """The two families take turns, beginning with the one preferred."""
    assert interleave(["::1", "::2", "1.1.1.1"]) == ["::1", "1.1.1.1", "::2"]
    assert interleave(["1.1.1.1", "::1", "::2"]) == ["1.1.1.1", "::1", "::2"]
    assert interleave([]) == []


async def test_the_system_resolves() -> None:
    """getaddrinfo resolves localhost; another name is a ResolveError with a text."""
    assert set((await SystemResolver().resolve("localhost")).addresses) <= {"127.0.0.1", "::1"}
    with pytest.raises(ResolveError):
        await SystemResolver().resolve("x" * 70 + ".invalid")


@pytest.mark.parametrize(("ttl_s", "cached_s"), [(None, 10), (1.0, 10), (100.0, 100), (1e9, MAX_NEGATIVE_TTL_S)])
async def test_a_negative_answer_holds_as_long_as_its_zone_says(ttl_s: float | None, cached_s: float) -> None:
    """Within bounds: at least the setting, at most 900 s."""
    names, clock = Names(a_test=ResolveError("no such name", True, ttl_s)), ManualClock()
    found = resolver(names, clock)
    for wait_s, asked in ((0, 1), (cached_s - 1, 1), (2, 2)):
        clock.advance(wait_s)
        with pytest.raises(ResolveError):
            await found.resolve("a.test", 80)
        assert len(names.asked) == asked
