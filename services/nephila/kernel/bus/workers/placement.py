"""Assigns hosts to workers: the least loaded worker gets a new host, and a host stays with its worker. Pure.

Workers keep no state of a host, so any worker can take any host. A host stays because of its open connection, until
its worker has much more load than another one; without that rule the first worker would keep all hosts for ever.
Invariants: only offered workers are chosen, and none with more than `MORE` times the least load plus `SLACK`. Memory
is bounded: the least recently used host is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from typing import Generic, TypeVar

W = TypeVar("W", bound=Hashable)

MORE, SLACK = 1.5, 8
"""Load above the least at which hosts leave a worker; a host that moves costs a connection."""
HOSTS = 100_000
"""Hosts remembered, about 150 bytes each: far more than open connections."""


class Placement(Generic[W]):
    """The placement keeps a host at one worker. `load`: unfinished requests of a worker."""

    def __init__(self, load: Callable[[W], int], hosts: int = HOSTS) -> None:
        self._load = load
        self._most = hosts
        self._place: OrderedDict[str, W] = OrderedDict()

    def __len__(self) -> int:
        return len(self._place)

    def choose(self, host: str, workers: Collection[W]) -> W | None:
        """The worker for a host among these; None when there are none. O(workers)."""
        if not workers:
            return None
        worker_of, load = self._place, self._load
        worker = worker_of.get(host)
        if worker not in workers:
            worker = None
        # A worker with little load keeps its hosts.
        if worker is None or load(worker) > SLACK:
            least = min(workers, key=load)
            if worker is None or load(worker) > MORE * load(least) + SLACK:
                worker = worker_of[host] = least
                if len(worker_of) > self._most:
                    worker_of.popitem(last=False)
        worker_of.move_to_end(host)
        return worker
