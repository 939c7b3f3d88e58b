"""A release: its number in all places, the change log, what is refused."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import nephila
import pytest

from tools import release

ROOT = Path(__file__).parents[2]
HISTORY = ("CHANGELOG.md", "docs/adr/", "benchmarks/", "tests/")
"""Where numbers of earlier releases, of peers and of addresses stand."""


def copy(target: Path) -> Path:
    """The files that have the number."""
    for path in {place.path for place in release.PLACES}:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, target / path)
    return target


def test_the_number_is_the_same_everywhere():
    """That of the package that runs, too."""
    assert set().union(*release.numbers().values()) == {release.version()} == {nephila.__version__}


def test_no_other_file_has_the_number():
    """Else `make release` would leave an earlier one there."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not listed:
        pytest.skip("no git: this copy of the sources is not in this history")
    known = {place.path for place in release.PLACES}
    number = re.compile(rf"(?<![\d.]){re.escape(release.version())}(?![\d.])".encode())
    for name in listed:
        if not name.startswith(HISTORY) and name not in known and (ROOT / name).is_file():
            assert not number.search((ROOT / name).read_bytes()), name


def test_a_new_number_reaches_every_place(tmp_path):
    """And nothing else changes."""
    root = copy(tmp_path)
    release.set_number("12.34.56", root)
    assert set().union(*release.numbers(root).values()) == {"12.34.56"}
    for path in release.numbers(root):
        text = (root / path).read_text()
        assert text.replace("12.34.56", release.version()) == (ROOT / path).read_text()


def test_a_place_that_lost_its_number_is_an_error(tmp_path):
    """Not skipped in silence."""
    root = copy(tmp_path)
    (root / "charts/nephila/Chart.yaml").write_text("version: none\n")
    with pytest.raises(SystemExit, match=r"Chart\.yaml"):
        release.set_number("1.0.0", root)


def test_unreleased_changes_become_the_version():
    """An empty Unreleased stands above for what follows."""
    before = "# Changelog\n\n## Unreleased\n\n- One.\n\n## 0.1.0 - 2026-01-01\n\n- First.\n"
    after = release.released(before, "0.2.0", "2026-02-03")
    assert after.startswith("# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-02-03\n\n- One.\n\n## 0.1.0")
    with pytest.raises(SystemExit, match="Unreleased"):
        release.released(after, "0.3.0", "2026-03-04")


@pytest.mark.parametrize(
    ("number", "tags", "status", "why"),
    [
        ("0.1.0", [], "", None),
        ("0.10.0", ["v0.9.0", "other"], "", None),
        ("0.9.0", ["v0.9.0"], "", "not above"),
        ("0.9.0", ["v0.10.0"], "", "not above"),
        ("1.0", [], "", "X.Y.Z"),
        ("v1.0.0", [], "", "X.Y.Z"),
        ("1.0.0", [], " M README.md\n", "not committed"),
    ],
)
def test_what_is_refused(number, tags, status, why):
    """Numbers are compared part by part."""
    refused = release.refusal(number, tags, status)
    assert refused is None if why is None else why in refused


def test_checksums_are_those_of_sha256sum(tmp_path):
    """Paths are relative; the list does not contain itself."""
    (tmp_path / "sbom").mkdir()
    (tmp_path / "sbom" / "cli.json").write_bytes(b"x")
    (tmp_path / "SHA256SUMS").write_text("old")
    assert release.checksums(tmp_path) == f"{hashlib.sha256(b'x').hexdigest()}  sbom/cli.json\n"
