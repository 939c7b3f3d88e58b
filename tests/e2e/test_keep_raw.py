"""--keep-raw: bodies are kept without an archive, and another rule is tried on them later, with nothing fetched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.web import crawl, page, run, serve

RULE = """apiVersion: nephila.dev/v1
kind: ParseRule
metadata: {name: r}
spec: {match: {url: '/\\d+$'}, fields: {number: {css: h1%s}}}
"""


def answer(request):
    """Ten pages in a chain; the last two have one body."""
    if request.path == "/robots.txt":
        return None
    number = min(int(request.path[1:] or 0), 9)
    return page(f"/{number + 1}", title=f"No {number}")


@pytest.mark.parametrize(("workers", "selector"), [("0", "css: h1"), ("1", "css: h1"), ("0", "xpath: //h1")])
def test_rules_are_tried_on_kept_bodies(tmp_path: Path, workers: str, selector: str) -> None:
    """The diff of each field is told; with --write the table has the new values. XPath is read in a child process."""
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "rule.yaml").write_text((RULE % "").replace("css: h1", selector))
    with serve(answer) as web:
        words = ("--keep-raw", "--rules", str(rules), "--workers", workers)
        done = crawl(web, "http://a.test/0", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert list((tmp_path / "o").glob("*.warc.gz")) == []
    (rules / "rule.yaml").write_text(RULE % ", regex: 'No (\\d+)', type: integer")
    result = run("rules", "apply", "--from", "o", "--rules", str(rules), "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["pages"] == 11
    assert found["fields"]["number"]["changed"] == 11
    first = found["fields"]["number"]["examples"][0]
    assert (first["before"], first["after"]) == ("No 0", 0)
    assert run("rules", "apply", "--from", "o", "--rules", str(rules), "--write", cwd=tmp_path).returncode == 0
    again = json.loads(run("rules", "apply", "--from", "o", "--rules", str(rules), "--json", cwd=tmp_path).stdout)
    assert again["equal"] == 11


def test_bodies_survive_a_resume_and_a_torn_end(tmp_path: Path) -> None:
    """What a kill left behind the last page is no page, and is cut when the crawl goes on."""
    with serve(answer) as web:
        done = crawl(web, "http://a.test/0", "--keep-raw", "--max-pages", "3", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        (file,) = (tmp_path / "o").glob("raw-*.gz")
        with file.open("ab") as stream:
            stream.write(file.read_bytes()[:40])
        (tmp_path / "rule.yaml").write_text(RULE % "")
        read = run("rules", "apply", "--from", "o", "--rules", "rule.yaml", "--json", cwd=tmp_path)
        assert json.loads(read.stdout)["pages"] == 3
        assert "is left out" in read.stderr
        done = crawl(web, "--resume", "--max-pages", "6", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    read = run("rules", "apply", "--from", "o", "--rules", "rule.yaml", "--json", cwd=tmp_path)
    assert json.loads(read.stdout)["pages"] == 6
    assert "left out" not in read.stderr
