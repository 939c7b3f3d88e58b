"""aiokafka's messages, written and read faster: the bytes and values are those of its own methods."""

from __future__ import annotations

import importlib
import pkgutil
import random
from io import BytesIO

import aiokafka.protocol
import pytest
from aiokafka.protocol import types
from aiokafka.protocol.fetch import FetchRequest, FetchResponse_v11
from aiokafka.protocol.struct import Struct
from aiokafka.protocol.types import Array, Schema
from nephila.kernel.bus.kafka.client.schemas import hasten

hasten()

NUMBERS = {types.Int8: 7, types.Int16: 15, types.Int32: 31, types.UInt32: 32, types.Int64: 63}


def messages() -> list[type[Struct]]:
    """Every message that aiokafka knows."""
    for module in pkgutil.iter_modules(aiokafka.protocol.__path__):
        importlib.import_module(f"aiokafka.protocol.{module.name}")
    found, todo = [], [Struct]
    while todo:
        todo += (more := todo.pop().__subclasses__())
        found += [kind for kind in more if kind.SCHEMA.fields]
    return found


def value(field, rng):
    """Something that a field can hold."""
    if field in NUMBERS:
        bits = NUMBERS[field]
        return rng.randrange(1 << bits) - (0 if field is types.UInt32 else rng.randrange(2))
    if field is types.Boolean:
        return rng.random() < 0.5
    if field is types.Float64:
        return float(rng.randrange(1000))
    if isinstance(field, Schema):
        return tuple(value(inner, rng) for inner in field.fields)
    if isinstance(field, types.CompactArray | Array):
        return [value(field.array_of, rng) for _ in range(rng.randrange(4))]
    if isinstance(field, types.String):
        return "".join(rng.choices("aé.", k=rng.randrange(9)))
    if field is types.TaggedFields:
        return {}
    return rng.randbytes(rng.randrange(9))


@pytest.mark.parametrize("kind", messages(), ids=lambda kind: kind.__name__)
def test_every_message_has_the_bytes_of_aiokafka_and_comes_back(kind):
    """All schemas of the client, with values of every kind."""
    rng = random.Random(28)
    for _ in range(5):
        fields = [value(field, rng) for field in kind.SCHEMA.fields]
        own = b"".join(_own(field, item) for field, item in zip(kind.SCHEMA.fields, fields, strict=True))
        assert kind.SCHEMA.encode(fields) == own
        assert list(kind.SCHEMA.decode(BytesIO(own))) == fields


def _own(field, item):
    """The bytes of a field by aiokafka's own methods alone."""
    if isinstance(field, Schema):
        return b"".join(_own(inner, one) for inner, one in zip(field.fields, item, strict=True))
    if type(field) is Array:
        return types.Int32.encode(len(item)) + b"".join(_own(field.array_of, one) for one in item)
    return field.encode(item)


def test_a_request_for_many_partitions_is_as_the_client_builds_it():
    """What a consumer sends again and again, header and all."""
    topics = [(name, [(p, 10**12 + p, 1 << 20) for p in range(16)]) for name in ("outcomes", "receipts")]
    request = FetchRequest(30, 1 << 18, 8 << 20, 0, topics).prepare({1: (4, 11)})
    own = b"".join(
        _own(field, getattr(request, name))
        for name, field in zip(request.SCHEMA.names, request.SCHEMA.fields, strict=True)
    )
    assert request.encode() == own


def test_an_answer_without_arrays_and_records_is_read():
    """A broker says null for what it has nothing of."""
    numbers = b"".join((types.Int32.encode(3), types.Int16.encode(0), *(types.Int64.encode(5) for _ in range(3))))
    nothing = types.Int32.encode(-1)
    partition = numbers + nothing + types.Int32.encode(-1) + nothing
    one = types.Int32.encode(1)
    head = types.Int32.encode(0) + types.Int16.encode(0) + types.Int32.encode(0)
    answer = FetchResponse_v11.decode(head + one + types.String().encode("pages") + one + partition)
    assert answer.topics == [("pages", [(3, 0, 5, 5, 5, None, -1, None)])]


def test_what_is_cut_short_or_does_not_fit_is_an_error_as_before():
    """The client closes a connection on it; it knows ValueError only."""
    with pytest.raises(ValueError, match="cut short"):
        FetchResponse_v11.decode(b"\0\0\0")
    with pytest.raises(ValueError, match="cut short"):
        Array(types.Int32).decode(BytesIO(b"\0"))
    with pytest.raises(ValueError, match="cannot be written"):
        Schema(("number", types.Int8)).encode([4000])
    with pytest.raises(ValueError, match="count"):
        Schema(("number", types.Int8)).encode([1, 2])
