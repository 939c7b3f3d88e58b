"""Induction in a child process: it runs hundreds of selectors without known bounds on pages of strangers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from nephila.kernel.runtime.errors import UserError
from nephila.parser.sandbox import BlockingSandbox, ChildError, Task

from nephila_rules.induction.induce import Choice, Example, induce
from nephila_rules.runtime import task
from nephila_rules.runtime.document import Document

WALL_S: Final = 30.0


class _Page(msgspec.Struct, array_like=True):
    source: bytes
    url: str
    values: dict[str, str | list[str]]
    partial: list[str]


_encode = msgspec.msgpack.Encoder().encode
_decode_pages = msgspec.msgpack.Decoder(list[_Page]).decode
_decode = msgspec.msgpack.Decoder(dict[str, list[Choice]]).decode


def run(payload: bytes) -> bytes:
    """Entry point of the child."""
    examples, others = [], []
    for page in _decode_pages(payload):
        document = Document(page.source, page.url)
        if page.values:
            examples.append(Example(document, page.values, frozenset(page.partial)))
        else:
            others.append(document)
    return _encode(induce(examples, others))


def decode_result(data: bytes) -> dict[str, list[Choice]]:
    """Decode the result of a child. Raises `msgspec.MsgspecError` for malformed data."""
    return _decode(data)


INDUCTION: Final[Task[dict[str, list[Choice]]]] = Task(
    "induction", __name__, decode_result, wall_s=WALL_S, memory_bytes=task.MEMORY_BYTES, max_result_bytes=4 << 20
)


def induce_in_child(examples: Sequence[Example], others: Sequence[Document]) -> dict[str, list[Choice]]:
    """`induce`, in a child that is killed after `WALL_S`. Raises `UserError`."""
    pages = [
        _Page(page.document.source.encode(), page.document.url, dict(page.values), sorted(page.partial))
        for page in examples
    ]
    pages += [_Page(page.source.encode(), page.url, {}, []) for page in others]
    sandbox = BlockingSandbox()
    try:
        return sandbox.call(INDUCTION, _encode(pages))
    except ChildError as error:
        raise UserError(f"no rule was made: {error}; give fewer or smaller pages") from None
    finally:
        sandbox.close()
