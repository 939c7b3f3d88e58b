"""Writes the state diagram of a URL in services/nephila/scheduler/README.md, from the table in frontier/in_flight.py.

python -m tools.url_states
"""

from __future__ import annotations

from pathlib import Path

from nephila.scheduler.frontier.in_flight import MOVES

DOCUMENT = Path(__file__).parents[1] / "services/nephila/scheduler/README.md"
BEGIN = "<!-- states: written by `make schema` from frontier/in_flight.py -->\n"
END = "<!-- end of states -->\n"


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    moves = [
        f"    {before.name.lower()} --> {after.name.lower()}: {event.name.lower().replace('_', ' ')}"
        for event, row in MOVES.items()
        for before, after in row.items()
    ]
    lines = ["stateDiagram-v2", "    [*] --> queued: admitted", *moves, "    ended --> [*]", "    dropped --> [*]"]
    return "\n".join(["", "```mermaid", *lines, "```", "", ""])


def document(text: str) -> str:
    """The document with the diagram."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + diagram() + END + rest.split(END)[1]


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text()))
