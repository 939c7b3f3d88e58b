"""Generated from proto/nephila/v1/addresses.proto by tools/protogen.py; do not edit."""

import msgspec



class PartitionOwned(msgspec.Struct, array_like=True, gc=False):
    """"""

    partition: int = 0
    epoch: int = 0


class AddressReleased(msgspec.Struct, array_like=True, gc=False):
    """The address passes to the next claimant."""

    address: str = ""
    # Seconds from now until the gap after the last start is over.
    wait_s: float = 0.0
    # The sender claims it again, behind the others.
    reclaimed: bool = False
    # Its fetches that are still in flight there.
    in_flight: int = 0


class AddressInFlight(msgspec.Struct, array_like=True, gc=False):
    """"""

    address: str = ""
    count: int = 0


class AddressAnnouncement(msgspec.Struct, array_like=True, gc=False):
    """Claims of a scheduler on server addresses. Topic `addresses`, read completely and in order by all
    schedulers: the first claimant of an address may fetch from it until it releases it.
    """

    # Name of the scheduler.
    member: str = ""
    # Changes each time that it restarts its claims.
    incarnation: int = 0
    # It has just started: all schedulers announce their partitions, claims and fetches in flight.
    sync_request: bool = False
    # Partitions that it owns.
    partitions: list[PartitionOwned] = msgspec.field(default_factory=list)
    # Addresses that it fetches from or wants to fetch from.
    claims: list[str] = msgspec.field(default_factory=list)
    released: list[AddressReleased] = msgspec.field(default_factory=list)
    # Its fetches in flight on addresses that others may hold.
    in_flight: list[AddressInFlight] = msgspec.field(default_factory=list)
