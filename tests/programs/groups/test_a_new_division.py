"""A new division moves partitions with their messages, grants and dead letters to other groups."""

from __future__ import annotations

import msgspec
import pytest
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.pipe import protocol as p
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import QuotaUse, Seed
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS
from nephila.programs.groups.group_assembly import groups_for
from nephila.programs.groups.group_member import EMPTY, GroupMember
from nephila.programs.groups.members import Groups

from tests.jobs import crawl_job
from tests.programs.groups.test_the_end_of_a_crawl_by_groups import Link

PARTITIONS = 16


class Main(Groups):
    def __init__(self, directory) -> None:
        self.members = [GroupMember(0, range(PARTITIONS))]
        self.bus = LocalBus(ManualClock())
        layout = layout_of(PARTITIONS)
        limits = AddressLimits(0, 0.0)
        super().__init__(self.bus, self.bus.clock, self.members, layout, limits, directory, lambda: None, pytest.fail)

    def divide_into(self, *parts: range) -> list[GroupMember]:
        members = [*self.members, *(GroupMember(n, range(0)) for n in range(len(self.members), len(parts)))]
        self.divide(members, parts)
        return members


class Told(Link):
    """A process of a group that keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[object] = []
        self.controls: list[object] = []

    def send(self, topic, partition, message):
        self.messages.append(message)
        return super().send(topic, partition, message)

    def send_control(self, control) -> None:
        self.controls.append(control)

    def close(self) -> None: ...


def report(**facts) -> p.GroupReport:
    return msgspec.structs.replace(EMPTY, **facts)


def of_job(**facts) -> p.JobReport:
    counts = dict.fromkeys(("generation", "queued", "fetchable", "leased", "claimed", "requested"), 0) | dict.fromkeys(
        ("out_of_scope", "links_held", "links_lost"), 0
    )
    return p.JobReport(
        **{"uid": "j", "ended": {}, "quota": "", "window": "", "redirect_anchors": [], **counts, **facts}
    )


def test_unconfirmed_messages_go_to_the_group_that_has_their_partition_now(tmp_path):
    groups, old = Main(tmp_path), Told()
    groups.members[0].join(old)
    receipts = {n: groups.send_seed(n, Seed("j", url=f"http://a.test/{n}")) for n in (3, 12, 4, 13)}
    groups.lost(groups.members[0])
    first, second = groups.divide_into(range(8), range(8, 16))
    links = Told(), Told()
    for member, link in zip((first, second), links, strict=True):
        member.join(link)
    assert [[seed.url[-2:].strip("/") for seed in link.messages] for link in links] == [["3", "4"], ["12", "13"]]
    assert not any(receipt.done for receipt in receipts.values())
    links[1].receipts[0].resolve_one()
    assert receipts[12].done
    assert not receipts[3].done
    groups.send_seed(9, Seed("j", url="http://a.test/9"))
    assert links[1].messages[-1].url.endswith("/9")


def test_counts_are_those_of_before_until_all_groups_have_reported(tmp_path):
    groups = Main(tmp_path)
    before = of_job(ended={1: 10}, out_of_scope=3, redirect_anchors=["b.test"])
    groups.on_control(groups.members[0], report(requests=7, first_fault="a.test: refused", jobs=[before]))
    groups.lost(groups.members[0])
    first, second = groups.divide_into(range(8), range(8, 16))
    groups.on_control(first, report(jobs=[of_job(ended={1: 4}, out_of_scope=1)]))
    assert sum(groups.ended("j").values()) == 10
    groups.on_control(second, report(jobs=[of_job(ended={1: 6})]))
    groups.divided()
    assert sum(groups.ended("j").values()) == 10
    assert sum(member.requests for member in groups.members) == 7
    assert sum(member.out_of_scope("j") for member in groups.members) == 4
    assert [member.redirect_anchors("j") for member in groups.members] == [{"b.test"}, set()]
    assert [member.first_fault for member in groups.members] == ["a.test: refused", ""]


def test_a_page_budget_is_granted_to_the_groups_that_use_it_now(tmp_path):
    groups = Main(tmp_path)
    groups.start()
    groups.bus.publish(JOBS, 0, crawl_job("j", scope=Scope(max_pages=20)))
    groups.bus.clock.run_due()
    groups.lost(groups.members[0])
    first, second = groups.divide_into(range(8), range(8, 16))
    for member, claimed in ((first, 5), (second, 9)):
        groups.on_control(member, report(jobs=[of_job(claimed=claimed)]))
    groups.divided()
    links = Told(), Told()
    for member, link in zip((first, second), links, strict=True):
        groups.begin(member, link)
    begins = [control for link in links for control in link.controls if isinstance(control, p.Begin)]
    assert [begin.pages for begin in begins] == [{"j": 5}, {"j": 9}]
    assert groups.budgets["j"].free == 6


def test_a_group_knows_what_others_have_spent_of_quotas_before_it_fetches(tmp_path):
    groups = Main(tmp_path)
    first, second = groups.divide_into(range(8), range(8, 16))
    for member, pages in ((first, 5), (second, 9)):
        use = QuotaUse(account="tenant:news", pages=pages)
        groups.on_control(member, report(jobs=[of_job()], uses=[use]))
    groups.divided()
    link = Told()
    groups.begin(first, link)
    (elsewhere, begin) = link.controls
    assert [(use.account, use.pages) for use in elsewhere.uses] == [("tenant:news", 9)]
    assert isinstance(begin, p.Begin)


def test_a_page_that_killed_its_group_stays_a_dead_letter(tmp_path):
    groups = Main(tmp_path)
    keys = [("j", bytes([n]) * 16) for n in range(0, 256, 16)]
    groups.members[0].deaths.poison.update(keys)
    for member in groups.divide_into(range(8), range(8, 16)):
        assert member.deaths.poison == {key for key in keys if groups.layout.of(key[1]) in member.partitions}
    assert sum(len(member.deaths.poison) for member in groups.members) == len(keys)


@pytest.mark.parametrize(
    ("in_flight", "groups", "more"),
    [(1, 1, 1), (8, 1, 1), (9, 1, 2), (16, 2, 2), (17, 2, 4), (40, 1, 5), (500, 1, 15), (500, 15, 15)],
)
def test_groups_come_with_the_load(in_flight, groups, more):
    """One for eight requests in flight, at least twice as many as before, at most 15."""
    assert groups_for(in_flight, groups, 15) == more
