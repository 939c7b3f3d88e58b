"""Encodes columns of a batch as binary PostgreSQL arrays: one parameter per column, for any number of rows.

The driver's own arrays of lists cost 13 µs more per row (docs/notes/storage.md).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from nephila.storage.rows import Blob
from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEAD = struct.Struct(">iiiii").pack
_LENGTH = struct.Struct(">i").pack
_TEXT, _INT8, _BYTEA = 25, 20, 17


class TextArray(bytes):
    """text[] in binary form."""


class IntArray(bytes):
    """bigint[] in binary form."""


class BlobArray(bytes):
    """bytea[] in binary form."""


class _TextDumper(Dumper):
    format = Format.BINARY
    oid = 1009

    def dump(self, obj: Buffer) -> Buffer:
        return obj


class _IntDumper(_TextDumper):
    oid = 1016


class _BlobDumper(_TextDumper):
    oid = 1001


def register(connection: Connection[tuple[object, ...]]) -> None:
    """Register these array types with a connection."""
    connection.adapters.register_dumper(TextArray, _TextDumper)
    connection.adapters.register_dumper(IntArray, _IntDumper)
    connection.adapters.register_dumper(BlobArray, _BlobDumper)


def text_array(values: Sequence[str | bytes]) -> TextArray:
    """Texts without NUL; bytes are valid UTF-8."""
    parts = [_head(len(values), _TEXT)]
    for value in values:
        data = value if type(value) is bytes else value.encode()  # type: ignore[union-attr]
        parts.append(_LENGTH(len(data)))
        parts.append(data)
    return TextArray(b"".join(parts))


def blob_array(values: Sequence[Blob]) -> BlobArray:
    """Bytes of any kind."""
    return BlobArray(_head(len(values), _BYTEA) + b"".join(_LENGTH(len(value)) + value for value in values))


def int_array(values: Sequence[int]) -> IntArray:
    """Integers below 2^63. Raises `struct.error`."""
    flat = [number for value in values for number in (8, value)]
    return IntArray(_head(len(values), _INT8) + struct.pack(">" + "iq" * len(values), *flat))


def columns(rows: Iterable[Sequence[str | bytes | int]]) -> list[TextArray | IntArray | BlobArray]:
    """Rows of the same shape, at least one, as one array per column."""
    return [_column(column) for column in zip(*rows, strict=True)]


def _column(column: Sequence[Any]) -> TextArray | IntArray | BlobArray:
    if isinstance(column[0], int):
        return int_array(column)
    return blob_array(column) if isinstance(column[0], Blob) else text_array(column)


def _head(count: int, element: int) -> bytes:
    # One dimension, no NULLs, lower bound 1.
    return _HEAD(1 if count else 0, 0, element, count, 1)[: 20 if count else 12]
