"""A partition that another scheduler takes over equals the one that ran: leases, pages between two services, rows that
wait for a receipt, queues, hosts, jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nephila.kernel.messages import FetchRequest
from nephila.native import parse_url
from nephila.scheduler.durability.continued_leases import CATCH_UP_S
from nephila.scheduler.frontier.frontier import Frontier

from tests.cluster.scheduler.cluster_rig import PARTITIONS, World, ends, web
from tests.scheduler.durability.observed_state import observed

HOSTS, PAGES = 6, 9


def outstanding(frontier: Frontier) -> dict[tuple[str, str], dict[str, Any]]:
    """All that is in flight, with its state."""
    return {
        (uid, waiting.entry.url): {
            "host": waiting.host.key,
            "fetch": (waiting.entry.fetch_no, waiting.attempt),
            "state": waiting.state,
            "address": waiting.address,
            "receipted": waiting.receipted,
            "row": waiting.record,
            "in flight": waiting.host.in_flight,
            "lease": frontier.in_flight.leases.get((uid, waiting.entry.url_key)),
        }
        for (uid, _), waiting in frontier.in_flight.urls.items()
    }


def counts(frontier: Frontier) -> dict[str, Any]:
    """The counters of what is in flight."""
    return {
        "in fetch": len(frontier.in_flight.leases),
        "outstanding": len(frontier.in_flight),
        "leased": {uid: job.counts.leased for uid, job in frontier.jobs.items()},
    }


@pytest.mark.parametrize("way", ["hand-over", "kill"])
@pytest.mark.parametrize("rows", [0, 6, 15, 30])
async def test_a_partition_that_is_taken_over_equals_the_one_that_ran(tmp_path: Path, rows: int, way: str) -> None:
    """At an instant with requests in flight, outcomes that wait and rows without receipt."""
    world = World(tmp_path, web(HOSTS, PAGES, more=True), took_s=0.6)
    held: list[FetchRequest] = []

    def silent(request: FetchRequest) -> bool:
        """One request in seven is never answered."""
        held.append(request)
        return len(held) % 7 == 3

    world.deaf = silent
    await world.start("a")
    await world.start("b")
    await world.give("a")
    world.submit(*(f"http://h{host}.test/0" for host in range(HOSTS)))
    await world.until(rows)
    await world.run(0.3)
    keys = [parse_url(url).fingerprint for url in (*world.site.links, *world.site.redirects)]
    before = state(world, "a", keys)
    if way == "kill":
        world.kill("a")
        await world.give("b")
    else:
        await world.hand_over("a", "b", *range(PARTITIONS))
    after = state(world, "b", keys)
    for number, (known, flying, counters) in before.items():
        found, found_flying, found_counters = after[number]
        now = world.clock.monotonic()
        for key, waiting in flying.items():
            lease, found_lease = waiting.pop("lease"), found_flying[key].pop("lease")
            assert (lease is None) is (found_lease is None), key
            if lease is not None:
                # Its outcome may wait to be read: a lease that is near its end lasts a little longer.
                assert found_lease == pytest.approx(max(lease, now + CATCH_UP_S)), key
        assert found_flying == flying, number
        assert found_counters == counters, number
        # The new owner has an epoch of its own.
        for one in (known, found):
            one["positions"] = {p: (sequence, ended) for p, (_, sequence, ended) in one["positions"].items()}
            one["hosts"] = {host: value for host, value in one["hosts"].items() if not idle(value)}
        assert found == known, number
    assert any(flying for _, flying, _ in before.values())
    world.deaf = lambda request: False
    await world.until(len(ends(world.site)))
    world.check()
    assert world.outcomes() == ends(world.site)


def idle(host: dict[str, Any]) -> bool:
    """Whether nothing of a host is worth keeping."""
    return not (host["not_before"] or host["backoff"] or host["robots"] or host["uses"])


def state(
    world: World, name: str, keys: list[bytes]
) -> dict[int, tuple[dict[str, Any], dict[Any, Any], dict[str, Any]]]:
    """Partition → all that its owner knows, what is in flight, and the counters of that."""
    owners = world.members[name][1].owners
    return {
        number: (observed(owner.dispatcher, keys), outstanding(owner.frontier), counts(owner.frontier))
        for number, owner in owners.items()
    }
