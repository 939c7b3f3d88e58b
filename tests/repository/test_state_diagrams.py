"""The README of the scheduler shows the tables of states."""

from __future__ import annotations

from tools.state_diagrams import DIAGRAMS, DOCUMENT, document


def test_the_readme_shows_the_tables() -> None:
    """`make schema` writes them."""
    assert DIAGRAMS
    assert document(DOCUMENT.read_text()) == DOCUMENT.read_text()
