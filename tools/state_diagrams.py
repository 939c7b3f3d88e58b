"""Writes the state diagrams of services/nephila/scheduler/README.md from the tables of the code.

python -m tools.state_diagrams
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nephila.scheduler.frontier.in_flight import MOVES
from nephila.scheduler.partition.owner_state import NEXT_STATES, OwnerState

DOCUMENT = Path(__file__).parents[1] / "services/nephila/scheduler/README.md"


def url_states() -> list[str]:
    """Arrows of a URL in flight."""
    moves = [
        f"{before.name.lower()} --> {after.name.lower()}: {event.name.lower().replace('_', ' ')}"
        for event, row in MOVES.items()
        for before, after in row.items()
    ]
    return ["[*] --> queued: admitted", *moves, "ended --> [*]", "dropped --> [*]"]


def partition_states() -> list[str]:
    """Arrows of a partition."""
    moves = [
        f"{state.value} --> {after.value}"
        for state, states in NEXT_STATES.items()
        for after in states
        if state is not after
    ]
    return [f"[*] --> {OwnerState.LOADING.value}", *moves, f"{OwnerState.LOST.value} --> [*]"]


DIAGRAMS: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "states of a URL": ("frontier/in_flight.py", url_states),
    "states of a partition": ("partition/owner_state.py", partition_states),
}
"""Words of the markers in the document → the file of the table, and its arrows."""


def document(text: str) -> str:
    """The document with its diagrams, each as Mermaid between two markers."""
    for words, (source, arrows) in DIAGRAMS.items():
        begin = f"<!-- {words}: written by `make schema` from {source} -->\n"
        end = f"<!-- end of {words} -->\n"
        head, rest = text.split(begin)
        lines = ["", "```mermaid", "stateDiagram-v2", *(f"    {arrow}" for arrow in arrows()), "```", "", ""]
        text = head + begin + "\n".join(lines) + end + rest.split(end)[1]
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text()))
