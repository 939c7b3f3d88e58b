"""The contract of a search index: made of the rows of a database, never the truth about them.

Invariant: a page is found by the text that the index has read, and shown with the text that its row has. The index
reads on behind the last fetch that it has read, so it can be made at any time, or be deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from nephila.storage.search.query import Query
from nephila.storage.source import Source

BATCH: Final = 1_000
"""Fetches that are read into an index in one transaction."""
COUNTED: Final = 1_000
"""Pages that are counted, at most."""
RANKED: Final = 200
"""Pages that are put in order, at most: those with a word in the title, then the newest."""
STEP_S: Final = 1.0
"""A search that finds its index behind spends so long on reading on."""
LONGEST_S: Final = 2.0
"""A search that takes longer ends with what it has found."""


class Matches(NamedTuple):
    """The pages of a search."""

    keys: list[tuple[str, str]]
    """(job, url_key) of `RANKED` pages at most, those to be looked at first."""
    total: int
    """Pages that were found, `COUNTED` at most."""
    complete: bool
    """False: there may be more, since the search took too long."""


class Index(Protocol):
    """The index of one database, open. Methods raise `UserError`."""

    def read_on(self, source: Source, seconds: float) -> Iterator[int]:
        """Read further fetches until none is left or the time is over. Yields the number of fetches that are left
        after each batch."""

    def find(self, query: Query, job: str) -> Matches:
        """The pages of a search."""


class OpenIndex(Protocol):
    """Opens the index of a database."""

    def __call__(self, source: Source, *, fresh: bool) -> AbstractContextManager[Index]:
        """`fresh`: forget what it has, so that it is made again. Raises `UserError` where it cannot be made."""
