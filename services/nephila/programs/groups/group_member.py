"""One group as the main process sees it: its partitions, its link, messages that it has not confirmed, its last report.

A message is kept until the group has confirmed it, and is sent again to the next process of the group, in the same
order; after a new division, to the group that has its partition.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import msgspec

from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.pipe import protocol as p
from nephila.kernel.bus.pipe.link import Channel
from nephila.kernel.messages import QuotaUse
from nephila.kernel.topics import OUTLINKS, RECEIPTS, SEEDS, Topic
from nephila.programs.groups.group_deaths import GroupDeaths

OF_PARTITIONS = frozenset({SEEDS, OUTLINKS, RECEIPTS})
"""Topics whose messages go to one group; all others go to every group."""
EMPTY = p.GroupReport(False, 0, 0, 0, 0, None, {}, {}, "", [], 0, (0, ""), [], [], [])

Unconfirmed = tuple[Topic, int, Any, Receipt]


class GroupMember:
    """One group, whether its process runs or not."""

    def __init__(self, number: int, partitions: range) -> None:
        self.number = number
        self.partitions = partitions
        self.deaths = GroupDeaths()
        self.report = msgspec.structs.replace(EMPTY)
        self.jobs: dict[str, p.JobReport] = {}
        """The jobs of the report."""
        self._requests = self._wire_bytes = 0
        self._errors: Counter[str] = Counter()
        self._causes: Counter[str] = Counter()
        self._out_of_scope: Counter[str] = Counter()
        self._redirect_anchors: dict[str, set[str]] = {}
        self._first_fault = ""
        self.link: Channel | None = None
        """None while no process of it is ready."""
        self.quotas_elsewhere: dict[str, QuotaUse] = {}
        """What its process knows of the other groups."""
        self._number = 0
        self._unconfirmed: dict[int, Unconfirmed] = {}

    @property
    def requests(self) -> int:
        """Requests of all processes of the group."""
        return self._requests + self.report.requests

    @property
    def wire_bytes(self) -> int:
        """Bytes that all processes of the group have received."""
        return self._wire_bytes + self.report.wire_bytes

    @property
    def errors(self) -> Counter[str]:
        """Errors of all processes of the group."""
        return self._errors + Counter(self.report.errors)

    @property
    def causes(self) -> Counter[str]:
        """Finer reasons of all processes of the group."""
        return self._causes + Counter(self.report.causes)

    @property
    def first_fault(self) -> str:
        """The first fault in words of all processes of the group; empty: none."""
        return self._first_fault or self.report.first_fault

    def out_of_scope(self, uid: str) -> int:
        """Links of a job that all processes of the group have refused by its scope."""
        job = self.jobs.get(uid)
        return self._out_of_scope[uid] + (job.out_of_scope if job is not None else 0)

    def redirect_anchors(self, uid: str) -> set[str]:
        """Anchors of a job that redirects of seeds have led to in all processes of the group."""
        job = self.jobs.get(uid)
        return self._redirect_anchors.get(uid, set()) | set(job.redirect_anchors if job is not None else ())

    @property
    def idle(self) -> bool:
        """Nothing happens in the group, and nothing is on its way to it."""
        return self.report.idle and not self._unconfirmed and self.link is not None

    def send(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """Send a message; its receipt resolves when the group has confirmed it, or a later process of the group."""
        receipt = Receipt()
        self._put(self._keep((topic, partition, message, receipt)))
        return receipt

    def _keep(self, entry: Unconfirmed) -> int:
        self._number += 1
        self._unconfirmed[self._number] = entry
        return self._number

    def divide(self, partitions: range) -> list[Unconfirmed]:
        """The group has other partitions from now on, and no process; returns the messages for those that it has no
        more, in their order."""
        self.partitions = partitions
        moved = [
            number
            for number, (topic, partition, *_) in self._unconfirmed.items()
            if topic in OF_PARTITIONS and partition not in partitions
        ]
        return [self._unconfirmed.pop(number) for number in moved]

    def take_over(self, entry: Unconfirmed) -> None:
        """A message that another group had not confirmed; it is sent when a process is ready."""
        self._keep(entry)

    def _put(self, number: int) -> None:
        if self.link is not None:
            topic, partition, message, _ = self._unconfirmed[number]
            self.link.send(topic, partition, message).add_done_callback(partial(self._confirmed, number, self.link))

    def _confirmed(self, number: int, link: Channel) -> None:
        if link is self.link:
            self._unconfirmed.pop(number)[3].resolve_one()

    def take(self, report: p.GroupReport) -> None:
        """The group has reported."""
        self.report = report
        self.jobs = {job.uid: job for job in report.jobs}

    def control(self, control: p.Control) -> None:
        """Send a control message, if a process is ready."""
        if self.link is not None:
            self.link.send_control(control)

    def join(self, link: Channel) -> None:
        """A process of the group is ready: send what is not confirmed."""
        self.link = link
        for number in list(self._unconfirmed):
            self._put(number)

    def leave(self) -> None:
        """The process is gone."""
        link, self.link = self.link, None
        if link is not None:
            link.close()
        self.quotas_elsewhere = {}
        self._requests, self._errors, self._causes = self.requests, self.errors, self.causes
        self._wire_bytes, self._first_fault = self.wire_bytes, self.first_fault
        self._out_of_scope = Counter({uid: self.out_of_scope(uid) for uid in self.jobs})
        self._redirect_anchors = {uid: self.redirect_anchors(uid) for uid in self.jobs}
        replace = msgspec.structs.replace
        jobs = [replace(job, out_of_scope=0) for job in self.report.jobs]
        self.take(replace(self.report, idle=False, requests=0, wire_bytes=0, errors={}, causes={}, jobs=jobs))

    @property
    def unconfirmed(self) -> list[Receipt]:
        """Receipts of the messages that no process of the group has confirmed."""
        return [entry[3] for entry in self._unconfirmed.values()]
