"""The index of decisions (docs/adr/README.md) has one row for each, under a subject."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ADR = Path(__file__).parents[2] / "docs" / "adr"
DECISIONS = sorted(ADR.glob("[0-9][0-9][0-9][0-9]-*.md"))
INDEX = (ADR / "README.md").read_text()
MOST_LINES = 60
"""Of a decision: one page."""


def row(path: Path) -> str:
    """The line of the index for a decision: number and title."""
    title = path.read_text().partition("\n")[0]
    match = re.fullmatch(rf"# {int(path.name[:4])}\. (.+)", title)
    assert match, f"{path.name}: {title!r} is not '# {int(path.name[:4])}. TITLE'"
    return f"| [{int(path.name[:4])}]({path.name}) | {match[1]} |"


def test_the_index_has_one_row_for_each_decision():
    """What pytest shows as missing can be pasted below its subject."""
    rows = Counter(line for line in INDEX.split("\n") if line.startswith("| ["))
    assert rows == Counter(row(path) for path in DECISIONS)


def test_each_row_stands_under_a_subject():
    assert INDEX.index("\n## ") < INDEX.index("\n| [")


def test_numbers_are_unique():
    numbers = [path.name[:4] for path in DECISIONS]
    assert len(numbers) == len(set(numbers))


def test_a_decision_is_one_page_and_binds():
    """A decision that was replaced as a whole is deleted; what holds of it stands in the one that replaced it."""
    assert [path.name for path in DECISIONS if path.read_text().count("\n") > MOST_LINES] == []
    replaced = re.compile(r"^(Status: replaced by|[*_]*(superse|(changed|replaced) by))", re.IGNORECASE | re.MULTILINE)
    assert [path.name for path in DECISIONS if replaced.search(path.read_text())] == []


def test_references_lead_to_decisions_that_exist():
    """Numbers in the decisions themselves; links elsewhere are tested with all other links."""
    numbers = {int(path.name[:4]) for path in DECISIONS}
    missing = {
        (path.name, number)
        for path in DECISIONS
        for number in re.findall(r"\bADR 0*(\d+)", path.read_text())
        if int(number) not in numbers
    }
    assert missing == set()
