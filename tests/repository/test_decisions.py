"""The list of decisions (docs/adr/README.md) has a row for each, with what replaced it."""

from __future__ import annotations

import re
from pathlib import Path

ADR = Path(__file__).parents[2] / "docs" / "adr"
DECISIONS = sorted(ADR.glob("[0-9][0-9][0-9][0-9]-*.md"))
LIST = (ADR / "README.md").read_text()


def row(path: Path) -> str:
    """The line of the list for a decision: number, title, the decisions that replaced it."""
    title, _, text = path.read_text().partition("\n")
    found = re.fullmatch(rf"# {int(path.name[:4])}\. (.+)", title)
    assert found, f"{path.name}: {title!r} is not '# {int(path.name[:4])}. TITLE'"
    status = re.search(r"^Status: replaced( in part)? by (.*)$", text, re.MULTILINE)
    by = ", ".join(re.findall(r"\[ADR \d+\]\([^)]+\)", status[2])) if status else ""
    return f"| [{int(path.name[:4])}]({path.name}) | {found[1]} | {by}{' (in part)' if status and status[1] else ''} |"


def test_the_list_has_a_row_for_each_decision():
    """As the head of its file says; what pytest shows as missing can be pasted."""
    listed = [line for line in LIST.split("\n") if line.startswith("| [")]
    assert listed == [row(path) for path in DECISIONS]


def test_numbers_are_unique():
    numbers = [path.name[:4] for path in DECISIONS]
    assert len(numbers) == len(set(numbers))


def test_what_replaces_a_decision_has_a_status_line():
    """One form: other words for it do not reach the list."""
    other = re.compile(r"^[*_]*(superse|(changed|replaced) by)", re.IGNORECASE | re.MULTILINE)
    assert [path.name for path in DECISIONS if other.search(path.read_text())] == []
