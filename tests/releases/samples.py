"""One message of every type with every field set, as the program whose tree is on the path writes it to a topic.

usage: PYTHONPATH=TREE/services python tests/releases/samples.py

Prints {type: record as hex}. It stands on nothing but the bus' own encoding, so that it can be run with the tree of a
release of before. A release from before there was a bus over Kafka has none: it prints {}.
"""

from __future__ import annotations

import json
from typing import Any

DEPTH = 3
"""Messages within messages; deeper ones are left out."""


def fill(message: Any, depth: int = DEPTH) -> Any:
    """Set every field of a protobuf message, each to another value; enums to their highest."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None:
            if depth and field.is_repeated:
                fill(getattr(message, field.name).add(), depth - 1)
            elif depth:
                fill(getattr(message, field.name), depth - 1)
        elif field.is_repeated:
            getattr(message, field.name).extend([value(field), value(field)])
        else:
            setattr(message, field.name, value(field))
    return message


def value(field: Any) -> Any:
    """What a field is set to: told by its number and its name."""
    if field.enum_type is not None:
        return max(one.number for one in field.enum_type.values)
    kinds = {
        field.CPPTYPE_BOOL: True,
        field.CPPTYPE_STRING: f"{field.name} ü" if field.type == field.TYPE_STRING else field.name.encode() + b"\xff",
        field.CPPTYPE_DOUBLE: 1_750_000_000.5 + field.number,
        field.CPPTYPE_FLOAT: 0.5 + field.number,
    }
    return kinds.get(field.cpp_type, 1_000 + field.number)


def records() -> dict[str, str]:
    """See the module."""
    try:
        from nephila.kernel.bus.kafka.wire import CODECS, frame_of, seal
    except ImportError:
        return {}
    found = {}
    for struct, codec in CODECS.items():
        message = codec.decode(fill(codec.proto()).SerializeToString())
        found[struct.__name__] = seal([frame_of(struct, message)]).hex()
    return dict(sorted(found.items()))


if __name__ == "__main__":
    print(json.dumps(records(), indent=1))
