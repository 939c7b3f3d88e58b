"""A bit flipped in any file of a killed crawl: refused or recovered, never silently less. `make flips`: 200 places."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila.programs.output_directory import OutputDirectory, RunFile

from tests.e2e import flips


def test_a_flipped_bit_in_each_file_is_refused_or_recovered():
    """One place of each file; every kind of file is there."""
    tally = flips.run(1)
    assert not tally.faults
    names = {name.rsplit(".", 1)[-1] for name, _ in tally.ends}
    assert names == {"log", "snapshot", "hosts", "run", "gz", "db", "db-wal", "jsonl", "json"}
    assert tally.ends["run.json", "refused"] == 1


def test_an_edited_run_json_says_what_to_do(tmp_path):
    """Its checksum may be removed."""
    directory = OutputDirectory(tmp_path)
    directory.write(RunFile(seeds=["http://a.test/"], options={"max_pages": 0}))
    assert directory.read() is not None
    text = directory.run_file.read_text()
    directory.run_file.write_text(text.replace('"max_pages": 0', '"max_pages": 8'))
    with pytest.raises(UserError, match='remove its line "check"'):
        directory.read()
    lines = [line for line in directory.run_file.read_text().splitlines() if '"check"' not in line]
    directory.run_file.write_text("\n".join(lines))
    run = directory.read()
    assert run is not None
    assert run.options == {"max_pages": 8}
