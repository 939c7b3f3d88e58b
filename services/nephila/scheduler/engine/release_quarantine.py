"""A part of a host that was closed for a job as a trap is opened again, because a person says so."""

from __future__ import annotations

from nephila.scheduler.frontier.frontier import Frontier


def release_quarantine(frontier: Frontier, uid: str, host: str, place: str) -> bool:
    """For good; in the next commit. False when it is not closed."""
    job, found = frontier.jobs.get(uid), frontier.hosts.find(host)
    closed = found.novelty.get(uid) if found is not None else None
    released = closed.release(place) if closed is not None else None
    if job is None or found is None or released is None:
        return False
    found.changed = True
    frontier.note_quarantine(job, found, released)
    return True
