"""Which worker a host belongs to: the one with the least to do when it first comes, and that one as a rule. Pure.

Workers own no state of a host, so a host may be put anywhere at any time; it is kept where it is for its open
connection, unless that worker has far more to do than another: the one that was ready first would keep all hosts of a
crawl for ever. Invariants: only those that are offered are chosen, and none while it has more than `MORE` times the
least load and `SLACK`. What is remembered is bounded: the host that did not come for longest is placed anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from typing import Generic, TypeVar

W = TypeVar("W", bound=Hashable)

MORE, SLACK = 1.5, 8
"""How much more than the least a worker may have to do before hosts leave it: a host that moves costs a connection."""
HOSTS = 100_000
"""Hosts remembered, about 150 bytes each: more than there can be open connections by far."""


class Placement(Generic[W]):
    """`load` says how much a worker has in its hands."""

    def __init__(self, load: Callable[[W], int], hosts: int = HOSTS) -> None:
        self._load = load
        self._most = hosts
        self._place: OrderedDict[str, W] = OrderedDict()

    def __len__(self) -> int:
        return len(self._place)

    def choose(self, host: str, workers: Collection[W]) -> W | None:
        """The worker for a host among these; None when there is none. O(workers)."""
        if not workers:
            return None
        place, load = self._place, self._load
        worker = place.get(host)
        if worker not in workers:
            worker = None
        # With so little in its hands it keeps its hosts whatever the others have.
        if worker is None or load(worker) > SLACK:
            least = min(workers, key=load)
            if worker is None or load(worker) > MORE * load(least) + SLACK:
                worker = place[host] = least
                if len(place) > self._most:
                    place.popitem(last=False)
        place.move_to_end(host)
        return worker
