"""Translates errors of files and of SQLite into one line for people."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from nephila.kernel.runtime.errors import UserError


class StoreLost(UserError):
    """The database cannot be reached or is not serving; another attempt may succeed. No batch is lost: nothing was
    receipted, and the database shows later whether the last commit succeeded."""


class StoreRefused(StoreLost):
    """The server refuses the login; another attempt succeeds when the password is replaced."""


class StoreSlow(StoreLost):
    """The database ended the transaction because it took too long; one with fewer rows may succeed."""


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_fault(error: BaseException, path: Path) -> BaseException:
    """The `UserError` for an error while writing `path`; any other exception is returned unchanged."""
    where = Path(error.filename) if isinstance(error, OSError) and isinstance(error.filename, str) else path
    if isinstance(error, OSError):
        if error.errno in _FULL:
            return UserError(f"disk full writing {where}; free space and run again with --resume")
        return UserError(f"cannot write {where}: {error.strerror or error}")
    if isinstance(error, sqlite3.Error):
        return sqlite_fault(error, path)
    return error


def sqlite_fault(error: sqlite3.Error, path: Path) -> UserError:
    """The `UserError` for an error of SQLite on the database `path` that is written."""
    code = _code(error)
    if code == sqlite3.SQLITE_FULL:
        return UserError(f"disk full writing {path}; free space and run again with --resume")
    if code == sqlite3.SQLITE_NOTADB:
        return UserError(f"{path} is not an SQLite database; move it away or choose another directory with --out")
    if code == sqlite3.SQLITE_CORRUPT:
        return UserError(damaged(path, str(error)))
    if busy(error):
        return UserError(f"{path} is locked by another program; close it and run again with --resume")
    if cannot_open(error):
        return UserError(f"cannot write {path}: {error}; check the permissions or choose another directory with --out")
    return UserError(f"cannot write {path}: {error} (free space? broken disk?); then run again with --resume")


def read_fault(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> UserError:
    """The `UserError` for an error while reading the database `path`. A text that is not UTF-8 and a table or column
    that is missing are damage: every database here was written with them."""
    if isinstance(error, UnicodeDecodeError) or not hasattr(error, "sqlite_errorcode"):
        return UserError(damaged(path, "a text in it is not UTF-8"))
    if _code(error) == sqlite3.SQLITE_ERROR:
        return UserError(damaged(path, str(error)))
    return UserError(str(sqlite_fault(error, path)).replace("cannot write", "cannot read"))


def damaged(path: Path, what: str) -> str:
    """The error line about a damaged database."""
    frontier = path.with_name("frontier")
    return (
        f"{path} is damaged ({what}); restore it from a backup, or try sqlite3's .recover on a copy of it, or move it "
        f"away and remove {frontier}: --resume then crawls again"
    )


def busy(error: BaseException) -> bool:
    """Whether another program holds a lock on the database."""
    return isinstance(error, sqlite3.Error) and _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def cannot_open(error: sqlite3.Error) -> bool:
    """Whether the database, or its write-ahead log, cannot be opened in this way."""
    return _code(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)


def commit_unknown(error: BaseException) -> bool:
    """Whether a failed commit may still become durable: its bytes were written and only the fsync failed."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_FSYNC


def _code(error: sqlite3.Error) -> int:
    # The low byte is the primary result code.
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
