"""Objects by name in a place that all members see: a directory, or a store of the S3 kind through obstore.

Snapshots of the frontier lie there. Invariant: an object is there wholly or not at all, and `put` returns once it is
durable. Names are paths of plain parts, said by the program and never by a page. Calls block: they are made on a
thread. What the objects mean, and which of them are old, is the caller's affair.
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

from nephila.kernel.runtime.errors import PermanentError, TemporaryError, UsageError

REQUEST_S: Final = 30.0
"""A request to an object store ends by then, with its body."""
RETRIES: Final = 3
GIVE_UP_S: Final = 60.0
"""No request is begun again after that: whoever asked does so later, and others wait for the thread."""
PART_BYTES: Final = 16 << 20
"""A longer object is read in so many bytes a request: a request has one limit for all of its body."""
_NAME = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*(/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*")


class Blobs(Protocol):
    """The four verbs. All raise `TemporaryError` when the store cannot be reached or refuses."""

    def put(self, name: str, content: bytes | Path) -> None:
        """Keep bytes, or a file's content, under a name; what was there before is replaced."""

    def get(self, name: str) -> bytes:
        """The content. Raises `PermanentError` when there is no such object."""

    def names(self, prefix: str) -> list[str]:
        """Of all objects below a path, sorted. O(objects there)."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; one that is gone already is not missed."""


def open_blobs(location: str) -> Blobs:
    """The store at a path, or at a URL of obstore (s3://bucket/path, gs://, az://, memory://). Raises `UsageError`."""
    if "://" not in location or location.startswith("file://"):
        return DirectoryBlobs(Path(location.removeprefix("file://")))
    try:
        from obstore.store import from_url
    except ImportError:
        raise UsageError(
            f"{location}: object stores need obstore; pip install 'nephila[s3]', or name a directory"
        ) from None
    try:
        return ObjectBlobs(from_url(location, **_limits(location)), location)
    except Exception as error:  # each kind of store has errors of its own
        raise UsageError(f"{location}: {_one_line(error)}") from None


def check_reachable(blobs: Blobs) -> None:
    """Return when the store answers a question. Raises `TemporaryError`."""
    with contextlib.suppress(PermanentError):  # there is no such object: an answer
        blobs.get("reach")


def _limits(location: str) -> dict[str, Any]:
    """Of a store over a network."""
    if location.startswith("memory:"):
        return {}
    # With options of its own obstore asks the environment no more for this one.
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
    """Files below a directory that all members see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, content: bytes | Path) -> None:
        """See `Blobs.put`."""
        path = self.folder / _checked(name)
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                self._write(file, content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            self._sync(path.parent)
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

    @staticmethod
    def _sync(folder: Path) -> None:
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def get(self, name: str) -> bytes:
        """See `Blobs.get`."""
        try:
            return (self.folder / _checked(name)).read_bytes()
        except FileNotFoundError:
            raise PermanentError(f"object {name} is gone from {self.folder}") from None
        except OSError as error:
            raise TemporaryError(f"{self.folder}: {error.strerror}") from None

    def names(self, prefix: str) -> list[str]:
        """See `Blobs.names`."""
        root = self.folder / _checked(prefix)
        try:
            files = [path for path in root.rglob("*") if path.is_file() and not path.name.startswith(".")]
        except OSError as error:
            raise TemporaryError(f"{root}: {error.strerror}") from None
        return sorted(str(path.relative_to(self.folder)) for path in files)

    def delete(self, names: Iterable[str]) -> None:
        """See `Blobs.delete`."""
        for name in names:
            try:
                (self.folder / _checked(name)).unlink(missing_ok=True)
            except OSError as error:
                raise TemporaryError(f"{self.folder / name}: {error.strerror}") from None


class ObjectBlobs:
    """A store of obstore's."""

    def __init__(self, store: Any, location: str) -> None:
        import obstore

        self._api = obstore
        self._store = store
        self._location = location

    def put(self, name: str, content: bytes | Path) -> None:
        """See `Blobs.put`; large files go in parts, and appear when the last is there."""
        try:
            self._api.put(self._store, _checked(name), content)
        except (OSError, self._api.exceptions.BaseError) as error:
            raise TemporaryError(f"{self._location}: {_one_line(error)}") from None

    def get(self, name: str) -> bytes:
        """See `Blobs.get`."""
        try:
            found = self._api.get(self._store, _checked(name))
            size = found.meta["size"]
            if size <= PART_BYTES:
                return bytes(found.bytes())
            del found  # its body is not read
            parts = range(0, size, PART_BYTES)
            return b"".join(
                bytes(self._api.get_range(self._store, name, start=at, end=min(at + PART_BYTES, size))) for at in parts
            )
        except (FileNotFoundError, self._api.exceptions.NotFoundError):
            raise PermanentError(f"object {name} is gone from {self._location}") from None
        except self._api.exceptions.BaseError as error:
            raise TemporaryError(f"{self._location}: {_one_line(error)}") from None

    def names(self, prefix: str) -> list[str]:
        """See `Blobs.names`."""
        try:
            found = [meta["path"] for page in self._api.list(self._store, _checked(prefix)) for meta in page]
        except self._api.exceptions.BaseError as error:
            raise TemporaryError(f"{self._location}: {_one_line(error)}") from None
        return sorted(found)

    def delete(self, names: Iterable[str]) -> None:
        """See `Blobs.delete`."""
        for name in names:
            try:
                self._api.delete(self._store, _checked(name))
            except (FileNotFoundError, self._api.exceptions.NotFoundError):
                continue
            except self._api.exceptions.BaseError as error:
                raise TemporaryError(f"{self._location}: {_one_line(error)}") from None


def _one_line(error: BaseException) -> str:
    """What happened, without the library's account of its own types."""
    return " ".join(str(error).partition("Debug source:")[0].split())[:300]
