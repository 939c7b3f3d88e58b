"""What the table of extensions names is there."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.extensions import EXTENSIONS, extension


@pytest.mark.parametrize("name", EXTENSIONS)
def test_each_row_can_be_loaded(name: str) -> None:
    assert extension(name) is not None
