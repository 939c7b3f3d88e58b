"""Sites, the progress of their directories and their runs as rows of one SQLite file.

Invariants: a change of sites is one transaction, checked as a whole before; a run that has begun and not ended is open,
and the program continues to watch it after a restart.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from nephila.kernel.messages import UrlState
from nephila.kernel.reasons.row import ListVerdict
from nephila.kernel.runtime.errors import UsageError, UserError, suggest
from nephila.storage.faults import sqlite_fault

from nephila_harvest.sites import FILE, resolve
from nephila_harvest.sites.planner import DirectoryProgress
from nephila_harvest.sites.site_documents import SiteDocument, Sites, merged
from nephila_harvest.sites.verdicts import EFFECTS, ListState

_TABLES = (
    "CREATE TABLE IF NOT EXISTS sites (name TEXT PRIMARY KEY, document BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS directories (name TEXT PRIMARY KEY, state BLOB NOT NULL, tag REAL NOT NULL,"
    " pages REAL NOT NULL)",
    "CREATE TABLE IF NOT EXISTS runs (name TEXT NOT NULL, started_at REAL NOT NULL, due_at REAL NOT NULL,"
    " generation INTEGER NOT NULL, stored_before INTEGER NOT NULL, max_pages INTEGER NOT NULL, ended_at REAL,"
    " ended_by TEXT NOT NULL DEFAULT '', new_pages INTEGER NOT NULL DEFAULT 0,"
    " why TEXT NOT NULL DEFAULT '', recorded INTEGER NOT NULL DEFAULT 0, left_out INTEGER NOT NULL DEFAULT 0,"
    " PRIMARY KEY (name, started_at))",
    "CREATE TABLE IF NOT EXISTS lists (name TEXT NOT NULL, url TEXT NOT NULL, started_at REAL NOT NULL,"
    " verdict TEXT NOT NULL, reason TEXT NOT NULL, status INTEGER NOT NULL, target TEXT NOT NULL,"
    " links INTEGER NOT NULL, since REAL NOT NULL, PRIMARY KEY (name, started_at, url))",
    "CREATE INDEX IF NOT EXISTS open_runs ON runs (name) WHERE ended_at IS NULL",
)
_RUN = (
    "name, started_at, due_at, generation, stored_before, max_pages, ended_at, ended_by, new_pages, why, recorded,"
    " left_out"
)


class RunEnd(StrEnum):
    """Why a run is over."""

    RUNNING = ""
    DONE = "done"
    PAGES = "pages"
    """`topPages` are stored."""
    QUOTA = "quota"
    TIME = "time"
    """It gave its place to others; its job continues."""
    REFUSED = "refused"
    """Its job was not accepted."""
    DELETED = "deleted"
    """Its job was deleted meanwhile."""
    REMOVED = "removed"
    """Its directory was removed."""

    @property
    def is_failure(self) -> bool:
        """Whether the run says nothing about the frequency of new pages."""
        return self in (RunEnd.REFUSED, RunEnd.DELETED)


class DirectoryRun(NamedTuple):
    """One run of a directory."""

    name: str
    started_at: float
    due_at: float
    generation: int
    """Of the job; 0: the job was not applied yet."""
    stored_before: int
    """Pages of the job that were stored at its start."""
    max_pages: int
    """Pages of the job that may be stored at its end; 0 = no limit."""
    ended_at: float | None = None
    ended_by: RunEnd = RunEnd.RUNNING
    new_pages: int = 0
    """Pages that are not lists."""
    why: str = ""
    """Of a run that was refused: the reason, for people."""
    recorded: int = 0
    """Links that were recorded and not fetched (`recordLinks`)."""
    left_out: int = 0
    """New links beyond those that are taken of a page or a level."""

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> DirectoryRun:
        """The run of a row. Raises `UserError` for an end that only a later program knows."""
        run = cls._make(row)
        try:
            return run._replace(ended_by=RunEnd(run.ended_by))
        except ValueError:
            raise UserError(
                f"{FILE} has the end {str(run.ended_by)[:60]!r} of a run of {run.name}, which this program does not"
                " know; use the program version that wrote it"
            ) from None


class AppliedSite(NamedTuple):
    """What an apply did to a site."""

    name: str
    verdict: str
    """created, changed, unchanged or deleted."""
    directories: int
    added: list[str]
    removed: list[str]
    """Directories that the site has since the change, and those that it no longer has."""
    running: list[str]
    """Removed directories with an open run: `nephila sites run` ends it and deletes the job."""
    etag: str
    """Of the new document; empty: the site is deleted."""


class SiteEdit(NamedTuple):
    """A change of sites: documents that are created or replaced, and names of sites that are deleted."""

    sites: list[SiteDocument]
    deleted: list[str]


class SiteStore:
    """Reads and writes the rows; every method is a transaction of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def sites(self) -> Sites:
        """All sites."""
        rows = self._connection.execute("SELECT document FROM sites ORDER BY name")
        documents = [msgspec.json.decode(document, type=SiteDocument) for (document,) in rows]
        return Sites({site.name: site for site in documents})

    def apply(self, new: Iterable[SiteDocument], removed: Iterable[str] = ()) -> list[AppliedSite]:
        """Create or change sites, and delete those named. Raises `UsageError` and changes nothing when the result is
        not valid as a whole."""
        change = SiteEdit(list(new), list(removed))
        return self.edit(lambda _: change)

    def edit(self, decide: Callable[[Sites], SiteEdit]) -> list[AppliedSite]:
        """Make the change that `decide` returns for the present sites; both are one transaction. Raises what `decide`
        raises, and `UsageError` as `apply` does; a site whose settings others inherit is not deleted."""
        with self._transaction():
            present = self.sites()
            edit = decide(present)
            changes = effects(present, edit, {run.name for run in self.open_runs()})
            self._connection.executemany("DELETE FROM sites WHERE name = ?", [(name,) for name in edit.deleted])
            rows = [(site.name, msgspec.json.encode(site)) for site in edit.sites]
            self._connection.executemany("INSERT OR REPLACE INTO sites VALUES (?, ?)", rows)
        return changes

    @property
    def version(self) -> int:
        """A number that changes when another connection has written."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def progress(self) -> dict[str, DirectoryProgress]:
        """Directory → its progress, for those that have run."""
        rows = self._connection.execute("SELECT name, state, tag, pages FROM directories")
        return {
            name: DirectoryProgress(msgspec.msgpack.decode(state, type=UrlState), tag, pages)
            for name, state, tag, pages in rows
        }

    def open_runs(self) -> list[DirectoryRun]:
        """Runs that have not ended."""
        return list(
            map(DirectoryRun.of_row, self._connection.execute(f"SELECT {_RUN} FROM runs WHERE ended_at IS NULL"))
        )

    def last_runs(self) -> dict[str, DirectoryRun]:
        """Directory → its newest run."""
        query = f"SELECT {_RUN}, max(started_at) FROM runs GROUP BY name"
        return {row[0]: DirectoryRun.of_row(row[:-1]) for row in self._connection.execute(query)}

    def news_by_day(self, since: float) -> dict[str, dict[int, int]]:
        """Directory → day since 1970 UTC → new pages and recorded links of the runs that began on it."""
        query = (
            "SELECT name, CAST(started_at / 86400 AS INTEGER), sum(new_pages + recorded) FROM runs"
            " WHERE started_at >= ? GROUP BY 1, 2"
        )
        days: dict[str, dict[int, int]] = {}
        for name, day, news in self._connection.execute(query, (since,)):
            days.setdefault(name, {})[day] = news
        return days

    def last_news(self) -> dict[str, float]:
        """Directory → begin of its newest run with a new page or a recorded link."""
        query = "SELECT name, max(started_at) FROM runs WHERE new_pages + recorded > 0 GROUP BY name"
        return dict(self._connection.execute(query).fetchall())

    def lists(self) -> dict[str, list[ListState]]:
        """Directory → its lists after its newest run that has ended with a state of them."""
        query = (
            "SELECT name, url, verdict, reason, status, target, links, since FROM lists"
            " WHERE (name, started_at) IN (SELECT name, max(started_at) FROM lists GROUP BY name) ORDER BY name, rowid"
        )
        by_directory: dict[str, list[ListState]] = {}
        for name, url, verdict, *rest in self._connection.execute(query):
            by_directory.setdefault(name, []).append(ListState(url, ListVerdict(verdict), *rest))
        return by_directory

    def lists_of(self, name: str) -> dict[str, ListState]:
        """URL → the newest state of each list of a directory."""
        query = (
            "SELECT url, verdict, reason, status, target, links, since, max(started_at) FROM lists WHERE name = ?"
            " GROUP BY url"
        )
        rows = self._connection.execute(query, (name,))
        return {url: ListState(url, ListVerdict(verdict), *rest[:-1]) for url, verdict, *rest in rows}

    def fetched_lists(self, name: str) -> set[str]:
        """Lists of a directory that a run has fetched; their pages are stored."""
        query = "SELECT DISTINCT url, verdict FROM lists WHERE name = ?"
        return {
            url for url, verdict in self._connection.execute(query, (name,)) if not EFFECTS[ListVerdict(verdict)].fault
        }

    def begin(self, run: DirectoryRun, progress: DirectoryProgress) -> None:
        """A run begins. Its tag is charged at once."""
        with self._transaction():
            self._connection.execute(f"INSERT INTO runs ({_RUN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", run)
            self._put(run.name, progress)

    def applied(self, run: DirectoryRun, generation: int) -> DirectoryRun:
        """The job of a run was applied."""
        new = run._replace(generation=generation)
        query = "UPDATE runs SET generation = ? WHERE name = ? AND started_at = ?"
        self._connection.execute(query, (generation, run.name, run.started_at))
        return new

    def end(self, run: DirectoryRun, progress: DirectoryProgress | None, lists: Iterable[ListState] = ()) -> None:
        """A run is over, with the state of each list; without progress its directory is gone."""
        with self._transaction():
            query = (
                "UPDATE runs SET ended_at = ?, ended_by = ?, new_pages = ?, why = ?, recorded = ?, left_out = ?"
                " WHERE name = ? AND started_at = ?"
            )
            counts = (run.new_pages, run.why, run.recorded, run.left_out)
            ended = (run.ended_at, run.ended_by, *counts, run.name, run.started_at)
            self._connection.execute(query, ended)
            query = "INSERT OR REPLACE INTO lists VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            rows = [(run.name, state.url, run.started_at, *state[1:]) for state in lists]
            self._connection.executemany(query, rows)
            if progress is not None:
                self._put(run.name, progress)

    def forget(self, name: str) -> None:
        """A directory was removed: its progress is deleted, its runs stay."""
        self._connection.execute("DELETE FROM directories WHERE name = ?", (name,))

    def _put(self, name: str, progress: DirectoryProgress) -> None:
        values = (name, msgspec.msgpack.encode(progress.state), progress.tag, progress.pages)
        self._connection.execute("INSERT OR REPLACE INTO directories VALUES (?, ?, ?, ?)", values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


@contextmanager
def open_store(path: Path, *, create: bool = False) -> Iterator[SiteStore]:
    """The sites of a file. Raises `UserError` where there is none and `create` is false."""
    if not create and not path.is_file():
        raise UserError(f"{path} has no sites; apply some with: nephila sites apply -f FILE")
    connection = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        for statement in _TABLES:
            connection.execute(statement)
        yield SiteStore(connection)
    except sqlite3.Error as error:
        raise sqlite_fault(error, path) from error
    finally:
        if connection is not None:
            connection.close()


@contextmanager
def only_runner(path: Path) -> Iterator[None]:
    """One program at a time starts the runs of a file. Raises `UserError` while another one does."""
    fd = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UserError(f"another nephila sites run is using {path}") from None
    finally:
        os.close(fd)


def without(present: Sites, names: Iterable[str]) -> SiteEdit:
    """The change that deletes sites, or directories by the names of their jobs. Raises `UserError` for an unknown
    name."""
    deleted, parts = [], set[str]()
    for name in dict.fromkeys(names):
        if name in present.sites:
            deleted.append(name)
        elif name in present.directories:
            parts.add(name)
        else:
            raise UserError(f"there is no site or directory {name!r}; {suggest(name, present.sites)}")
    owners = {present.directories[name][0].name: present.directories[name][0] for name in sorted(parts)}
    sites = [
        dataclasses.replace(
            site,
            directories=tuple(
                directory for directory in site.directories if f"{site.name}.{directory.name}" not in parts
            ),
        )
        for site in owners.values()
        if site.name not in deleted
    ]
    return SiteEdit(sites, deleted)


def effects(present: Sites, edit: SiteEdit, running: set[str]) -> list[AppliedSite]:
    """What a change does to each site; `running` are directories with an open run. Raises `UsageError` where the result
    is not valid as a whole. Pure."""
    old = present.sites
    _check_heirs(old, edit.sites, edit.deleted)
    resolve.check(merged(old, edit.sites, edit.deleted))
    pairs = [*((old.get(site.name), site) for site in edit.sites), *((old[name], None) for name in edit.deleted)]
    return [_change(before, after, running) for before, after in pairs]


def _change(old: SiteDocument | None, new: SiteDocument | None, running: set[str]) -> AppliedSite:
    """What happens to a site; at least one of the two is a document."""
    before, after = _names(old), _names(new)
    removed = [name for name in before if name not in after]
    open_runs = [name for name in removed if name in running]
    if new is None:
        assert old is not None
        return AppliedSite(old.name, "deleted", len(before), [], removed, open_runs, "")
    same = old is not None and old.content == new.content
    verdict = "created" if old is None else "unchanged" if same else "changed"
    added = [name for name in after if name not in before]
    return AppliedSite(new.name, verdict, len(after), added, removed, open_runs, new.etag)


def _names(site: SiteDocument | None) -> list[str]:
    """Directories of a site, by the names of their jobs."""
    return [f"{site.name}.{directory.name}" for directory in site.directories] if site is not None else []


def _check_heirs(old: Mapping[str, SiteDocument], new: Iterable[SiteDocument], gone: Iterable[str]) -> None:
    deleted = set(gone)
    left = {**{name: site for name, site in old.items() if name not in deleted}, **{site.name: site for site in new}}
    for name in deleted - left.keys():
        if heirs := sorted(site.name for site in left.values() if site.inherits == name):
            raise UsageError(
                f"site {name!r} is not deleted: {', '.join(heirs[:5])} inherit{'s' if len(heirs) == 1 else ''} from it"
            )
