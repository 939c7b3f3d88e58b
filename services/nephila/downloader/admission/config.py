"""Settings of admission: how much of the memory and CPU of a container requests may use."""

import msgspec

from nephila.kernel.runtime.config import Positive


class AdmissionConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether and how far the memory and CPU of the container limit the requests in flight."""

    enabled: bool = True
    """Take only as many requests as the memory and CPU of the container allow, between 1 and `concurrency`."""

    first_batch: Positive = 5
    """Requests before the size of pages is known, and while CPU is short."""

    memory: float = 0.9
    """Share of the memory limit, above which nothing further is taken. The rest is for peaks of parser and storage."""

    cpu: float = 0.9
    """The same for CPU: of the limit of the container, or of the cores for this process alone without one."""

    loop_s: float = 1.0
    """Delay of the event loop at which nothing further is taken; 10 % below it the limit falls."""

    processes: Positive = 1
    """Downloaders that share the container, such as worker processes; the program sets it."""
