"""Changes of a host's pace by a person: fetch again now, pause, or leave more time between two requests.

A person cannot make a host faster than its policies: robots.txt, Crawl-delay and the delay of the jobs always hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, get_args

from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.host_state import Host

HostAction = Literal["retry", "pause", "delay"]
"""retry: end the pause and the back-off; the host waits for its delay at most. pause: dispatch nothing for so many
seconds. delay: leave at least so many seconds between two requests; 0 restores the delay of the jobs."""
MAX_PAUSE_S: Final = 30 * 86_400.0
MAX_DELAY_S: Final = 86_400.0
LIMITS: Final[dict[HostAction, float]] = {"retry": 0.0, "pause": MAX_PAUSE_S, "delay": MAX_DELAY_S}
"""Action → the most seconds it takes."""


def is_host_action(action: str, seconds: float) -> bool:
    """Whether a message from another program names an action with seconds that it takes."""
    return action in get_args(HostAction) and 0.0 <= seconds <= LIMITS[action]  # type: ignore[index]


def change_host_pace(frontier: Frontier, key: str, action: HostAction, seconds: float) -> bool:
    """Change the pace with the next commit. False for a host that the frontier does not have."""
    host = frontier.hosts.find(key)
    if host is None:
        return False
    _ACTIONS[action](frontier, host, seconds)
    frontier.log_host(host)
    frontier.readiness.reschedule(host, sooner=True)
    return True


def _retry(frontier: Frontier, host: Host, seconds: float) -> None:
    host.pace.free(frontier.time.now, frontier.hosts.delay_s(host, None))
    frontier.hosts.note_answer(host.key)


def _pause(frontier: Frontier, host: Host, seconds: float) -> None:
    host.pace.hold(frontier.time.now, seconds, frontier.hosts.delay_s(host, None))


def _delay(frontier: Frontier, host: Host, seconds: float) -> None:
    host.pace.least_delay_s = seconds


_ACTIONS: Final[dict[HostAction, Callable[[Frontier, Host, float], None]]] = {
    "retry": _retry,
    "pause": _pause,
    "delay": _delay,
}
