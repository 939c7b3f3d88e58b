"""Writes the state diagram of a partition in services/nephila/scheduler/README.md, from partition/owner_state.py.

python -m tools.partition_states
"""

from __future__ import annotations

from pathlib import Path

from nephila.scheduler.partition.owner_state import NEXT_STATES, OwnerState

DOCUMENT = Path(__file__).parents[1] / "services/nephila/scheduler/README.md"
BEGIN = "<!-- states of a partition: written by `make schema` from partition/owner_state.py -->\n"
END = "<!-- end of states of a partition -->\n"


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    arrows = [
        f"    {state.value} --> {after.value}"
        for state, states in NEXT_STATES.items()
        for after in states
        if state is not after
    ]
    lines = ["stateDiagram-v2", f"    [*] --> {OwnerState.LOADING.value}", *arrows]
    return "\n".join(["", "```mermaid", *lines, f"    {OwnerState.LOST.value} --> [*]", "```", "", ""])


def document(text: str) -> str:
    """The document with the diagram."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + diagram() + END + rest.split(END)[1]


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text()))
