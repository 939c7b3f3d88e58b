"""A frontier of the other kind is refused with one line, before anything is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.groups.limits import check_kind


def test_one_process_does_not_continue_a_divided_frontier():
    with pytest.raises(UsageError, match="add --groups"):
        check_kind(Path("o"), has_parts=True, groups=False)
    for has_parts in (True, False):
        check_kind(Path("o"), has_parts=has_parts, groups=True)
