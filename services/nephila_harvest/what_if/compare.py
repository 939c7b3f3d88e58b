"""Scenarios beside each other: those that a person names, and what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from nephila.kernel.runtime.errors import UserError
from nephila.storage.ledgers.read_connection import open_for_reading
from nephila.storage.source import Source, display_name

from nephila_harvest.what_if.history import MAX_PAGES, histories
from nephila_harvest.what_if.replay import MAX_FETCHES, RECORDED, Outcomes, replay, scenario

MAX_SCENARIOS: Final = 10


class Comparison(NamedTuple):
    """Outcomes of all scenarios over the same pages."""

    pages: int
    """Pages that were replayed; requests are theirs."""
    of: int
    """Pages with a history."""
    days: float
    outcomes: list[Outcomes]
    """The recorded history first."""


def compare(
    source: Source,
    job: str,
    scenarios: Sequence[str],
    within_s: float,
    most: int = MAX_PAGES,
    most_fetches: int = MAX_FETCHES,
) -> Comparison:
    """Replay each scenario. Raises `UserError` where no page was fetched twice, `UsageError` for no scenario."""
    parsed = [scenario(text) for text in (RECORDED, *(text for text in scenarios if text != RECORDED))]
    with open_for_reading(source) as rows:
        pages, count = histories(rows, job, most)
    if not pages:
        raise UserError(f"{display_name(source)} has no page that was fetched twice; there is nothing to replay")
    until = max(page.fetches[-1] for page in pages)
    days = (until - min(page.fetches[0] for page in pages)) / 86_400
    return Comparison(
        len(pages), count, days, [replay(pages, replayed, until, within_s, most_fetches) for replayed in parsed]
    )
