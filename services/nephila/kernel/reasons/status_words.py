"""Reasons by status: `http_404`, an answer that is no page, and `tunnel_403`, a CONNECT that a proxy refused.

A status is a number that a peer chooses: a member of `Reason` for each would be a table of 1,000 rows.
"""

from __future__ import annotations

import http
from typing import NewType

from nephila.kernel.messages import Outcome
from nephila.kernel.reasons.row import ListVerdict, Pause, Retry, Row

StatusReason = NewType("StatusReason", str)
"""A reason of one of the two families."""

_HTTP, _TUNNEL = "http_", "tunnel_"


def status_reason(status: int) -> StatusReason:
    """The reason of a response with a status that is no page, as http_404."""
    return StatusReason(f"{_HTTP}{status}")


def tunnel_reason(status: int) -> StatusReason:
    """The reason of a CONNECT that a proxy refused with a status, as tunnel_403."""
    return StatusReason(f"{_TUNNEL}{status}")


def status_of(word: str) -> int:
    """The status of http_404; 0 for all other words."""
    return _number(word, _HTTP)


def tunnel_status_of(word: str) -> int:
    """The status of tunnel_403; 0 for all other words."""
    return _number(word, _TUNNEL)


def row_of_status_word(word: str) -> Row | None:
    """What follows from the word; None for a word of neither family."""
    if status := status_of(word):
        return _row_of_status(status)
    if status := tunnel_status_of(word):
        return Row(Outcome.FAILED, f"its proxy refuses CONNECT by status {status}")
    return None


def _row_of_status(status: int) -> Row:
    verdict = ListVerdict.HTTP_ERROR
    if status in (404, 410):
        verdict = ListVerdict.NOT_FOUND
    elif 500 <= status < 600:
        verdict = ListVerdict.SERVER_ERROR
    retry = Retry.TRIES if status == 429 or 500 <= status < 600 else Retry.NEVER
    pause = {429: Pause.REFUSAL, 503: Pause.PASSING}.get(status, Pause.NONE)
    return Row(
        Outcome.FAILED, f"the server answered {status}{_phrase(status)}", verdict=verdict, retry=retry, pause=pause
    )


def _number(word: str, family: str) -> int:
    digits = word.removeprefix(family)
    is_number = digits != word and len(digits) == 3 and digits.isascii() and digits.isdecimal()
    return int(digits) if is_number else 0


def _phrase(status: int) -> str:
    try:
        return f" ({http.HTTPStatus(status).phrase.lower()})"
    except ValueError:
        return ""
