"""Every snippet of html5lib-tests through all that reads a page: the pass, the trees, main text, media. No failure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from nephila.parser.single.extract import extract

pytestmark = pytest.mark.conformance


def trees(data: Path) -> Iterator[bytes]:
    """Input of every tree-construction case, fragments and scripted ones included."""
    for path in sorted((data / "html5lib-tests" / "tree-construction").rglob("*.dat")):
        for part in (b"\n" + path.read_bytes()).split(b"\n#data\n")[1:]:
            yield part.partition(b"\n#errors")[0]


def tokens(data: Path) -> Iterator[bytes]:
    """Input of every tokenizer case."""
    for path in sorted((data / "html5lib-tests" / "tokenizer").glob("*.test")):
        for case in json.loads(path.read_text("utf-8")).get("tests", []):
            yield case["input"].encode("utf-8", "surrogatepass")


def test_trees(conformance_data: Path) -> None:
    """1,792 snippets, and each cut in half."""
    count = 0
    for html in trees(conformance_data):
        count += 1
        for body in (html, html[: len(html) // 2]):
            json.dumps(extract(body, "http://a.test/"))
    print(f"snippets: {count}")
    assert count >= 1_792


def test_tokens(conformance_data: Path) -> None:
    """Each alone, and all of a hundred in one page."""
    inputs = list(tokens(conformance_data))
    assert len(inputs) > 6_000
    for body in inputs:
        json.dumps(extract(body, ""))
    for at in range(0, len(inputs), 100):
        json.dumps(extract(b"<p>".join(inputs[at : at + 100]), ""))
