"""`nephila changes`: the feed of a directory and of a database, as text, JSON lines and feeds."""

from __future__ import annotations

import json

import feedparser
import pytest
from nephila.kernel.messages import Outcome

from tests.command_fixtures import Run
from tests.storage.storage_rig import record, running


@pytest.fixture
async def place(database_url, tmp_path):
    """Where the rows are: two pages, of which one changes and one goes."""
    async with running(tmp_path / "crawl", store=database_url) as rig:
        rig.send(record(1), record(2))
        await rig.storage.flush()
        rig.send(record(1, 2, text=b"text of page 1\nanother line", text_hash=b"12345678", title="Two\x1b[2J"))
        rig.send(record(2, 2, outcome=Outcome.FAILED, status=410, reason="http_410", sha256=b"", text=b""))
        await rig.storage.flush()
    return database_url or str(tmp_path / "crawl")


def test_lines_for_people_and_programs(nephila: Run, place):
    """Oldest first; control characters of a title are removed."""
    lines = nephila("changes", "--out", place).out.splitlines()
    assert [line.split()[2] for line in lines if not line.startswith(" ")] == ["new", "new", "changed", "gone"]
    assert "    -fetch 1" in lines
    assert "    +another line" in lines
    assert "\x1b" not in "".join(lines)
    found = [json.loads(line) for line in nephila("changes", "--out", place, "--json").out.splitlines()]
    assert [one["change"] for one in found] == ["new", "new", "changed", "gone"]
    behind = nephila("changes", "--out", place, "--json", "--since", found[2]["id"]).out.splitlines()
    assert [json.loads(line) for line in behind] == found[3:]
    assert len(nephila("changes", "--out", place, "--json", "--limit", "3").out.splitlines()) == 3
    assert len(nephila("changes", "--out", place, "--change", "gone").out.splitlines()) == 1


@pytest.mark.parametrize("name", ["rss", "atom", "jsonfeed"])
def test_a_feed_on_standard_output(nephila: Run, place, name):
    """The newest changes."""
    out = nephila("changes", "--out", place, "--format", name, "--limit", "3").out
    if name == "jsonfeed":
        assert [item["tags"] for item in json.loads(out)["items"]] == [["gone"], ["changed"], ["new"]]
        return
    found = feedparser.parse(out)
    assert not found.bozo
    assert [entry.tags[0].term for entry in found.entries] == ["gone", "changed", "new"]


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("--since", "yesterday"), 2, "is no time, number or id of a change"),
        (("--since", "f" * 32), 1, "there is no change with the id " + "f" * 32),
        (("--change", "same"), 2, "--change 'same' is none of new, changed, moved, gone, returned"),
        (("--format", "pdf"), 2, "--format 'pdf' is none of rss, atom, jsonfeed"),
        (("--format", "rss", "--follow"), 2, "leave out --follow and --json"),
        (("--server", "http://127.0.0.1:9", "--bootstrap", "b:1"), 2, "exclude each other"),
    ],
)
def test_bad_input_is_one_line(nephila: Run, place, words, code, line):
    """Exit code 2 for usage."""
    done = nephila("changes", "--out", place, *words)
    assert done.code == code
    assert line in done.err
    assert len(done.err.splitlines()) == 1
