"""The contract of a search index: made of the rows of a database, never the truth about them.

Invariant: a page is found by the text that the index has read, and shown with the text that its row has. The index
reads on behind the last fetch that it has read, so it can be made at any time, or be deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from nephila.storage.source import Source

from nephila_stores.search.query import Query

BATCH: Final = 1_000
"""Fetches that are read into an index in one transaction."""
COUNTED: Final = 1_000
"""Pages that are counted, at most."""
RANKED: Final = 200
"""Pages that are put in order, at most: those with a word in the title, then the newest."""
CPU_S: Final = 0.06
"""A search that has used so much CPU ends after the block of pages in which it is,"""
LONGEST_S: Final = 2.0
"""and one that takes so long."""


class Matches(NamedTuple):
    """The pages of a search."""

    keys: list[tuple[str, str]]
    """(job, url_key) of `RANKED` pages at most, those to be looked at first."""
    total: int
    """Pages that were found, `COUNTED` at most."""
    looked_at: int
    """Only so many pages were searched, the newest; 0: all."""


class Index(Protocol):
    """The index of one database, open. Methods raise `UserError`."""

    def read_on(self, source: Source, seconds: float) -> Iterator[int]:
        """Read further fetches until none is left or the time is over. Yields the number of fetches that are left
        after each batch."""

    def behind(self, source: Source) -> int:
        """Number of fetches that are left."""

    def find(self, query: Query, jobs: Collection[str] | None) -> Matches:
        """The pages of a search, of these jobs; None: of all."""


class OpenIndex(Protocol):
    """Opens the index of a database."""

    def __call__(self, source: Source, *, fresh: bool) -> AbstractContextManager[Index]:
        """`fresh`: forget what it has, so that it is made again. Raises `UserError` where it cannot be made."""
