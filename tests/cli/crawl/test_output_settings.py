"""Settings of outputs that cannot work are refused before any file is created."""

from __future__ import annotations

import pytest
from nephila.cli.main import main


@pytest.mark.parametrize(
    ("format", "variables", "message"),
    [
        pytest.param(
            "dataset",
            {},
            "the format dataset needs its place: set storage.dataset (NEPHILA_STORAGE__DATASET)",
            marks=pytest.mark.whole,
        ),
        pytest.param(
            "opensearch",
            {},
            "the format opensearch needs a server: set storage.opensearch_url",
            marks=pytest.mark.whole,
        ),
        pytest.param(
            "chunks",
            {"CHUNK_OVERLAP": "5000"},
            "storage.chunk_overlap 5000 is not between 0 and half of",
            marks=pytest.mark.whole,
        ),
        ("sqlite", {"RETENTION": "90d"}, "storage.retention needs a PostgreSQL database; set storage.store"),
    ],
)
def test_no_directory_is_left(tmp_path, capsys, monkeypatch, format, variables, message):
    """One line with the setting and the remedy; the next start begins as the first one did."""
    for name, value in variables.items():
        monkeypatch.setenv(f"NEPHILA_STORAGE__{name}", value)
    assert main(["crawl", "http://127.0.0.1:9/", "--out", str(tmp_path / "out"), "--format", format]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
