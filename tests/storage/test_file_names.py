"""The table of files names those of each output."""

from __future__ import annotations

from nephila.storage.file_names import FILES
from nephila.storage.outputs import FORMATS


def test_each_format_has_its_files() -> None:
    """A format without an entry would leave files of an old crawl in the directory of a new one."""
    assert FILES.keys() == set(FORMATS)
