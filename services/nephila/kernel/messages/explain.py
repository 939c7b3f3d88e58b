"""Generated from proto/nephila/v1/explain.proto by tools/protogen.py; do not edit."""

from __future__ import annotations

import msgspec

from nephila.kernel.messages.frontier import Quarantine


class ExplainQuery(msgspec.Struct, array_like=True, gc=False):
    """Why was this URL (not) crawled? Topic `explain-queries` (compacted by slot), to the scheduler that has the
    URL's partition.
    """

    # The partition in digits, so that no more than one question of each is kept.
    slot: str = ""
    # By which its asker knows the answer.
    id: str = ""
    url: str = ""
    # Of this job only; empty: of the one that knows the URL best.
    job: str = ""
    # Seconds since 1970 UTC after which nobody waits any more.
    deadline: float = 0.0
    # How commands name the system: a broker's HOST:PORT.
    system: str = ""
    # A part of the URL's host that the job is to fetch from again, though it was closed as a trap; empty:
    # nothing is changed.
    release: str = ""
    # Instead: the quarantines of the job in all partitions of each scheduler; slot and url name nothing then.
    list_quarantines: bool = False


class ExplainAnswer(msgspec.Struct, array_like=True, gc=False):
    """Topic `explain-answers` (compacted by slot)."""

    slot: str = ""
    id: str = ""
    # What `nephila explain --json` prints; empty when there is an error.
    explanation: bytes = b""
    # One line for people: why there is no explanation.
    error: str = ""
    # The question is wrong, not the crawl.
    usage_error: bool = False
    # It is open again, and that is in the log.
    released: bool = False
    # The partitions that these quarantines are of.
    partitions: list[int] = msgspec.field(default_factory=list)
    quarantines: list[Quarantine] = msgspec.field(default_factory=list)
