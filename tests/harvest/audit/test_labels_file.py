"""The CSV of labels: cells that a spreadsheet would compute, and what is read back from them."""

from __future__ import annotations

import csv
import io

import pytest
from nephila_harvest.audit import labels_file
from nephila_harvest.audit.sampling import Candidate
from nephila_harvest.audit.store import Drawn, Label

FORMULAS = ["=1+1", '=HYPERLINK("http://evil.test/")', "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"]


def row(number: int = 1, *, stratum: str = "s", url: str = "http://a.test/", rule: str = "", reason: str = "") -> Drawn:
    """A labelled row of a sample."""
    candidate = Candidate("j", "00", rule, -1, "v", url, "")
    return Drawn(number, stratum, candidate, Label("wrong", reason, "p", "2026-01-01"))


def written(*rows: Drawn) -> list[dict[str, str]]:
    """The cells as a spreadsheet gets them."""
    stream = io.StringIO(newline="")
    labels_file.write(stream, rows)
    return list(csv.DictReader(io.StringIO(stream.getvalue(), newline="")))


@pytest.mark.parametrize("column", ["stratum", "url", "rule", "reason"])
@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula(column: str, text: str) -> None:
    """URLs, directories of URLs and names of rules come from foreign hands."""
    (cells,) = written(row(**{column: text}))
    assert cells[column] == f"'{text}"


def test_other_cells_are_written_as_they_are() -> None:
    """Without an apostrophe that a person would have to delete."""
    url = "http://a.test/?a=1"
    (cells,) = written(row(7, stratum="a.test/", url=url, rule="r-1", reason="a=1"))
    assert cells == {
        "number": "7",
        "stratum": "a.test/",
        "url": url,
        "rule": "r-1",
        "ordinal": "",
        "verdict": "wrong",
        "reason": "a=1",
    }


@pytest.mark.parametrize("text", ["=1+1", "-1", "@a", "a=1", "'quoted'", "too short"])
def test_a_label_is_read_as_it_was_written(tmp_path, text: str) -> None:
    """No text loses its first character on the way through the file, and none gains one."""
    one = row(url="=a", reason=text)
    path = tmp_path / "l.csv"
    with path.open("w", newline="") as stream:
        labels_file.write(stream, [one])
    assert labels_file.read(path, [one], "p", "2026-01-01") == [(one.candidate, one.label)]
