"""Which member owns which partitions of a group, and which member will: the ring, with a hand-over that interrupts no
work.

A member claims the partitions it holds and those promised to it. The leader's plan never gives a partition that a
living member holds to another one. Instead the plan marks the partition as leaving. The holder finishes its work,
releases it and requests a new plan, which assigns it to the promised member. Invariant of a plan: every partition has
exactly one member, and a held partition stays. Members are known by their stable names; of two with one name the newer
counts. Pure; Kafka's protocol is in assignor.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from nephila_cluster.kafka.group.ring import assign_partitions


class Claim(msgspec.Struct, array_like=True):
    """What a member states when it joins."""

    name: str
    started: float = 0.0
    # Seconds since 1970 UTC: of two members with one name the later one counts.
    held: dict[int, int] = {}
    # Partition → generation of its assignment.
    promised: list[int] = []
    settings: dict[str, str] = {}
    # Settings that all members of a system must share (agreement.py).
    able: bool = True
    # False: a dependency of this member has been unavailable for long; able members get its partitions.
    survived: list[int] = []
    # Partitions that this member held when the group removed it, once for each time: no message has ended it.


class Share(msgspec.Struct, array_like=True):
    """What the leader assigns to a member."""

    partitions: list[int] = []
    leaving: list[int] = []
    # Those to finish and release.
    promised: list[int] = []
    # Partitions of others that this member will get.
    pardoned: list[int] = []
    # Those of its partitions that earlier holders have survived, once for each of them.


def plan(claims: Mapping[str, Claim], partitions: int) -> dict[str, Share]:
    """The share of every member, by its id. O(partitions), without the ring."""
    by_name: dict[str, str] = {}
    for member in sorted(claims, key=lambda member_id: (claims[member_id].started, member_id)):
        by_name[claims[member].name] = member
    living = {name: claims[member] for name, member in by_name.items()}
    holder = _holders(living, partitions)
    promised = {p: name for name, claim in sorted(living.items()) for p in claim.promised if 0 <= p < partitions}
    # If no member is able, all keep their partitions.
    able = sorted(name for name, claim in living.items() if claim.able) or sorted(living)
    target = assign_partitions(able, partitions, {**holder, **promised})
    survived = Counter(p for claim in living.values() for p in claim.survived)
    shares = {member: Share([], [], [], []) for member in claims}
    for p, name in enumerate(target):
        has = holder.get(p, name)
        shares[by_name[has]].partitions.append(p)
        shares[by_name[has]].pardoned += [p] * survived[p]
        if has != name:
            shares[by_name[has]].leaving.append(p)
            shares[by_name[name]].promised.append(p)
    return shares


def _holders(living: Mapping[str, Claim], partitions: int) -> dict[int, str]:
    """The holder of each partition; of two that claim it, the one with the later assignment."""
    latest: dict[int, tuple[int, str]] = {}
    for name, claim in living.items():
        for p, generation in claim.held.items():
            if 0 <= p < partitions:
                latest[p] = max(latest.get(p, (-1, "")), (generation, name))
    return {p: name for p, (_, name) in latest.items()}


class Membership:
    """The view of one member: held, leaving and promised partitions."""

    def __init__(self, name: str, started: float, settings: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.started = started
        self._settings = dict(settings or {})
        self.able = True
        self.held: dict[int, int] = {}
        self.leaving: frozenset[int] = frozenset()
        self.promised: frozenset[int] = frozenset()
        self.pardoned: Mapping[int, int] = {}
        """Partition → earlier holders that have survived it."""
        self._survived: list[int] = []
        """Partitions to name in the next claim."""

    def claim(self) -> bytes:
        """The claim for a join."""
        claim = Claim(
            *(self.name, self.started, self.held, sorted(self.promised), self._settings, self.able),
            survived=self._survived,
        )
        return msgspec.msgpack.encode(claim)

    def on_share(self, data: bytes) -> None:
        """The leader's answer; an empty one assigns nothing."""
        share = msgspec.msgpack.decode(data, type=Share) if data else Share()
        self.leaving = frozenset(share.leaving)
        self.promised = frozenset(share.promised)
        self.pardoned = Counter(share.pardoned)

    def on_assignment(self, partitions: Iterable[int], generation: int) -> tuple[frozenset[int], frozenset[int]]:
        """(new, lost) partitions of an assignment; a kept partition keeps its generation."""
        now = frozenset(partitions)
        new, gone = now - self.held.keys(), frozenset(self.held.keys() - now)
        self.held = {p: self.held.get(p, generation) for p in now}
        self._survived.clear()  # the leader has told their owners
        return new, gone

    def removed(self) -> None:
        """The group has removed this member, which lives and joins again."""
        self._survived += self.held
        self.held = {}

    def release(self, partitions: Iterable[int]) -> None:
        """These partitions are finished here."""
        for p in partitions:
            self.held.pop(p, None)
        self.leaving -= frozenset(partitions)
