"""Release of a quarantine: a part of a host that was closed as a trap is opened again by hand."""

from __future__ import annotations

from nephila.scheduler.frontier.frontier import Frontier


def release_quarantine(frontier: Frontier, uid: str, host: str, pattern: str) -> bool:
    """Release for good, with the next commit. False when that part is not closed."""
    job, host_state = frontier.jobs.get(uid), frontier.hosts.find(host)
    closed = host_state.novelty.get(uid) if host_state is not None else None
    released = closed.release(pattern) if closed is not None else None
    if job is None or host_state is None or released is None:
        return False
    host_state.changed = True
    frontier.note_quarantine(job, host_state, released)
    return True
