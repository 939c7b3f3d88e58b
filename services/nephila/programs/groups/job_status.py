"""The status of a job by the reports of the groups: what the coordinator of a job publishes over Kafka. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nephila.kernel.bus.pipe.protocol import JobReport
from nephila.kernel.messages import JobStatus, Outcome


def job_status(uid: str, reports: Sequence[JobReport], max_pages: int) -> JobStatus:
    """`max_pages`: the page budget of the job, 0 without one."""
    ended: Counter[Outcome] = Counter()
    for report in reports:
        ended.update(report.ended)
    queued = sum(report.queued for report in reports)
    quota = max((report.quota for report in reports), default="")
    window = max((report.window for report in reports), default="")
    done = not any(report.fetchable or report.leased for report in reports)
    spent = bool(max_pages) and ended[Outcome.STORED] >= max_pages
    return JobStatus(
        uid,
        min((report.generation for report in reports), default=0),
        queued=queued,
        in_flight=sum(report.leased for report in reports),
        stored=ended[Outcome.STORED],
        denied=ended[Outcome.DENIED],
        failed=ended[Outcome.FAILED],
        dropped=ended[Outcome.DROPPED],
        done=done,
        spent=spent or bool(done and queued and not quota and not window),
        quota=quota,
        window=window,
        links_held=sum(report.links_held for report in reports),
        links_lost=sum(report.links_lost for report in reports),
    )


def counts_of(status: JobStatus) -> tuple[int, ...]:
    """URLs that are queued, in flight, stored, denied, failed and dropped."""
    return status.queued, status.in_flight, status.stored, status.denied, status.failed, status.dropped
