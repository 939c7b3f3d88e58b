"""One pace at a server address over several schedulers: turns against each for itself and BUbiNG's factor, in a model.

Per case: pages in a minute, as a share of what the rule allows; starts less than a gap after the one before; most
fetches at once on one address; messages, and addresses named in them, per page. Then what schedulers that go and come
do.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from benchmarks.address_model import CONNECTIONS, GAP_S, Host, World, storm
from benchmarks.report import save, table

SECONDS = 60
CASES = {"one address, 200 hosts": 200, "200 addresses, 2 hosts each": 2, "400 addresses, 1 host each": 1}
"""Case → hosts on each address."""
RULES = ("alone", "factor", "factor-k", "turns")


def hosts(case: str) -> list[Host]:
    """The web of a case: delay 1 s everywhere."""
    count = 200 if case.startswith("one") else 400
    # Two hosts of an address are in different partitions: 16 of them are dealt out in order.
    return [Host(number, f"a{number // CASES[case]}", 1.0, 10**9) for number in range(count)]


def bound(world: World) -> float:
    """Pages that gap, count and the hosts' delays allow."""
    by_address: dict[str, int] = {}
    for host in world.hosts:
        by_address[host.address] = by_address.get(host.address, 0) + 1
    each = min(1 / GAP_S, CONNECTIONS / world.took_s)
    return SECONDS * sum(min(each, count / (1.0 + world.took_s)) for count in by_address.values())


def measure(case: str, rule: str, schedulers: int, took_s: float) -> dict[str, Any]:
    """One line."""
    world = World(rule, hosts(case), schedulers, took_s=took_s)
    world.run(SECONDS)
    pages, messages = len(world.log), len(world.messages)
    named = sum(len(message.claims) + len(message.released) + len(message.in_flight) for message in world.messages)
    return {
        "case": case,
        "rule": rule,
        "schedulers": schedulers,
        "took_s": took_s,
        "pages": pages,
        "of_most": round(pages / bound(world), 3),
        "early": world.too_early(),
        "at_once": world.most_at_once(),
        "words_per_page": round(messages / pages, 4),
        "named_per_page": round(named / pages, 4),
    }


def stall(what: str) -> dict[str, Any]:
    """Longest time that the address stood still when one of two schedulers goes, or another comes."""
    world = World("turns", hosts("one address, 200 hosts"), 2)
    world.run(20)
    world.kill("s0") if what == "kill -9" else world.join("s2") if what == "a join" else world.freeze("s0", 4.0)
    world.run(30)
    gaps = [later.start - earlier.start for earlier, later in pairwise(world.log)]
    return {"what": what, "stood_still_s": round(max(gaps), 2), "early": world.too_early()}


def storms(count: int) -> dict[str, Any]:
    """Kills, freezes and joins in random order."""
    worlds = [storm(seed) for seed in range(count)]
    return {
        "storms": count,
        "pages": sum(len(world.log) for world, _ in worlds),
        "early": sum(world.too_early() for world, _ in worlds),
        "at_once": max(world.most_at_once() for world, _ in worlds),
        "least_of_most_afterwards": round(min(share for _, share in worlds), 3),
    }


def main() -> None:
    """All of it, a minute of CPU."""
    print(f"{CONNECTIONS} connections, {GAP_S} s; {SECONDS} s of hosts with a delay of 1 s")
    rows = [measure(case, rule, schedulers, 0.2) for case in CASES for rule in RULES for schedulers in (1, 2, 4, 8)]
    rows += [measure(next(iter(CASES)), "turns", schedulers, 3.0) for schedulers in (1, 2, 4, 8)]
    print(table(list(rows[0]), [list(row.values()) for row in rows]))
    stalls = [stall(what) for what in ("kill -9", "a join", "a freeze of 4 s")]
    print(table(list(stalls[0]), [list(one.values()) for one in stalls]))
    random = storms(150)
    print(table(list(random), [list(random.values())]))
    print(save("addresses", {"rules": rows, "stalls": stalls, "random": random}))


if __name__ == "__main__":
    main()
