"""The crawl looks whether it is over when the last message to a group has been confirmed."""

from __future__ import annotations

import msgspec
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import Seed
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.clock import ManualClock
from nephila.programs.groups.group_member import GroupMember
from nephila.programs.groups.members import Groups


class Link:
    """A process of a group that confirms when it is told to."""

    def __init__(self) -> None:
        self.receipts: list[Receipt] = []

    def send(self, topic, partition, message) -> Receipt:
        self.receipts.append(Receipt())
        return self.receipts[-1]

    def send_control(self, control) -> None: ...


def test_a_confirmed_seed_between_partitions_may_be_the_end(tmp_path):
    """No delivery of the bus waits for it. The group reports that it is idle before it confirms."""
    clock, looks = ManualClock(), []
    member = GroupMember(0, range(16))
    bus = LocalBus(clock)
    groups = Groups(
        bus, clock, [member], layout_of(16), AddressLimits(0, 0.0), tmp_path, lambda: looks.append(groups.idle), print
    )
    link = Link()
    member.join(link)
    member.report = msgspec.structs.replace(member.report, idle=True)
    for _ in range(2):
        groups.send_seed(3, Seed("j", url="http://a.test/"))
    assert not groups.idle
    link.receipts[0].resolve_one()
    assert looks == []
    link.receipts[1].resolve_one()
    assert looks == [True]
