"""The ring as an assignor of aiokafka's consumer groups: membership.py in terms of Kafka's group protocol.

aiokafka expects a class with class methods: `assignor_for` creates one per member and group. All topics of a group
share the partition numbers: partition p of each topic belongs to the same member.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from nephila_cluster.kafka.group.membership import Claim, Membership, plan

_claims = msgspec.msgpack.Decoder(Claim)


def assignor_for(membership: Membership) -> type[AbstractPartitionAssignor]:
    """The assignor class of one member."""

    class RingAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
        """The assignor of one member."""

        name = "nephila-ring"
        version = 0

        @classmethod
        def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
            """Called before every join."""
            return ConsumerProtocolMemberMetadata(cls.version, sorted(topics), membership.claim())

        @classmethod
        def assign(cls, cluster: Any, members: Mapping[str, Any]) -> dict[str, ConsumerProtocolMemberAssignment]:
            """Called at the leader."""
            topics = {topic for member in members.values() for topic in member.subscription}
            counts = {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in topics}
            claims = {member_id: _claim(member_id, member.user_data) for member_id, member in members.items()}
            shares = plan(claims, max(counts.values(), default=0) or 1)
            result = {}
            for member_id, member in members.items():
                share = shares[member_id]
                assignment = [(t, [p for p in share.partitions if p < counts[t]]) for t in sorted(member.subscription)]
                data = msgspec.msgpack.encode(share)
                result[member_id] = ConsumerProtocolMemberAssignment(cls.version, assignment, data)
            return result

        @classmethod
        def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
            """The leader's answer, before the consumer gets its partitions."""
            membership.on_share(assignment.user_data)

    return RingAssignor


def _claim(member: str, data: bytes) -> Claim:
    """A member with an unreadable claim is known by its id and holds nothing."""
    try:
        return _claims.decode(data or b"")
    except msgspec.DecodeError:
        return Claim(member)
