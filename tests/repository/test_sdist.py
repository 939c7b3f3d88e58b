"""The archive of sources has what builds the native core; without it an installation would be the slow fallback."""

from __future__ import annotations

import fnmatch
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def included(path: str) -> bool:
    """Whether MANIFEST.in adds the file: the last line that concerns it decides."""
    found = False
    for line in (ROOT / "MANIFEST.in").read_text().splitlines():
        kind, *words = line.split() or ["#"]
        of_folder = kind.startswith("recursive-") and path.startswith(f"{words[0]}/")
        if of_folder and any(fnmatch.fnmatch(path.rpartition("/")[2], pattern) for pattern in words[1:]):
            found = kind == "recursive-include"
    return found


def test_each_source_of_the_core_is_in_the_archive():
    """Tests and fuzz targets of the core are not needed for a build."""
    words = ["git", "ls-files", "services/nephila/native/core"]
    files = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    needed = [one for one in files if "/fuzz/" not in one and "/fetch/tests/" not in one]
    assert len(needed) > 50
    assert [one for one in needed if not included(one)] == []
