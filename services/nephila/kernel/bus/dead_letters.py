"""A message that nobody could digest becomes a dead letter: put together here, for all buses. Pure.

It names the URL, who failed and how, and over a broker it holds the message itself as a record of its topic, so that it
can be published again as it was.
"""

from __future__ import annotations

from typing import Any

from nephila.kernel.messages import DeadLetter
from nephila.kernel.topics import Topic

ERROR_CHARS = 500


def dead_letter_for(
    topic: Topic, service: str, partition: int, message: Any, error: BaseException | str, attempts: int
) -> DeadLetter:
    """The letter for a message, or for what could not be read as one (None); `message` is filled in by a bus that has
    bytes."""
    # What an error quotes may come from a hostile page: no control characters, no lone surrogates.
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
    """The letter must travel, though half a character may be what the message could not be digested for."""
    return text.encode("utf-8", "replace").decode()
