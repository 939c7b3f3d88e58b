"""The end of a job is uncertain, so the estimate is a range from the job's own speed, or the reason why there is none.
Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from nephila_control.job_types import Job
from nephila_control.screen_types import Sample

from nephila_console.figures import count, span
from nephila_console.messages import translate as _
from nephila_console.words import rate

MIN_S: Final = 10.0
"""Below this length of observation nothing is said."""


class _Speed(NamedTuple):
    ended: float
    """Ended URLs per second."""
    growth: float
    """Queued URLs per second; below zero the queue shrinks."""
    stored: float


def estimate(job: Job, samples: Sequence[Sample], limit: int) -> str:
    """Writes one sentence. `limit` is the number of pages that the job may store; 0 is no limit. The range lies between
    the speed of the whole observation and that of its last quarter."""
    if job.state in ("paused", "idle", "limit", "quota", "window", "new"):
        return {
            "paused": _("Paused: it ends after it is resumed."),
            "idle": _("Done: every URL that was found has ended."),
            "limit": _("Done: its budget is spent."),
            "quota": _("It waits for its quota."),
            "window": _("It waits for its window."),
            "new": _("It has not started yet."),
        }[job.state]
    if len(samples) < 3 or samples[-1].at - samples[0].at < MIN_S:
        return _("Too early for an estimate.")
    speeds = [_speed(samples), _speed(samples[-max(len(samples) // 4, 2) :])]
    if limit:
        left = max(limit - job.stored, 0)
        waits = [left / speed.stored for speed in speeds if speed.stored > 0]
        if len(waits) == 2:
            words = {"count": count(left), "limit": count(limit), "span": _range(waits)}
            return _("%(count)s of %(limit)s pages are left: about %(span)s, if it finds that many.") % words
    if any(speed.ended <= 0 for speed in speeds):
        return _("Nothing has ended lately: there is no estimate.")
    if speeds[1].growth >= 0:
        growth = {"growth": rate(speeds[1].growth), "ended": rate(speeds[1].ended)}
        return _("No end in sight: the queue grows by %(growth)s URLs/s while %(ended)s/s end.") % growth
    waits = [job.queued / -speed.growth for speed in speeds if speed.growth < 0]
    # Without new links the queue would end by the plain speed: the earliest end.
    waits.append(job.queued / speeds[1].ended)
    return _("The queue shrinks: done in about %(span)s, if it finds no new part of the site.") % {
        "span": _range(waits)
    }


def _speed(samples: Sequence[Sample]) -> _Speed:
    first, last = samples[0], samples[-1]
    length = max(last.at - first.at, 1e-3)
    ended = [sample.stored + sample.denied + sample.failed + sample.dropped for sample in (first, last)]
    return _Speed(
        (ended[1] - ended[0]) / length, (last.queued - first.queued) / length, (last.stored - first.stored) / length
    )


def _range(waits: Sequence[float]) -> str:
    low, high = span(min(waits)), span(max(waits))
    return low if low == high else f"{low} – {high}"
