"""What a downloader needs from the rest of the system: a late address check, reports of requests sent, membership.

The defaults fit a process that receives all requests: its own slots count every fetch, and no other
process can take over.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from nephila.kernel.messages import FetchRequest

AddressCheck = Callable[[FetchRequest, str, Callable[[bool], None]], None]
"""Arguments: request, address, and a callback that receives whether the fetch may start on that address now."""


class Coordination(msgspec.Struct, frozen=True):
    """Callbacks to the scheduler and to the consumer group; chosen once by the program that builds the downloader."""

    late_address_check: AddressCheck | None = None
    """Called before a paced fetch on an address that the scheduler did not count it on. None: the slots of this
    process see every fetch, so no check is needed."""

    on_sent: Callable[[str, float], None] | None = None
    """Called with a paced address and the monotonic instant at which a request was written to it."""

    plans: bool = False
    """Requests may be published before the instant of their dial."""

    membership_valid: Callable[[], bool] | None = None
    """Called before each dial. False: the requests may belong to another member by now, so no dial starts. None: they
    always belong to this one."""
