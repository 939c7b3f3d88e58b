"""Answers about sites: directories and their lists after the last run."""

from __future__ import annotations

import msgspec


class ListState(msgspec.Struct, kw_only=True):
    """One list of a directory after a run (docs/harvest.md)."""

    url: str
    verdict: str
    fault: bool
    """It was not fetched."""
    reason: str
    """Of its row."""
    status: int
    """Of HTTP; 0: no answer."""
    target: str
    """The URL to which it redirects."""
    links: int
    """Links of a list that was fetched."""
    since: str
    """Begin of the fault; empty without one."""
    words: str
    proposal: str
    """What the verdict means, and what to do."""


class Directory(msgspec.Struct, kw_only=True):
    """A directory of a site after its last run."""

    name: str
    """Name of its job."""
    score: float = 1.0
    paused: bool = False
    """By its settings: no run begins."""
    country: str = ""
    type: str = ""
    description: str = ""
    last_run: str
    """Begin of the run; empty: it has not run."""
    ended: str
    """Why the run is over; empty: it is not."""
    why: str
    """Why its job was refused."""
    new_pages: int
    lists: list[ListState]
    """After the last run that ended."""


class DirectoryList(msgspec.Struct, kw_only=True):
    """All directories, the highest score first."""

    directories: list[Directory]
