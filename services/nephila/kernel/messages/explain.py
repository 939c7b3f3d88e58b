"""Generated from proto/nephila/v1/explain.proto by tools/protogen.py; do not edit."""

import msgspec

from nephila.kernel.messages.frontier import Quarantine


class ExplainQuery(msgspec.Struct, array_like=True, gc=False):
    """Why was this URL (not) crawled? Topic `explain-queries` (compacted by slot), read by the owner of the
    URL's partition.
    """

    # The partition in digits, so that compaction keeps one query per partition.
    slot: str = ""
    # Repeated in the answer.
    id: str = ""
    url: str = ""
    # Only for this job; empty: for the job with the most data about the URL.
    job: str = ""
    # Seconds since 1970 UTC after which the query is void.
    deadline: float = 0.0
    # The system's name in commands: a broker's HOST:PORT.
    system: str = ""
    # A quarantined part of the URL's host to release for the job; empty: nothing is changed.
    release: str = ""
    # Instead list the quarantines of the job in all partitions of each scheduler; slot and url are not used.
    list_quarantines: bool = False
    # Instead forget these URLs of the job, all of the partition of url.
    forget: list[str] = msgspec.field(default_factory=list)
    # How they had ended, an Outcome each; empty: not known.
    forget_outcomes: bytes = b""
    # Instead count the queued URLs of the job that these expressions would exclude, in all partitions of each
    # scheduler; slot and url are not used.
    try_exclude: list[str] = msgspec.field(default_factory=list)
    # Instead change the pace of the URL's host: retry, pause or delay; empty: nothing is changed. The job is
    # not used.
    host_action: str = ""
    # Length of the pause, or the delay.
    host_seconds: float = 0.0
    # Instead list hosts: a HostQuery as JSON. Without url they are those of all partitions of each scheduler,
    # with url that host alone. The job is not used.
    list_hosts: bytes = b""


class ExplainAnswer(msgspec.Struct, array_like=True, gc=False):
    """Topic `explain-answers` (compacted by slot)."""

    slot: str = ""
    id: str = ""
    # The output of `nephila explain --json`; empty when there is an error.
    explanation: bytes = b""
    # One line for people: why there is no explanation.
    error: str = ""
    # The query is wrong (exit code 2).
    usage_error: bool = False
    # The part is released, the URLs are forgotten or the host is changed, and that is in the log.
    released: bool = False
    # The partitions of these quarantines, counts or hosts.
    partitions: list[int] = msgspec.field(default_factory=list)
    quarantines: list[Quarantine] = msgspec.field(default_factory=list)
    # URLs that are forgotten, that are queued or in flight and stay, and that the job does not know.
    forgotten: int = 0
    open: int = 0
    unknown: int = 0
    # Queued URLs of the job in these partitions, how many of them were looked at, and how many would be
    # excluded.
    queued: int = 0
    looked_at: int = 0
    removed: int = 0
    # Some of those that would be excluded.
    examples: list[str] = msgspec.field(default_factory=list)
    # All of them were looked at.
    complete: bool = False
    # HostRows of these partitions as JSON.
    hosts: bytes = b""
