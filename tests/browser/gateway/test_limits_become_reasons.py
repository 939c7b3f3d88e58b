"""A document that the gateway refuses ends with a reason of the table, never with the name of a limit."""

from __future__ import annotations

import pytest
from nephila.kernel.reasons.status_words import status_reason
from nephila.kernel.reasons.table import Reason, row_of
from nephila_browser.gateway.limit import Limit, reason_of


@pytest.mark.parametrize("limit", Limit, ids=str)
def test_each_limit_has_a_reason(limit: Limit) -> None:
    reason = reason_of(limit)
    assert isinstance(reason, Reason)
    assert row_of(reason).ends is not None


@pytest.mark.parametrize(
    ("limit", "reason"),
    [(Limit.TIME, "timeout"), (Limit.BYTES, "too_large"), (Limit.REQUESTS, "too_large"), (Limit.MEDIA, "navigation")],
)
def test_limits_in_the_words_of_a_fetch(limit: Limit, reason: str) -> None:
    assert reason_of(limit) == reason


@pytest.mark.parametrize("reason", [Reason.DNS, Reason.ROBOTS, status_reason(503)])
def test_a_reason_stays_as_it_is(reason: Reason) -> None:
    assert reason_of(reason) is reason
