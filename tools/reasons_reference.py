"""Writes the tables of reasons in docs/explain.md, from the table in services/nephila/kernel/reasons/table.py.

python -m tools.reasons_reference [--check]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from nephila.kernel.messages import Outcome
from nephila.kernel.reasons.row import Pause, Retry, Row
from nephila.kernel.reasons.status_words import status_reason, tunnel_reason
from nephila.kernel.reasons.table import AnyReason, Reason, row_of

DOCUMENT = Path(__file__).parents[1] / "docs" / "explain.md"
BEGIN = "<!-- reasons: written by `make schema` from services/nephila/kernel/reasons/table.py -->\n"
END = "<!-- end of reasons -->\n"
FAMILIES: dict[str, tuple[AnyReason, str]] = {
    "http_429": (status_reason(429), ""),
    "http_503": (status_reason(503), ""),
    "http_5xx": (status_reason(599), "the server answered another status from 500 to 599"),
    "http_xxx": (status_reason(499), "the server answered another status that is no page, such as 404"),
    "tunnel_xxx": (tunnel_reason(499), "its proxy refuses CONNECT by this status"),
}
"""Name in the document → a reason of the family, and its words where they are those of one status."""
TRIES = {Retry.NEVER: "", Retry.TRIES: "yes", Retry.LONGER: "three times as often", Retry.ALWAYS: "always"}
PAUSES = {Pause.NONE: "", Pause.REFUSAL: "yes", Pause.PASSING: "yes; a first step after an answer"}


def tables() -> str:
    """The text between the marks."""
    lines = [
        "| outcome | reason | tried again | its host pauses | meaning |",
        "|---|---|---|---|---|",
        *(
            _line(outcome, name, row, text)
            for outcome in Outcome
            for name, row, text in _rows()
            if row.ends is outcome and not row.reported_as
        ),
        "",
        "Some reasons are finer than the word in the row:",
        "",
        "| reason in the row | finer reason | tried again | its host pauses | meaning |",
        "|---|---|---|---|---|",
        *(
            f"| `{row.reported_as}` | `{name}` | {TRIES[row.retry]} | {PAUSES[row.pause]} | {text} |"
            for name, row, text in _rows()
            if row.reported_as
        ),
        "",
        "After these a URL goes back into its queue, no try is counted, and no row has them:",
        "",
        "| reason | meaning |",
        "|---|---|",
        *(
            f"| `{one}` | {one.row.given_back or one.row.words} |"
            for one in Reason
            if one.row.ends is None or one.row.given_back
        ),
    ]
    return "\n".join(["", *lines, "", ""])


def _rows() -> Iterator[tuple[str, Row, str]]:
    for one in Reason:
        yield one, one.row, one.row.words
    for name, (reason, text) in FAMILIES.items():
        yield name, row_of(reason), text or row_of(reason).words


def _line(outcome: Outcome, name: str, row: Row, text: str) -> str:
    shown = f"`{name}`" if name else ""
    return f"| {outcome.name.lower()} | {shown} | {TRIES[row.retry]} | {PAUSES[row.pause]} | {text} |"


def document(text: str) -> str:
    """The document with its tables."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + tables() + END + rest.split(END)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when the file differs")
    before = DOCUMENT.read_text()
    text = document(before)
    if not parser.parse_args().check:
        DOCUMENT.write_text(text)
    elif before != text:
        sys.exit("docs/explain.md differs from the table of reasons: run `make schema` and commit the result")


if __name__ == "__main__":
    main()
