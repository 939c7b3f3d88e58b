"""Rows that pg_dump saves are in one database."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila.programs.backup import rows

SEVERAL = "postgresql://a@one/rows postgresql://a@two/rows"


def test_rows_on_several_servers_are_refused_in_one_line(tmp_path) -> None:
    for call in (lambda: rows.dump(SEVERAL, tmp_path / "rows"), lambda: rows.restore(SEVERAL, tmp_path / "rows")):
        with pytest.raises(UserError, match=r"the rows are in 2 databases: .*use --without-rows"):
            call()
    assert not (tmp_path / "rows").exists()
