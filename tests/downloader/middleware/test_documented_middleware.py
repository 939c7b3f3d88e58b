"""The examples of docs/middleware.md run as they are written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from nephila.downloader.middleware.chain import CHAIN
from nephila.testing import load_middleware

PAGE = Path(__file__).parents[3] / "docs" / "middleware.md"


def examples(folder: Path) -> list[str]:
    """Write the examples that are files; return all examples."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    (folder / "middleware").mkdir()
    for text in found:
        name = re.match(r'"""(\w+\.py)"""', text)
        if name is not None:
            (folder / "middleware" / name[1]).write_text(text)
    return found


def test_the_examples_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both files, and the test of one of them; each has some ten lines of code."""
    found = examples(tmp_path)
    assert len(found) == 3
    assert all(sum(bool(line) for line in text.splitlines()) <= 12 for text in found)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("API_TOKEN", "abc")
    token = load_middleware("middleware/token.py")
    assert token.on_request("https://api.example.org/x") == {"X-Token": "abc"}
    assert token.on_request("https://other.example.org/x") == {}
    token.on_outcome("https://api.example.org/x", "failed", reason="timeout")
    names: dict[str, object] = {}
    exec(found[2], names)  # noqa: S102
    names["test_queue_page"]()  # type: ignore[operator]


def test_the_table_has_the_whole_chain() -> None:
    """In its order: one row per entry."""
    rows = re.findall(r"^\| `(\w+\.py)` \|", PAGE.read_text("utf-8"), re.M)
    assert len(rows) == len(CHAIN)
