"""The crawl looks whether it is over when the last message to a group has been confirmed."""

from __future__ import annotations

import msgspec
import pytest
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import Outlinks, Seed
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.clock import ManualClock
from nephila.native import seed_links
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


@pytest.fixture
def rig(tmp_path):
    """(groups, the process of their one group, whether they were idle at each look)."""
    clock, looks = ManualClock(), []
    member = GroupMember(0, range(16))
    groups = Groups(
        *(LocalBus(clock), clock, [member], layout_of(16), AddressLimits(0, 0.0), tmp_path),
        *(lambda: looks.append(groups.idle), print),
    )
    link = Link()
    member.join(link)
    member.report = msgspec.structs.replace(member.report, idle=True)
    return groups, link, looks


def packed(*urls: str) -> Outlinks:
    return Outlinks("j", b"", "", 0, *seed_links("\n".join(urls).encode(), 0)[:4])


def test_a_confirmed_seed_between_partitions_may_be_the_end(rig):
    """No delivery of the bus waits for it. The group reports that it is idle before it confirms."""
    groups, link, looks = rig
    for _ in range(2):
        groups.send_seed(3, Seed("j", url="http://a.test/"))
    assert not groups.idle
    link.receipts[0].resolve_one()
    assert looks == []
    link.receipts[1].resolve_one()
    assert looks == [True]


def test_confirmed_seeds_of_a_file_may_be_the_end(rig):
    """As a resume has it, whose seeds are all there."""
    groups, link, looks = rig
    receipt = groups.add_seeds(packed("http://a.test/", "http://b.test/", "http://c.test/"))
    assert len(link.receipts) == 3
    for sent in link.receipts:
        assert (receipt.done, looks) == (False, [])
        sent.resolve_one()
    assert (receipt.done, looks) == (True, [True])
