"""Who has which partitions of a group, and who shall have them: the ring with a hand-over that nobody is cut off by.

A member claims what it holds and what it was promised. The leader's plan gives a partition that a living member holds
to nobody else: the holder hears that it is leaving, finishes its work, lets go and asks for a new plan, by which the
one it was promised to has it. Invariant of a plan: every partition has exactly one member, and one that is held stays.
Members are known by their stable names; of two with one name the newer counts. Pure; Kafka's protocol is in
assignor.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from nephila.kernel.ring import assign_partitions


class Claim(msgspec.Struct, array_like=True):
    """What a member says of itself when it joins."""

    name: str
    started: float = 0.0
    # Seconds since 1970 UTC: of two members with one name the later counts.
    held: dict[int, int] = {}
    # Partition -> generation in which it was given.
    promised: list[int] = []
    settings: dict[str, str] = {}
    # What all members of a system have to agree on (agreement.py).
    able: bool = True
    # False: what this member needs for its work has been away for long; others have its partitions, if any is able.


class Share(msgspec.Struct, array_like=True):
    """What the leader says to a member."""

    partitions: list[int] = []
    leaving: list[int] = []
    # Of those, the ones to finish and let go.
    promised: list[int] = []
    # Partitions of others that will come here.


def plan(claims: Mapping[str, Claim], partitions: int) -> dict[str, Share]:
    """The share of every member, by its id. O(partitions) beside the ring."""
    by_name: dict[str, str] = {}
    for member in sorted(claims, key=lambda one: (claims[one].started, one)):
        by_name[claims[member].name] = member
    living = {name: claims[member] for name, member in by_name.items()}
    holder = _holders(living, partitions)
    promised = {p: name for name, claim in sorted(living.items()) for p in claim.promised if 0 <= p < partitions}
    # Where nobody is able, all keep what they have.
    able = sorted(name for name, claim in living.items() if claim.able) or sorted(living)
    target = assign_partitions(able, partitions, {**holder, **promised})
    shares = {member: Share([], [], []) for member in claims}
    for p, name in enumerate(target):
        has = holder.get(p, name)
        shares[by_name[has]].partitions.append(p)
        if has != name:
            shares[by_name[has]].leaving.append(p)
            shares[by_name[name]].promised.append(p)
    return shares


def _holders(living: Mapping[str, Claim], partitions: int) -> dict[int, str]:
    """Who has a partition; of two who say so, the one it was given to later."""
    latest: dict[int, tuple[int, str]] = {}
    for name, claim in living.items():
        for p, generation in claim.held.items():
            if 0 <= p < partitions:
                latest[p] = max(latest.get(p, (-1, "")), (generation, name))
    return {p: name for p, (_, name) in latest.items()}


class Membership:
    """One member's own view: what it holds, what leaves, what will come."""

    def __init__(self, name: str, started: float) -> None:
        self.name = name
        self.started = started
        self.settings: dict[str, str] = {}
        self.able = True
        self.held: dict[int, int] = {}
        self.leaving: frozenset[int] = frozenset()
        self.promised: frozenset[int] = frozenset()

    def claim(self) -> bytes:
        """What is said when joining."""
        claim = Claim(self.name, self.started, self.held, sorted(self.promised), self.settings, self.able)
        return msgspec.msgpack.encode(claim)

    def told(self, data: bytes) -> None:
        """The leader's answer; an empty one gives nothing."""
        share = msgspec.msgpack.decode(data, type=Share) if data else Share()
        self.leaving = frozenset(share.leaving)
        self.promised = frozenset(share.promised)

    def assigned(self, partitions: Iterable[int], generation: int) -> tuple[frozenset[int], frozenset[int]]:
        """(new, gone) by an assignment; what stays keeps the generation it came with."""
        now = frozenset(partitions)
        new, gone = now - self.held.keys(), frozenset(self.held.keys() - now)
        self.held = {p: self.held.get(p, generation) for p in now}
        return new, gone

    def let_go(self, partitions: Iterable[int]) -> None:
        """These are finished here."""
        for p in partitions:
            self.held.pop(p, None)
        self.leaving -= frozenset(partitions)
