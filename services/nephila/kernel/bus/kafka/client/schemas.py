"""aiokafka's requests and answers, written and read in runs of numbers instead of number by number.

A request for what there is to read names every partition, and its answer has eight fields for each, most of them
saying nothing; the client packs each number by three calls of its own. Here neighbouring numbers of a schema are one
`struct.Struct`. Invariant: the same bytes and the same values as aiokafka's own methods, which stay reachable as
`__wrapped__`; what is cut short is a ValueError as there. O(fields).
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

from aiokafka.protocol import types
from aiokafka.protocol.struct import Struct
from aiokafka.protocol.types import Array, Schema

_CODES: dict[Any, str] = {
    types.Int8: "b",
    types.Int16: "h",
    types.Int32: "i",
    types.UInt32: "I",
    types.Int64: "q",
    types.Float64: "d",
    types.Boolean: "?",
}
_COUNT = struct.Struct(">i")
Step = tuple[struct.Struct | None, int, Any]
"""A run of so many numbers, or one field of another kind."""


class _Plan:
    """How a schema is written and read."""

    __slots__ = ("numbers", "size", "steps")

    def __init__(self, fields: Sequence[Any]) -> None:
        self.size = len(fields)
        self.steps: list[Step] = []
        run = ""
        for field in fields:
            # A field is a class of numbers or an object; only the former are known here.
            code = _CODES.get(field) if isinstance(field, type) else None
            if code is None:
                self._end(run)
                self.steps.append((None, 1, field))
            run = run + code if code is not None else ""
        self._end(run)
        self.numbers = self.steps[0][0] if len(self.steps) == 1 else None
        """All of it, if it is nothing but numbers."""

    def _end(self, run: str) -> None:
        if run:
            self.steps.append((struct.Struct(f">{run}"), len(run), None))

    def encode(self, item: Sequence[Any]) -> bytes:
        if len(item) != self.size:
            raise ValueError("Item field count does not match Schema")
        parts, at = [], 0
        for numbers, count, field in self.steps:
            parts.append(numbers.pack(*item[at : at + count]) if numbers is not None else field.encode(item[at]))
            at += count
        return b"".join(parts)

    def decode(self, data: BytesIO) -> tuple[Any, ...]:
        values: list[Any] = []
        for numbers, _, field in self.steps:
            if numbers is not None:
                values += numbers.unpack(data.read(numbers.size))
            else:
                values.append(field.decode(data))
        return tuple(values)


@functools.cache
def _plan(schema: Schema) -> _Plan:
    return _Plan(schema.fields)


def _encode(self: Schema, item: Sequence[Any]) -> bytes:
    try:
        return _plan(self).encode(item)
    except struct.error as error:
        raise ValueError(f"{item!r} cannot be written: {error}") from None


def _decode(self: Schema, data: BytesIO) -> tuple[Any, ...]:
    try:
        return _plan(self).decode(data)
    except struct.error as error:
        raise ValueError(f"an answer that was cut short: {error}") from None


def _encode_array(self: Array, items: Sequence[Any] | None) -> bytes:
    if items is None:
        return _COUNT.pack(-1)
    kind = self.array_of
    numbers = _plan(kind).numbers if type(kind) is Schema else None
    try:
        parts = [numbers.pack(*item) for item in items] if numbers is not None else map(kind.encode, items)
        return b"".join((_COUNT.pack(len(items)), *parts))
    except struct.error as error:
        raise ValueError(f"{items!r} cannot be written: {error}") from None


def _decode_array(self: Array, data: BytesIO) -> list[Any] | None:
    try:
        (length,) = _COUNT.unpack(data.read(4))
    except struct.error as error:
        raise ValueError(f"an answer that was cut short: {error}") from None
    if length == -1:
        return None
    decode = self.array_of.decode
    return [decode(data) for _ in range(length)]


def _decode_struct(cls: type[Struct], data: BytesIO | bytes) -> Struct:
    return cls(*cls.SCHEMA.decode(BytesIO(data) if isinstance(data, bytes) else data))


def hasten() -> None:
    """Once per process; again is no harm."""
    if not hasattr(Schema.encode, "__wrapped__"):
        _replace(Schema, "encode", _encode)
        _replace(Schema, "decode", _decode)
        _replace(Array, "encode", _encode_array)
        _replace(Array, "decode", _decode_array)
        Struct.decode = classmethod(functools.wraps(Struct.decode.__func__)(_decode_struct))


def _replace(kind: type, name: str, method: Callable[..., Any]) -> None:
    setattr(kind, name, functools.wraps(getattr(kind, name))(method))
