"""Backup of an output directory while a program crawls in it, and its restore.

The order makes the copy the state of a directory after a kill: first the frontier at one instant, then the database in
one read transaction, then files up to the lengths that this database has committed. A URL that has ended in the copied
log has its row in the copied database, because the row is committed first. URLs that ended in between are fetched once
more after a restore; each row exists once. The program is not asked and waits for nothing.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from nephila.kernel.outputs import EXPORTS, OUTPUTS, RECOVERED
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.output_directory import RESULT, OutputDirectory, RunFile
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.group.partition_logs import RELAY
from nephila.storage.append_file import committed_lengths
from nephila.storage.ledgers.schema import DATABASE, connect_readonly
from nephila.storage.source import addresses, display_name, with_password
from nephila_control.recorded_frontier import partitions_of

from nephila_tools.backup import archive, rows
from nephila_tools.backup.archive import Archive, Manifest
from nephila_tools.backup.log_cut import cut_of

KIND: Final = "directory"
TRIES: Final = 20
"""Copies of the frontier before giving up: a snapshot replaces its files meanwhile."""
FRONTIER: Final = "frontier"
_LEFT_OUT: Final = ("control.sock", "run.tmp", "rules.tmp", *EXPORTS, *RECOVERED, *(f"{name}-*" for name in ("*.db",)))
_AT_ONE_INSTANT: Final = ("*.tmp", "*.log", RELAY)
_WITHOUT_LENGTH: Final = ("markdown", "parquet")
"""Outputs whose files are complete when they have their name: no length is committed."""


def back_up(directory: OutputDirectory, folder: Path, now: float, *, without_rows: bool = False) -> Path:
    """Back a directory up; returns where. `without_rows`: leave out those on a server. Raises `UserError`."""
    run = directory.read()
    if run is None:
        raise UserError(f"{directory.path} holds no crawl; name its directory with --out")
    written = Archive(folder, KIND, str(directory.path), now)
    try:
        _frontier(directory, written)
        _rows_and_files(directory, run, written, without_rows=without_rows)
        return written.finish()
    except BaseException:
        written.abandon()
        raise


def _frontier(directory: OutputDirectory, written: Archive) -> None:
    """Snapshots, the files that they name, and the segments behind them, of each partition."""
    logs = [CommitLog(path, read_only=True) for _, path in partitions_of(directory)]
    for _ in range(TRIES):
        before = [(log.snapshots(), log.segments()[:1]) for log in logs]
        written.drop(_of_frontier)
        try:
            cut = cut_of(directory.frontier, logs)
            for path in sorted(directory.frontier.rglob("*")):
                if path.is_file() and not _matches(path.name, (*RECOVERED, *_AT_ONE_INSTANT)):
                    written.add(_name(directory, path), path)
            for path, length in cut.lengths.items():
                written.add(_name(directory, path), path, length)
            if cut.relay:
                written.write(f"{FRONTIER}/{RELAY}", partial(_write, cut.relay))
        except FileNotFoundError:
            continue
        if before == [(log.snapshots(), log.segments()[:1]) for log in logs]:
            return
    raise UserError(f"the log in {directory.frontier} is being rewritten all the time; repeat the command")


def _name(directory: OutputDirectory, path: Path) -> str:
    return str(path.relative_to(directory.path))


def _write(data: bytes, file: BinaryIO) -> None:
    file.write(data)


def _of_frontier(name: str) -> bool:
    return name.startswith(f"{FRONTIER}/")


def _rows_and_files(directory: OutputDirectory, run: RunFile, written: Archive, *, without_rows: bool) -> None:
    for _ in range(TRIES):
        written.drop(lambda name: not _of_frontier(name))
        try:
            for name, length in _rows(directory, run, written, without_rows=without_rows).items():
                # A name is committed before its file is created.
                if length or (directory.path / name).exists():
                    written.add(name, directory.path / name, None if _matches(name, ("*.parquet",)) else length)
            for path in _others(directory.path):
                with contextlib.suppress(FileNotFoundError):  # a file of these may be replaced or deleted
                    written.add(str(path.relative_to(directory.path)), path)
            return
        except FileNotFoundError:  # a spool was delivered after the snapshot of the database
            continue
    raise UserError(f"the files in {directory.path} change all the time; repeat the command")


def _rows(directory: OutputDirectory, run: RunFile, written: Archive, *, without_rows: bool) -> dict[str, int]:
    """Copy the rows; returns the committed length of each append-only file."""
    for name in sorted(path.name for path in directory.path.glob("*.db")):
        _sqlite(directory.path / name, written, name)
    if run.store:
        return _postgres(with_password(run.store), run.writer, written, without_rows=without_rows)
    if not (directory.path / DATABASE).exists():
        return {}
    with contextlib.closing(sqlite3.connect(written.target(DATABASE))) as copy:
        return committed_lengths(copy.execute("SELECT name, length FROM sinks"))


def _sqlite(source: Path, written: Archive, name: str) -> None:
    """One read transaction: a writer continues meanwhile."""
    connection = connect_readonly(source.parent) if name == DATABASE else _readonly(source)
    try:
        with contextlib.closing(connection), contextlib.closing(sqlite3.connect(written.target(name))) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
    except sqlite3.Error as error:
        raise UserError(f"{source} cannot be copied: {error}") from None
    written.added(name)


def _readonly(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)


def _postgres(url: str, writer: str, written: Archive, *, without_rows: bool) -> dict[str, int]:
    """The dump, and the lengths of files, of one snapshot of the database. Several servers have no files."""
    if len(addresses(url)) > 1:
        if not without_rows:
            _dump(url, written)
        return {}
    from nephila_stores.postgres.link import connect, translate_errors

    with connect(url, readonly=True) as connection, translate_errors(url):
        connection.execute("SET idle_in_transaction_session_timeout = 0")  # it is idle while pg_dump reads
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        (snapshot,) = connection.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
        query = "SELECT name, length FROM sinks WHERE writer = %s"
        lengths = committed_lengths(connection.execute(query, (writer,)).fetchall())
        if without_rows:
            return lengths
        _dump(url, written, snapshot)
    return lengths


def _dump(url: str, written: Archive, snapshot: str = "") -> None:
    for name in rows.dump(url, written.target, snapshot):
        written.added(name)
    written.manifest.rows = display_name(url)


def _others(directory: Path) -> Iterator[Path]:
    """Files of a result that no ledger knows: settings, verdicts, pictures, Markdown."""
    with_length = [
        pattern for name, output in OUTPUTS.items() if name not in _WITHOUT_LENGTH for pattern in output.files
    ]
    names = [pattern for pattern in RESULT if pattern not in (*with_length, "pages-*.parquet", FRONTIER)]
    for pattern in names:
        for path in sorted(directory.glob(pattern)):
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file() and not _matches(file.name, (*_LEFT_OUT, *with_length)):
                    yield file


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def restore(path: Path, manifest: Manifest, directory: OutputDirectory, *, without_rows: bool) -> None:
    """Fill an empty directory, and an empty database where the rows are on a server. Raises `UserError`, and
    `UsageError` when something is there already. `run.json` comes last: without it the directory holds no crawl."""
    if directory.path.exists() and any(directory.path.iterdir()):
        raise UsageError(f"{directory.path} is not empty; restore into another --out")
    archive.verify(path, manifest)
    with directory.locked():
        dumps = sorted(path / archive.FILES / file.name for file in manifest.files if rows.is_dump(file.name))
        if dumps and not without_rows:
            rows.restore(_store(path), dumps)
        for saved in sorted(manifest.files, key=lambda saved: saved.name == directory.run_file.name):
            if not rows.is_dump(saved.name):
                archive.copy_to(path, saved, directory.path / saved.name)


def _store(path: Path) -> str:
    """The database of the crawl in a backup."""
    run = OutputDirectory(path / archive.FILES).read()
    return with_password(run.store) if run is not None else ""
