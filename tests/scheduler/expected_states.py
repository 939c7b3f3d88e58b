"""Tables of tests: what is observed after each event in each state."""

from __future__ import annotations


def by_event(table: str) -> dict[str, dict[str, str]]:
    """Event → state → what is observed, of lines `event` and, indented, `state  what is observed`."""
    found: dict[str, dict[str, str]] = {}
    for line in table.strip().splitlines():
        if line[0] != " ":
            rows = found[line] = {}
        else:
            state, text = line.split(maxsplit=1)
            rows[state] = text
    return found
