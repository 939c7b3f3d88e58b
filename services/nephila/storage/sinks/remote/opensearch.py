"""Pages as documents of OpenSearch or Elasticsearch (format opensearch), sent in bulk requests over HTTP.

A document has the id job:url_key and the fields of a row; `items` holds the items by the name of their rule. An action
that is sent again has no effect: a document has the number of its fetch as external version, and an update sets fixed
values.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

import msgspec

from nephila.kernel.runtime.errors import TemporaryError, UsageError
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import COLUMNS, FETCH_ID, FETCH_NO, JOB, TEXT, URL_KEY, Batch, Row
from nephila.storage.sinks.remote.delivery import SpooledDelivery

_TIMEOUT_S: Final = 30.0
_INDEX: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
_OF_FETCH: Final = ("outcome", "status", "final_url", "fetched_at", "fetch_id", "fetch_no", "change")
_KEPT: Final = 409
"""The document has a newer version: nothing to do."""
_TOO_LARGE: Final = 413
_encode = msgspec.json.Encoder().encode


class OpenSearch(SpooledDelivery):
    """See `Sink`."""

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        self._client = _Client(config.opensearch_url, config.opensearch_index)
        super().__init__(config, ledger, "opensearch", "storage.opensearch_url", self._client.place)

    def check(self) -> None:
        """See `SpooledDelivery`."""
        self._client.check()

    def lines(self, batch: Batch) -> bytearray:
        """See `SpooledDelivery`. JSON has no tab of its own: it separates action and document."""
        buffer = bytearray()
        not_modified, kept = set(map(id, batch.not_modified)), set(map(id, batch.copy_kept))
        for row in sorted(batch.fetches(), key=lambda row: int(row[FETCH_NO])):
            document = _document(row)
            if id(row) in not_modified or id(row) in kept:
                fields = {name: document[name] for name in _OF_FETCH}
                fields["reason"] = "" if id(row) in not_modified else document["reason"]
                action: dict[str, Any] = {"update": {"_id": _id(row), "retry_on_conflict": 3}}
                document = {"doc": fields, "upsert": document}
            else:
                action = {"index": {"_id": _id(row), "version": row[FETCH_NO], "version_type": "external_gte"}}
                items = batch.items.get((row[JOB], row[URL_KEY]))
                if items is not None and items.data and items.fetch_id == row[FETCH_ID]:
                    document["items"] = {items.rule: [msgspec.Raw(one.encode()) for one in items.data]}
            buffer += _encode(action) + b"\t" + _encode(document) + b"\n"
        return buffer

    def deliver(self, lines: Sequence[bytes]) -> None:
        """See `SpooledDelivery`. A request that is too large is divided."""
        try:
            refused = self._client.bulk(lines)
        except _TooLarge:
            if len(lines) > 1:
                half = len(lines) // 2
                self.deliver(lines[:half])
                self.deliver(lines[half:])
                return
            refused = [(0, "the document is larger than the server accepts")]
        self.bury([_dead_letter(lines[number], error) for number, error in refused], [error for _, error in refused])


def _dead_letter(line: bytes, error: str) -> bytes:
    action, _, document = line.partition(b"\t")
    (target,) = json.loads(action).values()
    return _encode({"id": target["_id"], "error": error, "document": msgspec.Raw(document)})


class _TooLarge(Exception):
    pass


class _Client:
    """Requests to one index."""

    def __init__(self, url: str, index: str) -> None:
        """Raises `UsageError`."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                "the format opensearch needs a server: set storage.opensearch_url to https://user@host:9200"
            )
        if not _INDEX.fullmatch(index):
            raise UsageError(
                f"storage.opensearch_index {index!r} is no name of an index: lower-case letters, digits, . _ and -"
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self.place = f"{parts.scheme}://{host}{f':{port}' if port else ''}"
        """The server without credentials."""
        self._base = self.place + parts.path.rstrip("/")
        self._index = index
        self._headers = {"Content-Type": "application/x-ndjson", "Accept": "application/json"}
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"

    def check(self) -> None:
        """Return if the server answers. Raises `TemporaryError`."""
        self._request("GET", "/", None)

    def bulk(self, lines: Sequence[bytes]) -> list[tuple[int, str]]:
        """Send the actions; returns those that were refused for their content. Raises `TemporaryError`, `_TooLarge`."""
        answer = self._request(
            "POST", f"/{self._index}/_bulk", b"".join(line.replace(b"\t", b"\n", 1) + b"\n" for line in lines)
        )
        refused = []
        if answer.get("errors"):
            for number, item in enumerate(answer.get("items", ())):
                ((_, result),) = item.items()
                status, error = int(result.get("status", 0)), result.get("error") or {}
                if status in (429, 503) or status >= 500:
                    raise TemporaryError(f"{self.place} is overloaded ({status})")
                if status >= 400 and status != _KEPT:
                    reason = error.get("reason", "") if isinstance(error, dict) else str(error)
                    refused.append((number, f"{status} {reason}"))
        return refused

    def _request(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        request = Request(self._base + path, body, self._headers, method=method)
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as answer:
                found: dict[str, Any] = json.loads(answer.read())
                return found
        except HTTPError as error:
            error.close()
            if error.code == _TOO_LARGE:
                raise _TooLarge from None
            remedy = "; check user and password" if error.code in (401, 403) else ""
            raise TemporaryError(f"{self.place}{path} answered {error.code} {error.reason}{remedy}") from None
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise TemporaryError(f"{self.place} is unreachable ({reason}); check host and port") from None


def _id(row: Row) -> str:
    return f"{row[JOB]}:{row[URL_KEY]}"


def _document(row: Row) -> dict[str, Any]:
    document = dict(zip(COLUMNS, row, strict=True))
    text = row[TEXT]
    document["text"] = text if isinstance(text, str) else str(text, "utf-8")
    # An empty text is no date.
    document["fetched_at"] = document["fetched_at"] or None
    return document
