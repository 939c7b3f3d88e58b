"""`nephila audit`: a sample drawn, labelled and reported, in a directory and on a server."""

from __future__ import annotations

import csv
import json

import pytest
from nephila.kernel.messages import Outcome

from tests.command_fixtures import Run
from tests.harvest.audit.label_files import change_rows
from tests.storage.storage_rig import record, running


async def crawl(directory, pages: int, **config) -> None:
    """Stored pages, one in ten of which is wrong by its text."""
    async with running(directory, **config) as rig:
        rig.send(*(record(n, text=f"{'bad' if n % 10 == 0 else 'good'} {n}".encode()) for n in range(pages)))
        rig.send(record(10_000, outcome=Outcome.DENIED, reason="robots", text=b"", meta="", fetched_at=0.0))
        await rig.storage.flush()


@pytest.fixture
async def place(database_url, tmp_path):
    """Where the rows are."""
    await crawl(tmp_path / "crawl", 450, store=database_url)
    return database_url or str(tmp_path / "crawl")


def fill(path, verdict) -> None:
    """Label the rows of a template."""
    reasons = {"wrong": "bad text"}
    change_rows(path, lambda _, row: {**row, "verdict": verdict(row), "reason": reasons.get(verdict(row), "")})


def number(row) -> int:
    """Number of a page, the last part of its URL."""
    return int("".join(c for c in row["url"].rpartition("/")[2] if c.isdigit()))


def wrong_if_bad(row) -> str:
    """As the person sees it."""
    return "wrong" if number(row) % 10 == 0 else "right"


def test_sample_label_report(nephila: Run, place, tmp_path):
    """300 of 450 pages; the report counts what the person has found."""
    drawn = json.loads(nephila("audit", "sample", "--out", place, "--name", "first", "--json").out)
    assert (drawn["drawn"], drawn["of"], drawn["labelled"]) == (300, 450, 0)
    labels = tmp_path / "labels.csv"
    assert nephila("audit", "label", "--out", place, "--template", str(labels)).code == 0
    fill(labels, wrong_if_bad)
    assert nephila("audit", "label", "--out", place, "--file", str(labels)).out == "first: 300 labels stored\n"
    with labels.open(newline="") as stream:
        wrong = sum(row["verdict"] == "wrong" for row in csv.DictReader(stream))
    assert 0 < wrong < 60
    found = json.loads(nephila("audit", "report", "--out", place, "--json").out)
    assert found["precision"]["estimate"] == pytest.approx(1 - wrong / 300, abs=0.01)
    assert sum(one["wrong"] for one in found["strata"]) == wrong
    text = nephila("audit", "report", "--out", place)
    assert f"wrong: {wrong} bad text" in text.out
    assert text.code == 0
    below = nephila("audit", "report", "--out", place, "--at-least", "0.999", "--csv", str(tmp_path / "r.csv"))
    assert below.code == 1
    assert "below 99.9%" in below.err
    with (tmp_path / "r.csv").open(newline="") as stream:
        assert sum(int(row["sampled"]) for row in csv.DictReader(stream)) == 300


async def test_labels_survive_a_re_crawl(nephila: Run, place, tmp_path):
    """A second sample of the same versions needs no new label, and the trend has both."""
    nephila("audit", "sample", "--out", place, "--name", "first", "--size", "40")
    nephila("audit", "label", "--out", place, "--template", str(tmp_path / "l.csv"))
    fill(tmp_path / "l.csv", wrong_if_bad)
    nephila("audit", "label", "--out", place, "--file", str(tmp_path / "l.csv"))
    again = nephila("audit", "sample", "--out", place, "--name", "second", "--size", "60")
    assert "40 of them have a label" in again.err
    found = json.loads(nephila("audit", "report", "--out", place, "--json").out)
    assert [name for name, _ in found["trend"]] == ["first", "second"]
    assert sum(one["right"] + one["wrong"] for one in found["strata"]) == 40


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda row: {**row, "verdict": "maybe"}, r":3: verdict 'maybe' is none of right, wrong"),
        (lambda row: {**row, "number": "999"}, r":3: the sample has no number '999'"),
        (lambda row: {**row, "url": "http://gone.test/"}, r"of the sample is .*, not http://gone\.test/"),
    ],
)
async def test_a_wrong_row_stores_no_label(nephila: Run, tmp_path, change, line):
    """One line with file and line number; nothing of the file counts."""
    await crawl(tmp_path / "c", 20)
    place = str(tmp_path / "c")
    nephila("audit", "sample", "--out", place)
    labels = tmp_path / "l.csv"
    nephila("audit", "label", "--out", place, "--template", str(labels))
    fill(labels, lambda row: "right")
    change_rows(labels, lambda at, row: change(row) if at == 1 else row)
    found = nephila("audit", "label", "--out", place, "--file", str(labels))
    assert found.code == 1
    assert __import__("re").search(line, found.err)
    assert found.err.count("\n") == 1
    assert "no label" in nephila("audit", "report", "--out", place).out


async def test_bad_input_is_one_line(nephila: Run, tmp_path):
    """No crawl, no sample, an unknown sample, a name twice, a wrong column, unknown strata."""
    place = str(tmp_path / "c")
    assert "is not a directory" in nephila("audit", "sample", "--out", place).err
    await crawl(tmp_path / "c", 5)
    assert "draw one with: nephila audit sample" in nephila("audit", "report", "--out", place).err
    assert nephila("audit", "sample", "--out", place, "--by", "colour").code == 2
    assert "no items" in nephila("audit", "sample", "--out", place, "--items").err
    assert nephila("audit", "sample", "--out", place, "--name", "a").code == 0
    assert "a sample 'a' exists" in nephila("audit", "sample", "--out", place, "--name", "a").err
    assert "there is no sample 'b'; samples: a" in nephila("audit", "report", "--out", place, "--sample", "b").err
    (tmp_path / "x.csv").write_text("url,verdict\n")
    assert ":1: no column number" in nephila("audit", "label", "--out", place, "--file", str(tmp_path / "x.csv")).err
    assert nephila("audit", "label", "--out", place).code == 2
