"""The answer to a search, as the Python API and the control API give it; `nephila_stores.search` finds it."""

from __future__ import annotations

from typing import NamedTuple


class Fragment(NamedTuple):
    """A part of a passage, as text."""

    text: str
    hit: bool
    """Whether it is a word of the search."""


class Hit(NamedTuple):
    """A page of a search."""

    url: str
    url_key: str
    job: str
    title: list[Fragment]
    lang: str
    fetched_at: str
    passage: list[Fragment]


class Found(NamedTuple):
    """The answer to a search."""

    hits: list[Hit]
    total: int
    """Pages that were found, `COUNTED` at most."""
    looked_at: int
    """Only so many pages were searched, the newest; 0: all."""
    behind: int
    """Fetches that the index has not read yet."""
