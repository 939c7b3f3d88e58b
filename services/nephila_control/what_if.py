"""The operation on frequencies replays a recorded history of recrawls with other ones. It reads the rows in a
thread."""

from __future__ import annotations

import asyncio
from typing import Final

from nephila.kernel.documents.field_types import seconds
from nephila.kernel.runtime.errors import UserError
from nephila.storage.source import Source
from nephila_harvest.what_if.compare import compare
from nephila_harvest.what_if.replay import Outcomes

from nephila_control import audit_types, job_view
from nephila_control.part import OperationPart
from nephila_control.stored_rows import there

MAX_PAGES: Final = 1_000
MAX_FETCHES: Final = 100_000
"""Of one scenario: a second of CPU in the process that serves the API."""


class WhatIfOperations(OperationPart):
    async def compare_frequencies(self, request: audit_types.CompareFrequencies) -> audit_types.FrequenciesCompared:
        return await asyncio.to_thread(compared, self._backend.rows, request)


def compared(source: Source | None, request: audit_types.CompareFrequencies) -> audit_types.FrequenciesCompared:
    database = there(source)
    if not job_view.is_there(database):
        raise UserError("there are no rows to replay yet")
    result = compare(database, request.job, request.scenarios, seconds(request.within), MAX_PAGES, MAX_FETCHES)
    outcomes = [_outcome(outcome) for outcome in result.outcomes]
    return audit_types.FrequenciesCompared(pages=result.pages, of=result.of, days=result.days, outcomes=outcomes)


def _outcome(outcome: Outcomes) -> audit_types.FrequencyOutcome:
    values = outcome._asdict()
    return audit_types.FrequencyOutcome(found_in_time=audit_types.precision_of(values.pop("within")), **values)
