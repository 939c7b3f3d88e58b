"""Generated from proto/nephila/v1/members.proto by tools/protogen.py; do not edit."""

from enum import IntEnum

import msgspec



class MemberState(IntEnum):
    """State of a member. A member without a new status for three intervals has gone without a word."""

    UNSPECIFIED = 0
    READY = 1
    NOT_READY = 2
    DRAINING = 3
    ENDED = 4


class StoreState(IntEnum):
    """State of the store that rows are written to."""

    UNSPECIFIED = 0
    WORKING = 1
    SLOW = 2
    AWAY = 3
    FAILED = 4


class RefusingHost(msgspec.Struct, array_like=True, gc=False):
    """A host that refuses every request."""

    host: str = ""
    # First refusal without an answer since, in seconds since 1970 UTC.
    since: float = 0.0
    queued: int = 0


class StoreStatus(msgspec.Struct, array_like=True, gc=False):
    """Where the rows are written to, and how that goes."""

    # Path of nephila.db, or the database without password.
    place: str = ""
    state: StoreState = StoreState.UNSPECIFIED
    # Begin of the state, in seconds since 1970 UTC; 0 while it works.
    since: float = 0.0
    # One line; empty while it works.
    cause: str = ""
    # Rows received and not durable.
    rows_waiting: int = 0
    # Last flush that made rows durable, in seconds since 1970 UTC; 0: none since the start.
    flushed_at: float = 0.0
    # The most rows of the next flush.
    batch_rows: int = 0
    # The server refuses the login: the password has to be replaced.
    login_refused: bool = False


class MemberRate(msgspec.Struct, array_like=True, gc=False):
    """How fast one counter of a service rises."""

    # As in its metrics, without prefix and _total.
    name: str = ""
    per_s: float = 0.0


class MemberStatus(msgspec.Struct, array_like=True, gc=False):
    """How one member of a service is doing. Topic `members` (compacted by id), published by the member itself."""

    # service/member.
    id: str = ""
    # scheduler, downloader, parser or storage.
    service: str = ""
    # Name of the member, its own within the service.
    member: str = ""
    # Name of its machine.
    host: str = ""
    version: str = ""
    state: MemberState = MemberState.UNSPECIFIED
    # One line; empty while it is ready.
    problem: str = ""
    # Start of the process, in seconds since 1970 UTC.
    started_at: float = 0.0
    # Time of this status, in seconds since 1970 UTC.
    at: float = 0.0
    # Seconds until the next status.
    interval_s: float = 0.0
    # Partitions that it owns in the group of its service.
    partitions: list[int] = msgspec.field(default_factory=list)
    # Messages delivered to it and not acked.
    in_flight: int = 0
    # CPU time per second since the last status; 1 is a whole core.
    cpu: float = 0.0
    # Resident memory.
    memory_bytes: int = 0
    # Counters of the service, per second since the last status.
    rates: list[MemberRate] = msgspec.field(default_factory=list)
    # Of a downloader: concurrent fetches that memory and CPU of its container allow; 0: not limited.
    admitted: int = 0
    # Resource that keeps admitted below the configured concurrency: memory, cpu, loop, pressure; empty: none.
    bound_by: str = ""
    # ADDRESS:PORT of its metrics and probes; empty without such a port.
    address: str = ""
    # Pages since its start: fetched, parsed or stored, by its service.
    pages: int = 0
    # Bytes that a downloader has received from servers since its start.
    bytes: int = 0
    # Of storage: the file or server of the rows.
    store: StoreStatus | None = None
    # Of a member with a directory: free space and size of its disk; size 0: it has none.
    disk_free_bytes: int = 0
    disk_size_bytes: int = 0
    # Of a scheduler: hosts that have refused every request for five minutes while URLs are queued; at most
    # twenty.
    refusing_hosts: list[RefusingHost] = msgspec.field(default_factory=list)
