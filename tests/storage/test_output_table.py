"""The table of outputs, what makes each of them, and the names in a job document are the same."""

from __future__ import annotations

from typing import get_args

from nephila.kernel.documents.job_schema import Sink
from nephila.kernel.outputs import OUTPUTS
from nephila.storage.outputs import FORMATS, LEDGERS


def test_each_format_has_its_row() -> None:
    """A format without a row would leave files of an old crawl in the directory of a new one."""
    assert OUTPUTS.keys() == set(FORMATS) == set(get_args(Sink))
    assert {name for name, row in OUTPUTS.items() if row.is_database} == set(LEDGERS)
