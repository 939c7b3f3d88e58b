"""Rules of the gateway that refuse a request of a page, and the reason of the fetch where it is the document. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from nephila.kernel.reasons.table import AnyReason, Reason


class Limit(StrEnum):
    """A rule that refuses a request: the label of a metric."""

    PACE = "pace"
    REQUESTS = "requests"
    BYTES = "bytes"
    TIME = "time"
    ENDED = "ended"
    METHOD = "method"
    UPGRADE = "upgrade"
    MEDIA = "media"
    PREFETCH = "prefetch"
    SERVICE_WORKER = "service_worker"


RefusalReason = AnyReason | Limit


def reason_of(refusal: RefusalReason) -> AnyReason:
    """The reason of a fetch whose document was refused."""
    if not isinstance(refusal, Limit):
        return refusal
    match refusal:
        case Limit.TIME | Limit.ENDED | Limit.PACE:
            return Reason.TIMEOUT
        case Limit.BYTES | Limit.REQUESTS:
            return Reason.TOO_LARGE
        case Limit.METHOD | Limit.UPGRADE | Limit.MEDIA | Limit.PREFETCH | Limit.SERVICE_WORKER:
            return Reason.NAVIGATION
    assert_never(refusal)
