"""A frontier of the other kind is refused with one line, before anything is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.groups.limits import check_kind


@pytest.mark.parametrize(("has_parts", "remedy"), [(True, "add --groups"), (False, "leave --groups out")])
def test_a_frontier_of_the_other_kind_is_not_continued(has_parts, remedy):
    with pytest.raises(UsageError, match=remedy):
        check_kind(Path("o"), has_parts=has_parts, groups=not has_parts)
    check_kind(Path("o"), has_parts=has_parts, groups=has_parts)
