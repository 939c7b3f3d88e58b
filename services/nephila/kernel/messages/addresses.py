"""Generated from proto/nephila/v1/addresses.proto by tools/protogen.py; do not edit."""

from __future__ import annotations

import msgspec



class AddressAnnouncement(msgspec.Struct, array_like=True, gc=False):
    """What a scheduler says of server addresses. Topic `addresses`, read whole and in its order by all
    schedulers: whoever claimed an address first and has not passed it on may fetch there.
    """

    # Name of the scheduler.
    member: str = ""
    # Another number each time that it begins anew.
    incarnation: int = 0
    # It has just begun: everybody says what they own, claim and have in flight.
    sync_request: bool = False
    # Partitions that are its, from now on or still.
    partitions: list[PartitionOwned] = msgspec.field(default_factory=list)
    # Addresses that it wants to fetch from, or does.
    claims: list[str] = msgspec.field(default_factory=list)
    released: list[AddressReleased] = msgspec.field(default_factory=list)
    # Fetches in flight on addresses that others may have by now.
    in_flight: list[AddressInFlight] = msgspec.field(default_factory=list)


class PartitionOwned(msgspec.Struct, array_like=True, gc=False):
    """"""

    partition: int = 0
    epoch: int = 0


class AddressReleased(msgspec.Struct, array_like=True, gc=False):
    """An address goes to whoever claimed it next."""

    address: str = ""
    # Seconds from now until the gap after the last start is over.
    wait_s: float = 0.0
    # It is claimed again, behind the others.
    reclaimed: bool = False
    # Fetches that are still in flight there.
    in_flight: int = 0


class AddressInFlight(msgspec.Struct, array_like=True, gc=False):
    """"""

    address: str = ""
    count: int = 0
