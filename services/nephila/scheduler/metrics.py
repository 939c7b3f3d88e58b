"""Figures of the scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from nephila.kernel.metrics import Figure
from nephila.scheduler.service import Scheduler


def _ended(scheduler: Scheduler) -> Mapping[str, float]:
    found: Counter[str] = Counter()
    for job in scheduler.frontier.jobs.values():
        for outcome, count in job.ended.items():
            found[outcome.name.lower()] += count
    return found


FIGURES: tuple[Figure[Scheduler], ...] = (
    Figure(
        "requests_total", "Requests handed out; flat while queued is not: hosts wait.", lambda s: s.requests, rises=True
    ),
    Figure("failures_total", "Fetches that failed, by reason.", lambda s: s.errors, "reason", rises=True),
    Figure("urls_queued", "URLs that wait; a rise: more is found than fetched.", lambda s: s.queued),
    Figure("urls_ended", "URLs that have ended, by outcome; falls when pages are fetched again.", _ended, "outcome"),
    Figure("fetches_in_flight", "Requests without outcome.", lambda s: s.frontier.in_fetch),
    Figure(
        "urls_outstanding", "URLs without receipt; at `window`: storage is the brake.", lambda s: s.frontier.outstanding
    ),
    Figure("hosts", "Hosts known.", lambda s: len(s.frontier.store)),
    Figure("hosts_hot", "Hosts kept as objects.", lambda s: len(s.frontier.hosts.hot)),
    Figure("jobs", "Jobs known.", lambda s: len(s.frontier.jobs)),
    Figure("frontier_log_bytes", "Log since the last snapshot; a restart replays it.", lambda s: s.log.size),
)
