"""A blob store that all members share: a directory, or an object store (S3 and others) through obstore.

It holds snapshots of the frontier and large messages. Invariant: an object exists completely or not at all, and `put`
returns when it is durable. Names are relative paths that the program chooses, never parts of a page. Calls block, so
callers run them on a thread.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from nephila.kernel.process.disk import sync_directory
from nephila.kernel.runtime.errors import PermanentError, TemporaryError, UsageError
from nephila.kernel.runtime.extras import install_line

REQUEST_S: Final = 30.0
"""Timeout of a request to an object store, body included."""
RETRIES: Final = 3
GIVE_UP_S: Final = 60.0
"""No retry begins after this time: the caller retries later, and other calls wait for the thread."""
PART_BYTES: Final = 16 << 20
"""A longer object is read in parts of this size, since the timeout is for a whole request."""
_NAME = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*(/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*")


class Blobs(Protocol):
    """A blob store. All methods raise `TemporaryError` if the store is unreachable or refuses."""

    def put(self, name: str, content: bytes | Path) -> None:
        """Store bytes, or the content of a file, under a name; replaces an earlier object."""

    def get(self, name: str) -> bytes:
        """The content. Raises `PermanentError` if there is no such object."""

    def names(self, prefix: str) -> list[str]:
        """Names of all objects below a path, sorted. O(objects there)."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; missing objects are ignored."""


def open_blobs(location: str) -> Blobs:
    """The store at a path, or at a URL of obstore (s3://bucket/path, gs://, az://, memory://). Raises `UsageError`."""
    if "://" not in location or location.startswith("file://"):
        return DirectoryBlobs(Path(location.removeprefix("file://")))
    try:
        from obstore.store import from_url
    except ImportError:
        raise UsageError(f"{location}: object stores need obstore; {install_line('s3')}, or name a directory") from None
    try:
        return ObjectBlobs(from_url(location, **_limits(location)), location)
    except Exception as error:  # each kind of store has its own error types
        raise UsageError(f"{location}: {_one_line(error)}") from None


def check_reachable(blobs: Blobs) -> None:
    """Return if the store answers. Raises `TemporaryError`."""
    with contextlib.suppress(PermanentError):  # a missing object is an answer
        blobs.get("reach")


def _limits(location: str) -> dict[str, Any]:
    """Client options of a store over a network."""
    if location.startswith("memory:"):
        return {}
    # With explicit client options obstore no longer reads this variable.
    plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")
    times = {"timeout": timedelta(seconds=REQUEST_S), "connect_timeout": timedelta(seconds=5)}
    return {
        "client_options": {**times, "allow_http": plain},
        "retry_config": {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=GIVE_UP_S)},
    }


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise PermanentError(f"no name of an object: {name[:80]!r}")
    return name


class DirectoryBlobs:
    """A blob store in a directory that all members share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, content: bytes | Path) -> None:
        path = self.folder / _checked(name)
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                self._write(file, content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            sync_directory(path.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink()
            raise TemporaryError(f"{path}: {error.strerror}") from None

    @staticmethod
    def _write(file: Any, content: bytes | Path) -> None:
        if isinstance(content, bytes):
            file.write(content)
            return
        with content.open("rb") as source:
            while block := source.read(1 << 20):
                file.write(block)

    def get(self, name: str) -> bytes:
        try:
            return (self.folder / _checked(name)).read_bytes()
        except FileNotFoundError:
            raise PermanentError(f"object {name} is gone from {self.folder}") from None
        except OSError as error:
            raise TemporaryError(f"{self.folder}: {error.strerror}") from None

    def names(self, prefix: str) -> list[str]:
        root = self.folder / _checked(prefix)
        try:
            files = [path for path in root.rglob("*") if path.is_file() and not path.name.startswith(".")]
        except OSError as error:
            raise TemporaryError(f"{root}: {error.strerror}") from None
        return sorted(str(path.relative_to(self.folder)) for path in files)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                (self.folder / _checked(name)).unlink(missing_ok=True)
            except OSError as error:
                raise TemporaryError(f"{self.folder / name}: {error.strerror}") from None


class ObjectBlobs:
    """A blob store in an object store of obstore."""

    def __init__(self, store: Any, location: str) -> None:
        import obstore

        self._api = obstore
        self._store = store
        self._location = location

    def put(self, name: str, content: bytes | Path) -> None:
        """Large files are uploaded in parts; the object appears with the last part."""
        try:
            self._api.put(self._store, _checked(name), content)
        except (OSError, self._api.exceptions.BaseError) as error:
            raise TemporaryError(f"{self._location}: {_one_line(error)}") from None

    def get(self, name: str) -> bytes:
        try:
            answer = self._api.get(self._store, _checked(name))
            size = answer.meta["size"]
            if size <= PART_BYTES:
                return bytes(answer.bytes())
            del answer  # close the answer; its body is read in parts
            parts = range(0, size, PART_BYTES)
            return b"".join(
                bytes(self._api.get_range(self._store, name, start=at, end=min(at + PART_BYTES, size))) for at in parts
            )
        except (FileNotFoundError, self._api.exceptions.NotFoundError):
            raise PermanentError(f"object {name} is gone from {self._location}") from None
        except self._api.exceptions.BaseError as error:
            raise TemporaryError(f"{self._location}: {_one_line(error)}") from None

    def names(self, prefix: str) -> list[str]:
        try:
            paths = [meta["path"] for page in self._api.list(self._store, _checked(prefix)) for meta in page]
        except self._api.exceptions.BaseError as error:
            raise TemporaryError(f"{self._location}: {_one_line(error)}") from None
        return sorted(paths)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                self._api.delete(self._store, _checked(name))
            except (FileNotFoundError, self._api.exceptions.NotFoundError):
                continue
            except self._api.exceptions.BaseError as error:
                raise TemporaryError(f"{self._location}: {_one_line(error)}") from None


def _one_line(error: BaseException) -> str:
    """The message of an error in one line, without the library's debug output."""
    return " ".join(str(error).partition("Debug source:")[0].split())[:300]
