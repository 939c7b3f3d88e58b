"""What a browser captured, as files."""

from __future__ import annotations

import json
from pathlib import Path

from nephila.kernel.messages import Capture
from nephila_browser.capture_files import write_captures


def test_pictures_and_documents_are_files_and_the_json_of_scripts_is_lines(tmp_path: Path) -> None:
    captures = [
        Capture("xhr", "http://a.test/1.json", "application/json", b'{"a": 1}'),
        Capture("screenshot", "http://a.test/", "image/png", b"PNG"),
        Capture("xhr", "http://a.test/2.json", "application/json", b"\xff"),
        Capture("pdf", "http://a.test/", "application/pdf", b"%PDF"),
    ]
    names = write_captures(tmp_path / "captures", "00ff-1-1", captures)
    assert sorted(names) == ["00ff-1-1.pdf", "00ff-1-1.png", "00ff-1-1.xhr.jsonl"]
    assert sorted(path.name for path in (tmp_path / "captures").iterdir()) == sorted(names)
    lines = [json.loads(line) for line in (tmp_path / "captures" / "00ff-1-1.xhr.jsonl").read_text().splitlines()]
    assert [(line["url"], line["body"]) for line in lines] == [
        ("http://a.test/1.json", '{"a": 1}'),
        ("http://a.test/2.json", "\ufffd"),
    ]
