"""The latest status and partition reports of one job, from the topics `job-status` and `progress` in their order.

Every scheduler reads all of both topics and computes the same view. A partition's report counts by the epoch of its
owner, the coordinator's status by its version. Of two coordinators that do not know of each other only one can
succeed: the second message with the same version is ignored by every reader, its writer included. Pure.
"""

from __future__ import annotations

import msgspec
from nephila.kernel.messages import JobStatus, PartitionStatus


class JobView:
    """The view of one job."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.status = JobStatus(uid)
        """The coordinator's latest status that counts."""
        self.parts: dict[int, PartitionStatus] = {}
        """Partition → the latest report of its owner."""
        self.accepted = 0
        """Messages that counted and were no mere sign of life."""
        self._granted: dict[int, int] | None = None
        """Partition → granted pages of the present status, once they were asked for."""

    def take_status(self, status: JobStatus) -> bool:
        """The next message of `job-status`; False when it is ignored."""
        if not counts(status, self.status):
            return False
        if _content(status) != _content(self.status):
            self.accepted += 1
        self.status = status
        self._granted = None
        if status.deleted:
            self.parts.clear()
        return True

    def take_part(self, part: PartitionStatus) -> bool:
        """The next report of `progress`; False when the partition has had a later owner. A later generation counts in
        any epoch: after the loss of all topics epochs begin again, and members of before may have sent reports into the
        new topics."""
        part_before = self.parts.get(part.partition)
        if part_before is not None and part.epoch < part_before.epoch and part.generation <= part_before.generation:
            return False
        if self.status.deleted and part.generation <= self.status.generation:
            return False
        if part_before is not None and part_before.start_generation == part.start_generation and not part.confirmed:
            # A new owner starts before it has read the last report of the owner before.
            part = msgspec.structs.replace(part, returned=max(part.returned, part_before.returned))
        self.accepted += 1
        self.parts[part.partition] = part
        return True

    def granted(self, partition: int) -> int:
        """Pages of the budget granted to a partition since the job started. O(1) amortised per status."""
        if self._granted is None:
            self._granted = {grant.partition: grant.pages for grant in self.status.granted}
        return self._granted.get(partition, 0)


def _content(status: JobStatus) -> JobStatus:
    """Everything but version and time."""
    return msgspec.structs.replace(status, version=0, at=0.0)


def counts(status: JobStatus, before: JobStatus) -> bool:
    """Whether a status counts after the one before."""
    return status.version > before.version or not before.version
