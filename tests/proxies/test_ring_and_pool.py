"""Ring and pool as values: order, spread, eviction, admission, bans, and random operations."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila_proxies.endpoint import Endpoint, parse_endpoint
from nephila_proxies.pool import BAN_S, RECHECK, SORT_S, ProxyNeed, ProxyPool, ordered
from nephila_proxies.proxy import ALIVE, CANDIDATE, EVICTED, REFUSED, Proxy, ProxyFault
from nephila_proxies.ring import Ring
from nephila_proxies.selector import parse_selector
from nephila_proxies.store import PoolFile

ANY = parse_selector("any")


def endpoints(count: int, options: str = "") -> list[Endpoint]:
    """Proxies p0, p1, …"""
    return [parse_endpoint(f"http://p{number}:80 {options}") for number in range(count)]


def pool_of(count: int, slots: int = 1000, options: str = "") -> tuple[ProxyPool, list[Proxy]]:
    """A pool whose proxies all work; p0 is the fastest."""
    pool = ProxyPool(slots)
    pool.replace("list", endpoints(count, options))
    proxies = list(pool.proxies())
    for number, proxy in enumerate(proxies):
        proxy.addresses = ("203.0.113.1",)
        pool.check_passed(proxy, 0.1 * (number + 1), 0.0)
    return pool, proxies


def pick(
    pool: ProxyPool, host: str = "a.test", now: float = 0.0, selector: str = "any", avoid: tuple[str, ...] = ()
) -> str:
    """Host name of the next proxy; empty: none."""
    found = pool.pick(parse_selector(selector), ProxyNeed(host, False), avoid, now)
    return "" if found is None else found.endpoint.host


def test_each_domain_walks_from_the_best_proxy() -> None:
    """The first request of every domain uses the head, and a whole turn uses every proxy once."""
    pool, _ = pool_of(4)
    assert [pick(pool) for _ in range(6)] == ["p0", "p1", "p2", "p3", "p0", "p1"]
    assert pick(pool, "b.test") == "p0"


def test_requests_of_a_domain_spread_evenly() -> None:
    """Also while other domains walk the ring at the same pace, and while proxies are busy."""
    pool, _ = pool_of(50, slots=1)
    used: Counter[str] = Counter()
    for _ in range(10):
        for _ in range(50):
            taken = [pool.pick(ANY, ProxyNeed(host, False), (), 0.0) for host in ("a", "b", "c", "d")]
            for proxy in taken:
                assert proxy is not None
                pool.start_use(proxy)
                pool.end_use(proxy)
            used[taken[-1].name] += 1  # type: ignore[union-attr]
    assert len(used) == 50
    assert max(used.values()) == 10


def test_domains_of_one_pace_do_not_push_each_other_around_the_ring() -> None:
    """With one slot per proxy, ten domains in step use ten proxies at a time, and each domain uses all in turn."""
    pool, _ = pool_of(100, slots=1)
    used: dict[str, Counter[str]] = {f"{number}.test": Counter() for number in range(10)}
    for _ in range(100):
        taken = []
        for host, counts in used.items():
            proxy = pool.pick(ANY, ProxyNeed(host, False), (), 0.0)
            assert proxy is not None
            pool.start_use(proxy)
            counts[proxy.name] += 1
            taken.append(proxy)
        assert len(set(taken)) == 10
        for proxy in taken:
            pool.end_use(proxy)
    assert all(len(counts) == 100 for counts in used.values())


def test_slots_bound_the_requests_of_a_proxy() -> None:
    """A busy proxy is passed over; with all busy there is none."""
    pool, proxies = pool_of(2, slots=1)
    pick(pool, "b.test")
    pool.start_use(proxies[0])
    assert [pick(pool), pick(pool)] == ["p1", "p1"]
    pool.start_use(proxies[1])
    assert pick(pool) == ""
    assert pool.has_alive(ANY, ProxyNeed("a.test", False), (), 0.0)
    pool.end_use(proxies[0])
    assert pick(pool) == "p0"


def test_a_proxy_that_dies_is_evicted_and_admitted_after_a_check() -> None:
    """Waits between checks double; a success admits it again."""
    pool, proxies = pool_of(2)
    for _ in range(2):
        pool.failed(proxies[0], ProxyFault.DEAD, "a.test", 10.0)
    assert (proxies[0].state, pool.evicted, pick(pool, now=10.0)) == (EVICTED, 1, "p1")
    waits, now = [], 10.0
    for _ in range(8):
        waits.append(proxies[0].check_at - now)
        now = proxies[0].check_at
        assert proxies[0] in pool.due(now)
        pool.check_failed(proxies[0], now)
    assert waits[:3] == [RECHECK.first_s, 2 * RECHECK.first_s, 4 * RECHECK.first_s]
    assert waits[-1] == RECHECK.longest_s
    pool.check_passed(proxies[0], 0.1, now)
    assert (proxies[0].state, pool.readmitted) == (ALIVE, 1)
    assert "p0" in {pick(pool, now=now + SORT_S) for _ in range(2)}


def test_an_empty_ring_is_sorted_again_only_for_a_new_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults and picks cost nothing while no proxy works; the first one that does is used at once."""
    pool, proxies = pool_of(3)
    sorts = []
    monkeypatch.setattr(Ring, "replace", lambda ring, *given, replace=Ring.replace: sorts.append(replace(ring, *given)))
    for proxy in proxies:
        pool.check_failed(proxy, 0.0)
    for _ in range(5):
        pool.failed(proxies[0], ProxyFault.SLOW, "a.test", 0.0)
        assert pick(pool) == ""
    assert len(sorts) == 1
    pool.check_passed(proxies[1], 0.1, 0.0)
    assert pick(pool) == "p1"


def test_a_ban_holds_for_one_host() -> None:
    """Other hosts use the proxy; bans at many hosts evict it."""
    pool, proxies = pool_of(2)
    pool.failed(proxies[0], ProxyFault.BANNED, "a.test", 0.0)
    assert [pick(pool), pick(pool), pick(pool, "b.test")] == ["p1", "p1", "p0"]
    assert "p0" in {pick(pool, now=BAN_S + 1) for _ in range(2)}
    for number in range(7):
        pool.failed(proxies[0], ProxyFault.BANNED, f"{number}.test", 0.0)
    assert proxies[0].state is EVICTED


def test_a_slow_proxy_moves_to_the_end() -> None:
    """Quality is response time per success; rings are sorted again after some seconds."""
    pool, proxies = pool_of(3)
    for _ in range(20):
        pool.succeeded(proxies[0], 9.0)
    assert [pick(pool, "b.test", SORT_S), pick(pool, "b.test", SORT_S), pick(pool, "b.test", SORT_S)] == [
        "p1",
        "p2",
        "p0",
    ]


def test_a_proxy_that_fails_moves_to_the_end() -> None:
    """While its failures are too few to evict it."""
    pool, proxies = pool_of(3)
    assert pick(pool) == "p0"
    pool.failed(proxies[0], ProxyFault.DEAD, "a.test", 1.0)
    assert proxies[0].state is ALIVE
    assert sorted(pick(pool, "b.test", SORT_S) for _ in range(3)) == ["p0", "p1", "p2"]
    assert pick(pool, "c.test", SORT_S) == "p1"


def test_wrong_credentials_end_a_proxy_until_its_list_changes() -> None:
    """No check and no request uses it before."""
    pool, proxies = pool_of(1)
    pool.failed(proxies[0], ProxyFault.REFUSED, "a.test", 0.0)
    pool.check_passed(proxies[0], 0.1, 1e9)
    assert (proxies[0].state, pool.due(1e9), pick(pool)) == (REFUSED, [], "")
    pool.replace("list", endpoints(1))
    assert proxies[0].state is REFUSED
    (fresh,) = pool.proxies()
    pool.replace("list", [parse_endpoint("http://p0:80")])
    assert fresh.state is REFUSED
    pool.replace("list", [Endpoint(scheme="http", host="p0", port=80, password="new")])  # noqa: S106
    assert fresh.state is CANDIDATE


def test_a_downloaded_list_does_not_describe_a_proxy_of_the_operator() -> None:
    """Neither its password nor its right to a private address; without the operator's list it has no such right."""
    pool = ProxyPool()
    pool.replace("settings", [parse_endpoint("http://u:own@p0:80", trusted=True)])
    (proxy,) = pool.proxies()
    proxy.addresses = ("10.0.0.1",)
    pool.check_passed(proxy, 0.1, 0.0)
    pool.replace("web", [parse_endpoint("http://u:other@p0:80")])
    assert (proxy.endpoint.password, proxy.endpoint.trusted, proxy.state) == ("own", True, ALIVE)
    pool.replace("settings", [])
    assert (proxy.endpoint.trusted, proxy.state, proxy.sources) == (False, CANDIDATE, {"web"})
    pool.replace("web", [parse_endpoint("http://u:other@p0:80")])
    assert proxy.endpoint.password == "other"  # noqa: S105


def test_a_proxy_leaves_with_its_last_list() -> None:
    """Two lists may have the same proxy."""
    pool, _ = pool_of(2)
    pool.replace("other", endpoints(1))
    pool.replace("list", [])
    assert [proxy.name for proxy in pool.proxies()] == ["http://p0:80"]
    assert [pick(pool, now=SORT_S), pick(pool, now=SORT_S)] == ["p0", "p0"]
    pool.replace("other", [])
    assert not len(pool)
    assert pick(pool, now=2 * SORT_S) == ""


@pytest.mark.parametrize(
    ("selector", "hosts"),
    [
        ("any", {"a", "b", "c"}),
        ("residential", {"b", "c"}),
        ("/de", {"a", "b"}),
        ("residential/de", {"b"}),
        ("x", {""}),
    ],
)
def test_classes_and_countries(selector: str, hosts: set[str]) -> None:
    """A selector names a class, a country, or both."""
    pool = ProxyPool()
    lines = ("a:1 class=datacenter country=de", "b:1 class=residential country=de", "c:1 class=residential country=fr")
    pool.replace("list", [parse_endpoint(line) for line in lines])
    for proxy in pool.proxies():
        proxy.addresses = ("203.0.113.1",)
        pool.check_passed(proxy, 0.1, 0.0)
    assert {pick(pool, selector=selector) for _ in range(6)} == hosts


def test_providers_take_turns_among_proxies_of_like_speed(tmp_path: Path) -> None:
    """A much faster proxy comes first whoever runs it; the provider survives a restart."""
    lines = ("a:1 provider=x", "b:1 provider=X", "c:1 provider=x", "d:1 provider=y", "e:1", "f:1", "g:1 provider=y")
    response_s = (1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 0.2)
    pool = ProxyPool()
    pool.replace("list", [parse_endpoint(line) for line in lines])
    for proxy, took_s in zip(pool.proxies(), response_s, strict=True):
        proxy.addresses, proxy.response_s, proxy.success = ("203.0.113.1",), took_s, 1.0
    right = ["g", "a", "d", "e", "f", "b", "c"]
    assert [proxy.endpoint.host for proxy in ordered(pool.proxies())] == right
    file = PoolFile(str(tmp_path / "pool.json"), ManualClock())
    file.save(pool.proxies())
    assert [proxy.endpoint.host for proxy in ordered(file.load())] == right


def test_proxies_without_tunnels_serve_http_only() -> None:
    """As a check has found."""
    pool, proxies = pool_of(2)
    proxies[0].https = False
    assert {getattr(pool.pick(ANY, ProxyNeed("a.test", True), (), 0.0), "name", "") for _ in range(3)} == {
        "http://p1:80"
    }


def test_positions_are_bounded() -> None:
    """The domain that came first begins at the head again."""
    ring: Ring[int] = Ring(max_domains=2)
    ring.replace([0, 1, 2], lambda _: True)
    for domain in ("a", "b", "a", "c"):
        ring.pick(domain, lambda _: True)
        ring.check()
    assert ring.pick("b", lambda _: True) == 1
    assert ring.pick("a", lambda _: True) == 0


def test_random_operations() -> None:
    """Whatever happens, only proxies that work are picked, and the invariants hold."""
    rng = random.Random(7)
    pool, now = ProxyPool(slots=2), 0.0
    for _ in range(4000):
        now += rng.random() * 3
        known = list(pool.proxies())
        match rng.randrange(8):
            case 0:
                pool.replace(rng.choice("xy"), rng.sample(endpoints(30), rng.randrange(25)))
            case 1 if known:
                pool.failed(rng.choice(known), rng.choice(list(ProxyFault)), rng.choice("ab"), now)
            case 2 if known:
                pool.succeeded(rng.choice(known), rng.random())
            case 3:
                for proxy in pool.due(now):
                    proxy.addresses = ("203.0.113.1",)
                    pool.check_passed(proxy, rng.random(), now) if rng.random() < 0.6 else pool.check_failed(proxy, now)
            case 4 if known and rng.random() < 0.1:
                pool.lied(rng.choice(known), rng.choice("ab"), now)
            case _:
                host, is_https = rng.choice("ab"), rng.random() < 0.5
                found = pool.pick(ANY, ProxyNeed(host, is_https), (), now)
                if found is not None:
                    assert found.state is ALIVE
                    assert not found.is_banned(host, now)
                    assert pool.find(found.name) is found
        pool.check()
