"""What a release wrote is made once."""

from __future__ import annotations

import sys

import pytest

from tests.releases import freeze
from tests.releases.past import DATA, releases


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((releases()[-1].version,), "is frozen already"),
        (("99.0.0", "no-such-commit"), "no commit no-such-commit in this history"),
    ],
)
def test_what_cannot_be_frozen_is_one_line(monkeypatch, capsys, words, line):
    """A version that is there, a commit that is not: exit code 2, and nothing is written."""
    before = sorted(DATA.rglob("*")), (DATA / "RELEASES").read_text()
    monkeypatch.setattr(sys, "argv", ["freeze", *words])
    assert freeze.main() == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert line in told
    assert (sorted(DATA.rglob("*")), (DATA / "RELEASES").read_text()) == before


def test_what_was_kept_is_whole():
    """A row has its directory, with both crawls and the records; no directory is without a row."""
    assert sorted(folder.name for folder in DATA.iterdir() if folder.is_dir()) == sorted(r.version for r in releases())
    for release in releases():
        assert {path.name for path in release.data.iterdir()} == {"crawl.tar.xz", "up.tar.xz", "records.json"}
