"""One pace at a server address over several schedulers: turns against each for itself and BUbiNG's factor, in a model.

Printed per case: pages in a minute, as a share of what the rule allows; starts less than a gap after the one before;
most fetches at once on one address; words, and addresses named in them, per page.
"""

from __future__ import annotations

import time
from itertools import pairwise

from benchmarks.address_model import CONNECTIONS, GAP_S, Host, World

SECONDS = 60
RULES = ("alone", "factor", "factor-k", "turns")


def hosts(case: str) -> list[Host]:
    """The web of a case: delay 1 s everywhere."""
    per_address = {"one address, 200 hosts": 200, "400 addresses, 1 host each": 1, "200 addresses, 2 hosts each": 2}
    count = 200 if case.startswith("one") else 400
    # Two hosts of an address are in different partitions: 16 of them are dealt out in order.
    return [Host(number, f"a{number // per_address[case]}", 1.0, 10**9) for number in range(count)]


def bound(world: World) -> float:
    """Pages that gap, count and the hosts' delays allow."""
    by_address: dict[str, int] = {}
    for host in world.hosts:
        by_address[host.address] = by_address.get(host.address, 0) + 1
    each = min(1 / GAP_S, CONNECTIONS / world.took_s)
    return SECONDS * sum(min(each, count / (1.0 + world.took_s)) for count in by_address.values())


def measure(case: str, rule: str, schedulers: int, took_s: float) -> None:
    """One line."""
    world = World(rule, hosts(case), schedulers, took_s=took_s)
    begun = time.process_time()
    world.run(SECONDS)
    cpu = time.process_time() - begun
    pages, words = len(world.log), len(world.words)
    entries = sum(len(word.claims) + len(word.passed) + len(word.busy) for word in world.words)
    print(
        f"{case:29} {rule:9} {schedulers:2}  {took_s:4.1f}  {pages:6,}  {pages / bound(world):6.2f}  "
        f"{world.too_early():6,}  {world.most_at_once():4}  {words / pages:8.3f}  {entries / pages:8.3f}  {cpu:5.1f}"
    )


def stall(what: str) -> None:
    """Longest time that the address stood still when one of two schedulers goes, or another comes."""
    world = World("turns", hosts("one address, 200 hosts"), 2)
    world.run(20)
    world.kill("s0") if what == "kill -9" else world.join("s2") if what == "a join" else world.freeze("s0", 4.0)
    world.run(30)
    starts = [fetch.start for fetch in world.log]
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    print(f"{what}: the address stood still for {max(gaps):.1f} s; {world.too_early()} starts too early")


def main() -> None:
    """All of it, some ten seconds."""
    print(f"{CONNECTIONS} connections, {GAP_S} s; {SECONDS} s of hosts with a delay of 1 s")
    print(
        "case                          rule       k  took   pages  of most  early  most  words/page  named/page  CPU s"
    )
    for case in ("one address, 200 hosts", "200 addresses, 2 hosts each", "400 addresses, 1 host each"):
        for rule in RULES:
            for schedulers in (1, 2, 4, 8):
                measure(case, rule, schedulers, 0.2)
    for schedulers in (1, 2, 4, 8):
        measure("one address, 200 hosts", "turns", schedulers, 3.0)
    for what in ("kill -9", "a join", "a freeze of 4 s"):
        stall(what)


if __name__ == "__main__":
    main()
