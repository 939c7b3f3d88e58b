"""What was view of one job on `job-status` and `progress`, in the order of the topics.

Every scheduler reads all of it and comes to the same: a partition's word counts by the epoch of who says it, the
coordinator's by its version. Two coordinators that do not know of each other cannot both be heard: the second message
of the same version counts for nothing, for its reader, its writer and everyone who comes later. Pure.
"""

from __future__ import annotations

import msgspec

from nephila.kernel.messages import JobStatus, PartitionStatus


class JobView:
    """One job."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.status = JobStatus(uid)
        """The coordinator's last word that counts."""
        self.parts: dict[int, PartitionStatus] = {}
        """Partition → the last word of its owner."""
        self.accepted = 0
        """Messages that counted."""

    def take_status(self, status: JobStatus) -> bool:
        """The next on the topic; False when it counts for nothing."""
        if not counts(status, self.status):
            return False
        self.accepted += 1
        self.status = status
        if status.deleted:
            self.parts.clear()
        return True

    def take_part(self, part: PartitionStatus) -> bool:
        """The next on the topic; False when its partition has had a later owner."""
        known = self.parts.get(part.partition)
        if known is not None and part.epoch < known.epoch:
            return False
        if self.status.deleted and part.generation <= self.status.generation:
            return False
        if known is not None and known.start_generation == part.start_generation and not part.confirmed:
            # An owner begins before it has read the last word of the one before.
            part = msgspec.structs.replace(part, returned=max(part.returned, known.returned))
        self.accepted += 1
        self.parts[part.partition] = part
        return True

    def granted(self, partition: int) -> int:
        """Places of the page budget that a partition was given since the job began."""
        return next((given.pages for given in self.status.granted if given.partition == partition), 0)


def counts(status: JobStatus, before: JobStatus) -> bool:
    """Whether a status counts for who holds the one before for the last."""
    return status.version > before.version or not before.version
