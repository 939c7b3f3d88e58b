"""Look-ups: silent, failing and missing names beside good ones, over a DNS server of this file's own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiodns
import pytest
from nephila.downloader.dns import aiodns_resolver
from nephila.downloader.dns.aiodns_resolver import AiodnsResolver
from nephila.downloader.dns.config import DnsConfig
from nephila.downloader.dns.contract import Addresses, NotLookedUpError, ResolveError
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.dns.hash_tree import HashTree
from nephila.downloader.dns.lookup_slots import LookupSlots
from nephila.downloader.dns.resolvers import make_guarded_resolver
from nephila.downloader.dns.system_resolver import SystemResolver
from nephila.downloader.service import build
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import FetchOutcome, FetchRequest, FetchResult
from nephila.kernel.net.egress import EgressError, EgressGuard
from nephila.kernel.runtime.clock import ManualClock, SystemClock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import OUTCOMES, REQUESTS

from tests.contracts.fetcher_server import Server, response
from tests.dns_server import NXDOMAIN, REFUSED, SERVFAIL, DnsServer
from tests.downloader.downloader_room import Room
from tests.downloader_settings import downloader_config

HTML = "Content-Type: text/html"


async def look_up(names: dict[str, object], *hosts: str, timeout_s: float = 5.0) -> list[Sequence[str] | ResolveError]:
    """The addresses of these hosts, looked up at once."""
    async with DnsServer(names) as server:
        resolver = AiodnsResolver((server.address,), timeout_s)
        found = await asyncio.gather(*(resolver.resolve(host) for host in hosts), return_exceptions=True)
        await resolver.close()
        return [one if isinstance(one, BaseException) else one.addresses for one in found]  # type: ignore[misc]


async def test_addresses_of_both_families() -> None:
    """A and AAAA records come, in turn; a name with one family only is as good."""
    both, four, six = await look_up(
        {"a.test": ("8.8.8.8", "8.8.4.4", "2001:4860::1"), "b.test": ("1.1.1.1",), "c.test": ("2606::1",)},
        *("a.test", "B.test.", "c.test"),
    )
    assert not isinstance(both, ResolveError), repr(both)
    assert sorted(both) == ["2001:4860::1", "8.8.4.4", "8.8.8.8"]
    assert (four, six) == (["1.1.1.1"], ["2606::1"])


@pytest.mark.parametrize(
    ("found", "text", "permanent"),
    [
        (NXDOMAIN, "no such name", True),
        ((), "no address", True),
        (SERVFAIL, "general failure", False),
        (REFUSED, "refused", False),
        (None, "no answer within 0.2 s|[Tt]imeout", False),
    ],
    ids=["nxdomain", "empty", "servfail", "refused", "silent"],
)
async def test_names_that_fail(found: object, text: str, permanent: bool) -> None:
    """The DNS saying that there is no address is final; no answer and a server's failure are not."""
    (error,) = await look_up({"a.test": found}, "a.test", timeout_s=0.2)
    with pytest.raises(ResolveError, match=text):
        raise error  # type: ignore[misc]
    assert error.permanent is permanent  # type: ignore[union-attr]


async def test_names_that_are_none() -> None:
    """A name that DNS cannot carry is refused without a question."""
    errors = await look_up({}, "x" * 70 + ".test", ".".join(["label"] * 60))
    assert [error.permanent for error in errors] == [True, True]  # type: ignore[union-attr]


async def test_half_an_answer() -> None:
    """Where only one family's server answers, its addresses count."""

    class Half(DnsServer):
        def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
            self.names = {"a.test": ("8.8.8.8",) if data[-26:].find(b"\x00\x1c") < 0 else SERVFAIL}
            super().datagram_received(data, sender)

    async with Half() as server:
        resolver = AiodnsResolver((server.address,), 5.0)
        assert (await resolver.resolve("a.test")).addresses == ["8.8.8.8"]
        await resolver.close()


async def test_the_second_server_answers() -> None:
    """A silent server is passed over."""
    async with DnsServer({"a.test": None}) as silent, DnsServer({"a.test": ("8.8.8.8",)}) as server:
        resolver = AiodnsResolver((silent.address, server.address), 1.4)
        assert (await resolver.resolve("a.test")).addresses == ["8.8.8.8"]
        await resolver.close()


async def test_a_truncated_answer_is_repeated_over_tcp() -> None:
    """The answer over UDP has the TC bit; the one over TCP has all addresses. Questions announce their size (EDNS)."""
    addresses = tuple(f"8.8.{number // 200}.{number % 200 + 1}" for number in range(300))
    server = DnsServer()
    server.over_tcp["large.test"] = addresses
    async with server:
        resolver = AiodnsResolver((server.address,), 5.0)
        found = await resolver.resolve("large.test")
        await resolver.close()
    assert sorted(found.addresses) == sorted(addresses)
    assert found.ttl_s == 60.0
    assert server.tcp_asked["large.test"] == 2  # A and AAAA
    assert min(server.edns_sizes) >= 1232


async def test_dead_servers_cost_a_part_of_the_limit() -> None:
    """A closed port, then a silent server, then a good one: the answer comes within the limit of the look-up."""
    async with DnsServer() as closed:
        pass
    async with DnsServer({"a.test": None}) as silent, DnsServer({"a.test": ("8.8.8.8",)}) as server:
        resolver = AiodnsResolver((closed.address, silent.address, server.address), 5.0)
        assert (await resolver.resolve("a.test")).addresses == ["8.8.8.8"]
        await resolver.close()


async def test_the_search_list_is_off() -> None:
    """A name is looked up as it is."""
    async with DnsServer() as server:
        resolver = AiodnsResolver((server.address,), 5.0)
        with pytest.raises(ResolveError):
            await resolver.resolve("intranet")
        await resolver.close()
        assert set(server.asked) == {"intranet", "intranet AAAA"}


def own_names() -> dict[str, str]:
    """Names of this machine's hosts file with their IPv4 addresses."""
    lines = [line.partition("#")[0].split() for line in Path("/etc/hosts").read_text().splitlines()]
    return {line[1]: line[0] for line in lines if len(line) > 1 and "localhost" not in line[1] and "." in line[0]}


@pytest.mark.skipif(not own_names(), reason="the hosts file has no name of its own")
async def test_the_hosts_file_comes_first() -> None:
    """Names of the hosts file need no query."""
    name, address = own_names().popitem()
    async with DnsServer() as server:
        resolver = AiodnsResolver((server.address,), 5.0)
        assert address in (await resolver.resolve(name)).addresses
        await resolver.close()
        assert not server.asked


async def test_channels_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of c-ares is dropped after a number of look-ups, while others are in flight."""
    monkeypatch.setattr("nephila.downloader.dns.aiodns_resolver._LOOKUPS", 3)
    hosts = [f"h{number}.test" for number in range(20)]
    found = await look_up(dict.fromkeys(hosts, ("8.8.8.8",)), *hosts)
    assert found == [["8.8.8.8"]] * 20


def cut_record(query: bytes) -> bytes:
    """An answer whose only record ends within its head."""
    question = query[12 : query.index(b"\x04test\x00") + 10]
    head = query[:2] + b"\x81\x80" + query[4:6] + b"\x00\x01\x00\x00\x00\x00"
    return head + question + b"\xc0\x0c\x00\x01\x00\x01\x00\x00"


@pytest.mark.parametrize("malformed", [cut_record, lambda query: query[:2] + b"\x81\x80\x00", lambda query: query[:2]])
async def test_a_malformed_answer_ends_its_own_name_only(malformed: Any) -> None:
    """Names in flight are looked up once more; the bad name's site is asked apart from others from then on."""
    good = [f"g{number}.test" for number in range(20)]
    bad = [f"bad{number}.test" for number in range(5)]
    names: dict[str, object] = dict.fromkeys(good, ("8.8.8.8",))

    class Slow(DnsServer):
        def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
            if b"bad" in data:
                self._transport.sendto(malformed(data), sender)
            else:  # in flight while the malformed answers arrive
                asyncio.get_running_loop().call_later(0.05, self._late, data, sender)

        def _late(self, data: bytes, sender: tuple[str, int]) -> None:
            if not self._transport.is_closing():
                super().datagram_received(data, sender)

    async with Slow(names) as server:
        resolver = AiodnsResolver((server.address,), 5.0)
        for _ in range(2):
            found = await asyncio.gather(*(resolver.resolve(name) for name in good + bad), return_exceptions=True)
            assert [getattr(one, "addresses", one) for one in found[:20]] == [["8.8.8.8"]] * 20
            assert all(isinstance(one, ResolveError) and not one.permanent for one in found[20:])
        await resolver.close()


# Sixty dead names


async def outcomes(hosts: Sequence[str], port: int, dns: str, *, first: int = 0, **settings: Any) -> list[FetchOutcome]:
    """Fetch the root of each host, all at once; returns when `first` (0 = all) have ended."""
    clock = SystemClock()
    bus = LocalBus(clock)
    config = downloader_config(allow_private=True, per_address=0, address_gap_s=0, dns__servers=(dns,), **settings)
    downloader = build(config, bus, clock)
    got: asyncio.Queue[FetchOutcome] = asyncio.Queue()

    def on_outcome(delivery: Delivery) -> None:
        got.put_nowait(delivery.message)
        delivery.ack()

    bus.subscribe(OUTCOMES, "test", on_outcome, credits=1000)
    await downloader.start()
    for host in hosts:
        bus.publish(REQUESTS, 0, FetchRequest(url=f"http://{host}:{port}/", host=host))
    found = [await got.get() for _ in range(first or len(hosts))]
    await downloader.close()
    return found


async def test_dead_names_beside_good_ones() -> None:
    """Sixty names with silent servers delay no other: the forty good ones looked up after them come first."""
    dead, good = [f"dead{n}.test" for n in range(60)], [f"good{n}.test" for n in range(40)]
    names: dict[str, object] = {**dict.fromkeys(dead, None), **dict.fromkeys(good, ("127.0.0.1",))}
    async with DnsServer(names) as dns, Server(response(b"x", HTML)) as server:
        found = await outcomes([*dead, *good], server.port, dns.address, first=40, dns__timeout_s=60.0)
        assert {(one.host, one.result) for one in found} == {(host, FetchResult.FETCHED) for host in good}


async def test_a_dead_name_ends() -> None:
    """A name whose servers are silent fails with the limit in its detail; no server was dialled."""
    async with DnsServer({"dead.test": None}) as dns:
        (outcome,) = await outcomes(["dead.test"], 80, dns.address, dns__timeout_s=0.1)
        assert (outcome.result, outcome.reason, outcome.started_at) == (FetchResult.FAILED, "dns", 0.0)


# The clock and the memory of look-ups


async def test_the_clock_begins_with_the_turn() -> None:
    """The wait for a turn ends as `NotLookedUpError`."""
    slots = LookupSlots(1, 0.01)
    await slots.acquire()
    with pytest.raises(NotLookedUpError, match="too many look-ups"):
        await slots.acquire()
    slots.release()
    await slots.acquire()


class Flaky:
    """A resolver that raises the given errors, then returns an address."""

    def __init__(self, *errors: ResolveError) -> None:
        self.errors = list(errors)
        self.asked = 0

    async def resolve(self, host: str) -> Addresses:
        """See `Resolver.resolve`."""
        self.asked += 1
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        return Addresses(["8.8.8.8"])

    async def close(self) -> None:
        """See `Resolver.close`."""


async def test_a_failure_that_may_pass_is_not_remembered() -> None:
    """The next try looks up again; concurrent callers share the failure."""
    names, clock = Flaky(ResolveError("SERVFAIL")), ManualClock()
    resolver = GuardedResolver(EgressGuard(), names, HashTree(10), clock)
    failed = await asyncio.gather(*(resolver.resolve("a.test", 80) for _ in range(5)), return_exceptions=True)
    assert [str(error) for error in failed] == ["SERVFAIL"] * 5
    assert names.asked == 1
    clock.advance(2)
    assert await resolver.resolve("a.test", 80) == (("8.8.8.8",), 80)


async def test_a_name_that_does_not_exist_is_remembered() -> None:
    """It is looked up once within `negative_ttl_s`."""
    names, clock = Flaky(ResolveError("no such name", permanent=True)), ManualClock()
    resolver = GuardedResolver(EgressGuard(), names, HashTree(10), clock)
    for _ in range(3):
        with pytest.raises(ResolveError, match="no such name"):
            await resolver.resolve("a.test", 80)
        clock.advance(4)
    assert names.asked == 1


async def test_remembered_failures_hold_no_frames() -> None:
    """An error that was kept would keep the fetches of all who met it."""
    resolver = GuardedResolver(EgressGuard(), Flaky(ResolveError("gone", permanent=True)), HashTree(10), ManualClock())
    errors = []
    for _ in range(2):
        with pytest.raises(ResolveError) as caught:
            await resolver.resolve("a.test", 80)
        errors.append(caught.value)
    assert errors[0] is not errors[1]


async def test_every_answer_is_checked() -> None:
    """A public name with an inner address is refused; of a mixed answer the public addresses remain."""
    names: dict[str, object] = {"in.test": ("10.0.0.1", "::1"), "mixed.test": ("127.0.0.1", "8.8.8.8")}
    async with DnsServer(names) as dns:
        resolver = make_guarded_resolver(DnsConfig(servers=(dns.address,)), SystemClock())
        with pytest.raises(EgressError, match=r"10\.0\.0\.1 is private|::1 is loopback"):
            await resolver.resolve("in.test", 80)
        assert await resolver.resolve("mixed.test", 80) == (("8.8.8.8",), 80)
        await resolver.close()


async def test_a_failure_that_may_pass_is_asked_again_by_the_service() -> None:
    """Each request of a host looks up again after SERVFAIL, so that a retry of the scheduler can succeed."""
    async with (
        DnsServer({"a.test": SERVFAIL}) as dns,
        Server(response(b"x", HTML)) as server,
    ):
        (first,) = await outcomes(["a.test"], server.port, dns.address)
        assert (first.result, first.reason) == (FetchResult.FAILED, "dns")
        dns.names["a.test"] = ("127.0.0.1",)
        (second,) = await outcomes(["a.test"], server.port, dns.address)
        assert second.result == FetchResult.FETCHED


# The system's resolver


async def test_silent_names_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that never returns keeps its slot; a look-up that waits for one raises NotLookedUpError."""
    import threading

    gate = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: gate.wait() and [])
    resolver = SystemResolver(0.02, max_lookups=1)
    with pytest.raises(ResolveError, match="no answer within"):
        await resolver.resolve("dead.test")
    with pytest.raises(NotLookedUpError):
        await resolver.resolve("good.test")
    gate.set()


@pytest.mark.parametrize(
    "settings",
    [
        {"servers": ("dns.test",)},
        {"resolver": "hosts"},
        {"resolver": "system", "servers": ("1.1.1.1",)},
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any]) -> None:
    """They are refused at the start, in one line."""
    with pytest.raises(UsageError, match=r"dns\."):
        make_guarded_resolver(DnsConfig(**settings), SystemClock())


async def test_what_was_not_looked_up_is_given_back() -> None:
    """The outcome of a look-up that was not made: given back, nothing dialled."""
    room = Room()
    await room.downloader.start()
    made = room.request("http://late.test/")

    async def never_asked(host: str) -> Sequence[str]:
        raise NotLookedUpError("not looked up")

    room.names.resolve = never_asked  # type: ignore[method-assign]
    await room.settle()
    (outcome,) = room.outcomes
    assert (outcome.result, outcome.reason, outcome.started_at) == (FetchResult.UNSPECIFIED, "not_resolved", 0.0)
    assert outcome.attempt == made.attempt
    await room.downloader.close()


async def test_a_channel_that_reaches_no_server_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sockets may belong to a network that is gone; a second channel is tried before the look-up fails."""
    whole, asked = aiodns.DNSResolver.getaddrinfo, []

    async def getaddrinfo(channel: aiodns.DNSResolver, host: str, **options: Any) -> Any:
        asked.append(channel)
        if channel is asked[0]:
            raise aiodns.error.DNSError(aiodns.error.ARES_ECONNREFUSED, "Could not contact DNS servers")
        return await whole(channel, host, **options)

    monkeypatch.setattr(aiodns.DNSResolver, "getaddrinfo", getaddrinfo)
    assert await look_up({"a.test": ("8.8.8.8",)}, "a.test", "a.test") == [["8.8.8.8"], ["8.8.8.8"]]
    assert len(set(asked)) == 2


async def test_an_answer_without_addresses_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    """From either resolver; the name is not asked again soon."""

    async def nothing(channel: aiodns_resolver._Channel, host: str) -> Addresses:
        return Addresses([])

    monkeypatch.setattr(aiodns_resolver._Channel, "addresses", nothing)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [])
    for resolver in (AiodnsResolver(("127.0.0.1:9",)), SystemResolver()):
        with pytest.raises(ResolveError, match="no address") as caught:
            await resolver.resolve("a.test")
        assert caught.value.permanent
        await resolver.close()


async def test_a_name_that_does_not_exist_has_the_negative_ttl_of_its_zone() -> None:
    """The minimum of the SOA record of its site (RFC 2308); unknown where there is none."""
    async with DnsServer() as server:
        server.minimum_s["example.org"] = 120
        resolver = AiodnsResolver([server.address])
        for host, ttl_s in (("gone.example.org", 120.0), ("gone.example.com", None)):
            with pytest.raises(ResolveError) as caught:
                await resolver.resolve(host)
            assert (caught.value.permanent, caught.value.ttl_s) == (True, ttl_s)
        await resolver.close()
