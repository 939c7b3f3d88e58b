"""Pages as documents of OpenSearch or Elasticsearch (format opensearch), sent in bulk requests over HTTP.

A document has the id job:url_key and the fields of a row; `items` holds the items by the name of their rule. Actions
wait in a spool in the form of a bulk request; the offset of what was accepted is in the ledger. After a crash some
actions are sent again without effect: a document has the number of its fetch as external version, and an update sets
fixed values. Actions that the server refuses for their content go to DIR/opensearch-dead.jsonl. While the server is
unreachable the spool grows, and the attempts become rarer.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec
from nephila.kernel.runtime.errors import UNREADABLE, TemporaryError, UsageError, UserError
from nephila.kernel.runtime.secret_files import current
from nephila.storage.batch_size import SLOW_S, BatchSize
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import COLUMNS, FETCH_ID, FETCH_NO, JOB, TEXT, URL_KEY, Row, RowBatch

from nephila_stores.remote.spool import Spool

log = logging.getLogger(__name__)

DEAD: Final = "opensearch-dead.jsonl"
_BULK_BYTES: Final = 5 << 20
_LEAST_BULK_BYTES: Final = 64 << 10
_SEGMENT_BYTES: Final = 64 << 20
_TIMEOUT_S: Final = 30.0
_MAX_SKIPPED: Final = 256
"""Flushes between two attempts while the server is unreachable."""
_INDEX: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
_OF_FETCH: Final = ("outcome", "status", "final_url", "fetched_at", "fetch_id", "fetch_no", "change")
_KEPT: Final = 409
"""The document has a newer version: nothing to do."""
_TOO_LARGE: Final = 413
_TOO_MANY: Final = 429
_MAX_ANSWER: Final = 64 << 20
_encode = msgspec.json.Encoder().encode
_object = msgspec.json.Decoder(dict[str, Any]).decode


class OpenSearch:
    raw = False

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        self._client = _Client(config.opensearch_url, config.opensearch_index)
        self._spool = Spool(config, ledger, "opensearch")
        self._ledger = ledger
        self._dead = config.directory / DEAD
        self._bulk = BatchSize(_BULK_BYTES, _LEAST_BULK_BYTES)
        self._reached = False
        self._sent = 0
        self._to_skip = self._skipped = 0
        self._trouble = ""
        """Why the last attempt to send failed."""

    @property
    def lengths(self) -> Mapping[str, int]:
        return self._spool.lengths

    @property
    def _offset_name(self) -> str:
        return self._spool.name + ".sent"

    def open(self) -> None:
        """Raises `UserError` if the server is unreachable at the first start."""
        if not self._reached:
            try:
                self._client.check()
            except TemporaryError as error:
                raise UserError(f"storage.opensearch_url: {error}") from error
            self._reached = True
        self._spool.open()
        self._sent = self._ledger.sinks().get(self._offset_name, 0)

    def stage(self, batch: RowBatch) -> None:
        buffer = bytearray()
        not_modified, unchanged = set(map(id, batch.not_modified)), set(map(id, batch.copy_kept))
        for row in sorted(batch.fetches(), key=lambda row: int(row[FETCH_NO])):
            document = _document(row)
            if id(row) in not_modified or id(row) in unchanged:
                fields = {name: document[name] for name in _OF_FETCH}
                fields["reason"] = "" if id(row) in not_modified else document["reason"]
                action: dict[str, Any] = {"update": {"_id": _id(row), "retry_on_conflict": 3}}
                document = {"doc": fields, "upsert": document}
            else:
                action = {"index": {"_id": _id(row), "version": row[FETCH_NO], "version_type": "external_gte"}}
                items = batch.items.get((row[JOB], row[URL_KEY]))
                if items is not None and items.data and items.fetch_id == row[FETCH_ID]:
                    document["items"] = {items.rule: [msgspec.Raw(item.encode()) for item in items.data]}
            buffer += _encode(action) + b"\n" + _encode(document) + b"\n"
        if buffer:
            self._spool.append(buffer)

    def after_commit(self) -> None:
        """The sink sends what is committed."""
        self._spool.after_commit()
        if self._spool.file.length >= _SEGMENT_BYTES:
            self._spool.seal()
        if self._skipped < self._to_skip:
            self._skipped += 1
            return
        if self._send_all():
            self._to_skip = 0
        else:
            self._to_skip = min(max(self._to_skip * 2, 1), _MAX_SKIPPED)
        self._skipped = 0

    def rollback(self) -> None:
        self._spool.rollback()

    def restore(self) -> str:
        return self._spool.file.restore()

    def close(self) -> None:
        """Send everything. Raises `UserError` if the server is unreachable; the next start continues."""
        if not self._spool.is_open:
            return
        try:
            if self._spool.is_settled and not self._send_all():
                raise UserError(
                    f"storage.opensearch_url: {self._trouble}; the rest waits in"
                    f" {self._spool.file.path.parent}, run again with --resume"
                )
        finally:
            self._spool.close()

    def _send_all(self) -> bool:
        """Send all committed actions; False if the server does not take them now."""
        try:
            for segment in list(self._spool.sealed):
                self._send(segment, segment.stat().st_size)
                self._set_sent(0)
                self._spool.delivered(segment)
            self._send(self._spool.file.path, self._spool.file.length)
        except TemporaryError as error:
            self._trouble = str(error)
            log.warning("storage: %s; documents wait", error)
            return False
        return True

    def _send(self, path: Path, length: int) -> None:
        """Send a segment from the last offset on. Raises `TemporaryError`."""
        if self._sent >= length:
            return
        with path.open("rb") as file:
            file.seek(self._sent)
            for actions in _bulks(file, length - self._sent, self._bulk):
                size, began = file.tell() - self._sent, time.monotonic()
                try:
                    self._deliver(actions)
                except TemporaryError:
                    if time.monotonic() - began > SLOW_S:
                        self._bulk.failed(size)
                    raise
                self._bulk.succeeded(size, time.monotonic() - began)
                self._set_sent(file.tell())

    def _deliver(self, actions: list[tuple[bytes, bytes]]) -> None:
        try:
            refused = self._client.bulk(actions)
        except _TooLarge:
            if len(actions) > 1:
                half = len(actions) // 2
                self._deliver(actions[:half])
                self._deliver(actions[half:])
                return
            refused = [(0, "the document is larger than the server accepts")]
        if refused:
            self._bury(actions, refused)

    def _bury(self, actions: list[tuple[bytes, bytes]], refused: list[tuple[int, str]]) -> None:
        with self._dead.open("ab") as file:
            for number, error in refused:
                action, document = (json.loads(line) for line in actions[number])
                (target,) = action.values()
                file.write(_encode({"id": target["_id"], "error": error, "document": document}) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        log.warning("storage: the server refused %d documents; they are in %s: %s", len(refused), self._dead, error)

    def _set_sent(self, offset: int) -> None:
        if offset != self._sent:
            self._ledger.register(self._offset_name, offset)
            self._sent = offset


class _TooLarge(Exception):
    pass


class _Result(msgspec.Struct):
    """What became of a document."""

    status: int
    error: Any = None


class _BulkAnswer(msgspec.Struct):
    """The answer to a bulk request."""

    items: list[dict[str, _Result]]
    """A result per document, in their order, below the name of its action."""


class _NoRedirects(HTTPRedirectHandler):
    """A redirect is an error: the request with its credentials would be sent to another server."""

    def redirect_request(self, *_: Any) -> None: ...


class _Server(NamedTuple):
    """The parts of its URL."""

    place: str
    """Scheme, host and port, without credentials."""
    base: str
    authorization: str


def _server(url: str) -> _Server:
    """Raises `UsageError`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            "the format opensearch needs a server: set storage.opensearch_url (NEPHILA_STORAGE__OPENSEARCH_URL)"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    place = f"{parts.scheme}://{host}{f':{port}' if port else ''}"
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    authorization = f"Basic {base64.b64encode(pair.encode()).decode()}" if pair else ""
    return _Server(place, place + parts.path.rstrip("/"), authorization)


class _Client:
    """Requests to one index. A password that is rotated in its file counts from the next request on."""

    def __init__(self, url: str, index: str) -> None:
        """Raises `UsageError`."""
        self._url = url
        self._server = _server(url)
        if not _INDEX.fullmatch(index):
            raise UsageError(
                f"storage.opensearch_index {index!r} is no name of an index: lower-case letters, digits, . _ and -"
            )
        self._opener = build_opener(_NoRedirects)
        self._index = index

    @property
    def place(self) -> str:
        return self._server.place

    def check(self) -> None:
        """Return if the server answers. Raises `TemporaryError`."""
        self._request("GET", "/", None)

    def bulk(self, actions: list[tuple[bytes, bytes]]) -> list[tuple[int, str]]:
        """Send the actions; returns those that were refused for their content. Raises `TemporaryError`, `_TooLarge`."""
        path = f"/{self._index}/_bulk"
        answer = self._request("POST", path, b"".join(a + d for a, d in actions))
        try:
            results = [next(iter(item.values())) for item in msgspec.convert(answer, _BulkAnswer).items]
        except (*UNREADABLE, StopIteration) as error:
            raise TemporaryError(f"{self.place}{path} answered something else than results ({error})") from None
        if len(results) != len(actions):
            raise TemporaryError(f"{self.place}{path} answered {len(results)} results for {len(actions)} documents")
        refused = []
        for number, result in enumerate(results):
            if result.status == _TOO_MANY or result.status >= 500:
                raise TemporaryError(f"{self.place} is overloaded ({result.status})")
            if result.status >= 400 and result.status != _KEPT:
                cause = result.error
                reason = cause.get("reason", "") if isinstance(cause, dict) else cause
                refused.append((number, f"{result.status} {reason}"))
        return refused

    def _request(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        """The JSON object of an answer. Raises `TemporaryError`, `_TooLarge`."""
        with suppress(UsageError):  # a file without a URL: the last one counts
            self._server = _server(current(self._url))
        headers = {"Content-Type": "application/x-ndjson", "Accept": "application/json"}
        if self._server.authorization:
            headers["Authorization"] = self._server.authorization
        request = Request(self._server.base + path, body, headers, method=method)
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                return _object(answer.read(_MAX_ANSWER))
        except HTTPError as error:
            error.close()
            if error.code == _TOO_LARGE:
                raise _TooLarge from None
            remedy = "; check user and password" if error.code in (401, 403) else ""
            raise TemporaryError(f"{self.place}{path} answered {error.code} {error.reason}{remedy}") from None
        except UNREADABLE as error:
            raise TemporaryError(f"{self.place}{path} answered no JSON object ({error}); check the URL") from None
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise TemporaryError(f"{self.place} is unreachable ({reason}); check host and port") from None


def _bulks(file: IO[bytes], length: int, bulk: BatchSize) -> Iterator[list[tuple[bytes, bytes]]]:
    """Pairs of lines (action, document), as many bytes at once as the server takes in time. The position of the file is
    behind those returned."""
    while length > 0:
        actions, size = [], 0
        while size < bulk.limit and length > 0:
            pair = (file.readline(), file.readline())
            used = len(pair[0]) + len(pair[1])
            size += used
            length -= used
            actions.append(pair)
        yield actions


def _id(row: Row) -> str:
    return f"{row[JOB]}:{row[URL_KEY]}"


def _document(row: Row) -> dict[str, Any]:
    document = dict(zip(COLUMNS, row, strict=False))
    text = row[TEXT]
    document["text"] = text if isinstance(text, str) else str(text, "utf-8")
    # An empty text is no date.
    document["fetched_at"] = document["fetched_at"] or None
    return document
