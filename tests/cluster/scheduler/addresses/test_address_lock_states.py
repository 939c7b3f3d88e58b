"""The lock of one scheduler on one address: every event in every state, and what follows after each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster.scheduler.addresses.address_lock_rig import EVENTS, STATES, Rig, X
from tests.scheduler.expected_states import by_event


def observed(rig: Rig) -> str:
    """Held or not, the queue, what the others have in flight, until when nothing starts; what is sent about X."""
    parts = ["held" if rig.lock.held(X) else "-", rig.claims() or "-"]
    if others := rig.lock.others(X):
        parts.append(f"others={others}")
    if X in rig.here.delayed:
        parts.append(f"delayed={rig.here.delayed[X] - rig.now:g}")
    rig.send()
    for message in rig.sent:
        parts += ["restart"] * message.sync_request
        parts += ["claim"] * message.claims.count(X)
        for one in message.released:
            parts.append(f"release({one.in_flight})" + ("+claim" if one.reclaimed else ""))
        parts += [f"flying={one.count}" for one in message.in_flight]
    return " ".join(parts)


EXPECTED = """
host_waits
    unclaimed  - - claim
    wanted     - - claim
    claiming   - -
    waiting    - BA
    held       held A
    contested  held AB
    releasing  - AB
    released   - AB
no_host_waits
    unclaimed  - -
    wanted     - - claim
    claiming   - -
    waiting    - BA
    held       held A
    contested  held AB release(1)
    releasing  - AB
    released   - AB
fetch_ends
    unclaimed  - -
    wanted     - - claim
    claiming   - -
    waiting    - BA
    held       held A
    contested  held AB
    releasing  - AB
    released   - AB flying=0
turn_ends
    unclaimed  - -
    wanted     - - claim
    claiming   - -
    waiting    - BA
    held       held A
    contested  held AB release(1)+claim
    releasing  - AB
    released   - AB
starts_published
    unclaimed  - -
    wanted     - - claim
    claiming   - -
    waiting    - BA
    held       held A
    contested  held AB
    releasing  - AB release(1)+claim
    released   - AB
own_messages_read
    unclaimed  - -
    wanted     - - claim
    claiming   held A
    waiting    - BA
    held       held A
    contested  held AB
    releasing  - AB
    released   - BA
other_claims
    unclaimed  - B
    wanted     - B claim
    claiming   - B
    waiting    - BA
    held       held AB
    contested  held AB
    releasing  - AB
    released   - AB
other_releases
    unclaimed  - - others=2
    wanted     - - others=2 claim
    claiming   - - others=2
    waiting    held A others=2 delayed=0.4
    held       held A others=2
    contested  held A others=2
    releasing  - A others=2
    released   - A others=2
other_reports_in_flight
    unclaimed  - - others=3
    wanted     - - others=3 claim
    claiming   - - others=3
    waiting    - BA others=3
    held       held A others=3
    contested  held AB others=3
    releasing  - AB others=3
    released   - AB others=3
other_departs
    unclaimed  - -
    wanted     - - claim
    claiming   - -
    waiting    held A delayed=0.25
    held       held A
    contested  held A
    releasing  - A
    released   - A
other_is_silent
    unclaimed  - -
    wanted     held A claim
    claiming   held A
    waiting    held A delayed=0.25
    held       held A
    contested  held A delayed=0.25 release(1)+claim flying=0
    releasing  - A
    released   held A delayed=0.25 flying=0
long_idle
    unclaimed  - -
    wanted     held A claim
    claiming   held A
    waiting    - BA
    held       - - release(0)
    contested  - B release(0)
    releasing  - AB
    released   - BA flying=0
taken_for_departed
    unclaimed  - - restart
    wanted     - - restart
    claiming   - - restart
    waiting    - B restart
    held       - - delayed=0.25 restart
    contested  - B delayed=0.25 restart
    releasing  - B delayed=0.25 restart
    released   - B delayed=0.25 restart
partition_lost
    unclaimed  - -
    wanted     - -
    claiming   - -
    waiting    - BA
    held       held A
    contested  held AB
    releasing  - AB
    released   - AB
"""


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_every_event_in_every_state_of_an_address(event: Callable[[Rig], None]) -> None:
    """The table above is complete: an event in a state has one result."""
    found = {}
    for state in STATES:
        rig = state()
        rig.sent.clear()
        rig.here.delayed.clear()
        event(rig)
        found[state.__name__] = observed(rig)
    assert found == by_event(EXPECTED)[event.__name__]
