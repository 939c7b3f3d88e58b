"""Names into checked addresses: asked once, remembered for a while, checked before anybody sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from nephila.downloader.dns.contract import ResolveError, interleave
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.dns.system_resolver import SystemResolver
from nephila.downloader.dns.ttl_cache import TtlCache
from nephila.kernel.net.egress import EgressError, EgressGuard, HostMap
from nephila.kernel.runtime.clock import ManualClock


class Names:
    """A resolver from a table; counts questions."""

    def __init__(self, **table: Sequence[str] | Exception) -> None:
        self.table = {name.replace("_", "."): found for name, found in table.items()}
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None

    async def resolve(self, host: str) -> Sequence[str]:
        """See `Resolver.resolve`."""
        self.asked.append(host)
        if self.gate is not None:
            await self.gate.wait()
        found = self.table.get(host, ResolveError("no such name"))
        if isinstance(found, Exception):
            raise found
        return found

    async def close(self) -> None:
        """See `Resolver.close`."""


def resolver(
    names: Names, clock: ManualClock, *entries: str, private: bool = False, size: int = 100
) -> GuardedResolver:
    """An egress with short memories."""
    return GuardedResolver(
        EgressGuard(private), names, TtlCache(size), clock, HostMap(entries), ttl_s=60, negative_ttl_s=10
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
    """Many who ask for one name share one question."""
    names, clock = Names(a_test=["8.8.8.8"]), ManualClock()
    names.gate = asyncio.Event()
    found = resolver(names, clock)
    waiting = [asyncio.ensure_future(found.resolve("a.test", 80)) for _ in range(20)]
    await asyncio.sleep(0)
    names.gate.set()
    assert set(await asyncio.gather(*waiting)) == {(("8.8.8.8",), 80)}
    assert names.asked == ["a.test"]


async def test_a_cancelled_question() -> None:
    """When the one who asks is cancelled, another asks."""
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
    """A name that fails is not asked for again at once."""
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
    """A name that changes its mind is checked anew each time it is asked for."""
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
    """Beyond the size of the cache, the name asked first goes."""
    names, clock = Names(a_test=["8.8.8.8"], b_test=["8.8.4.4"], c_test=["1.1.1.1"]), ManualClock()
    found = resolver(names, clock, size=2)
    for host in ("a.test", "b.test", "c.test"):
        await found.resolve(host, 80)
    assert found.cached("a.test", 80) is None
    assert found.cached("c.test", 80) is not None


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
    """getaddrinfo knows localhost, and says in words what it does not know."""
    assert set(await SystemResolver().resolve("localhost")) <= {"127.0.0.1", "::1"}
    with pytest.raises(ResolveError):
        await SystemResolver().resolve("x" * 70 + ".invalid")
