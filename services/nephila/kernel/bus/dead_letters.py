"""Builds the dead letter of a message that could not be processed, for all buses. Pure.

It names the URL, the service and the error. Over a broker it also holds the message as a record of its topic, so that
it can be replayed unchanged.
"""

from __future__ import annotations

from typing import Any

from nephila.kernel.messages import DeadLetter
from nephila.kernel.topics import Topic

ERROR_CHARS = 500
UNREADABLE, INTERNAL = "unreadable", "internal"
CLASSES = {
    "TemporaryError": "attempts",
    "PermanentError": "permanent",
    "ChildError": "child",
    "PoisonMessage": "crash",
    UNREADABLE: UNREADABLE,
}
"""Name of an error → reason in the metrics; any other error is `INTERNAL`, a fault of the service."""


def reason_of(error: BaseException | str) -> str:
    """The reason of a dead letter in the metrics, from a bounded set."""
    name = error.partition(":")[0] if isinstance(error, str) else type(error).__name__
    return CLASSES.get(name, INTERNAL)


def no_letters(topic: Topic) -> dict[tuple[str, str], int]:
    """(topic, reason) → 0 for all reasons: Prometheus sees the first letter only where it has seen a 0 before."""
    return dict.fromkeys(((topic.name, reason) for reason in (*CLASSES.values(), INTERNAL)), 0)


def dead_letter_for(
    topic: Topic, service: str, partition: int, message: Any, error: BaseException | str, attempts: int
) -> DeadLetter:
    """The letter of a message, or of bytes that are not a message (None). A bus with bytes fills in `message`."""
    # An error may quote a hostile page: no control characters, no lone surrogates.
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return DeadLetter(
        topic=topic.name,
        service=service,
        error=ascii(text)[1:-1][:ERROR_CHARS],
        attempts=attempts,
        job=_sound(getattr(message, "job", "")),
        url_key=bytes(getattr(message, "url_key", b"")),
        url=_sound(getattr(message, "url", "") or getattr(message, "parent_url", "")),
        partition=partition,
    )


def _sound(text: str) -> str:
    """The text without lone surrogates: the letter must be encodable."""
    return text.encode("utf-8", "replace").decode()
