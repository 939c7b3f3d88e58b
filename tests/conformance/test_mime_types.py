"""Content-Type against the Web Platform Tests' vectors, written and generated (mimesniff, "parse a MIME type")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import webencodings
from nephila.kernel.pages import mime

pytestmark = pytest.mark.conformance

FILES = {"mime-types.json": 60, "generated-mime-types.json": 800}
"""File: cases there are at least."""


def cases(data: Path, name: str) -> list[dict[str, Any]]:
    """The cases of a file, without its headings."""
    found = json.loads((data / "idna-mime" / "data-url" / "tests" / name).read_text("utf-8"))
    return [case for case in found if isinstance(case, dict)]


@pytest.mark.parametrize("name", FILES)
def test_parsing(conformance_data: Path, name: str) -> None:
    """Every case parses to what the standard says, or to nothing where it says so."""
    count = 0
    for case in cases(conformance_data, name):
        count += 1
        parsed = mime.parse(case["input"])
        found = None if parsed is None else mime.serialised(*parsed)
        assert found == case["output"], case
    assert count >= FILES[name]


def test_charsets(conformance_data: Path) -> None:
    """The encoding is the standard's, but that we take blanks and quotes off, as real servers put them on."""
    lenient = set()
    for case in cases(conformance_data, "mime-types.json"):
        _, charset = mime.media_type(case["input"])
        known = webencodings.lookup(charset)
        wanted = (case.get("encoding") or "").lower()
        if (known.name if known else "") != wanted:
            lenient.add(case["input"])
    values = (' "gbk"', "'gbk'", "'gbk", "gbk'", 'gbk"')
    assert lenient == {f"text/html;charset={value}" for value in values}
