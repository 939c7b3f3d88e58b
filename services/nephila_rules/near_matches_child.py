"""Near matches (`near_matches.py`) in a child process: the search runs a dozen selectors without known bounds.

The page is encoded as it is for a rule (`parser/rules/task.py`).
"""

from __future__ import annotations

from typing import Final

import msgspec
from nephila.parser.sandbox import Task

from nephila_rules.near_matches import near_matches
from nephila_rules.runtime import task
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.load import RuleDocument, from_text

WALL_S: Final = 5.0


class NearMatchesRequest(msgspec.Struct, array_like=True):
    """A page, a rule and the paths of its empty fields."""

    ask: bytes
    missing: list[str]


_encode = msgspec.msgpack.Encoder().encode
_decode_request = msgspec.msgpack.Decoder(NearMatchesRequest).decode
_decode = msgspec.msgpack.Decoder(dict[str, list[str]]).decode


def run(payload: bytes) -> bytes:
    """Entry point of the child."""
    request = _decode_request(payload)
    ask = task.decode_request(request.ask)
    rule = next(rule for rule in from_text(ask.rules[0]).rule.page_rules if rule.name == ask.names[0])
    document = Document(ask.source, ask.url, "utf-8", ask.content_type, ask.facts, routes=ask.routes)
    return _encode(near_matches(rule, document, request.missing))


def payload_of(rule: RuleDocument, document: Document, missing: list[str]) -> bytes:
    """Payload for one page."""
    return _encode(
        NearMatchesRequest(task.request_of({rule.name: rule.text}, document, scripts=False, chosen=True), missing)
    )


def decode_result(data: bytes) -> dict[str, list[str]]:
    """Decode the result of a child. Raises `msgspec.MsgspecError` for malformed data."""
    return _decode(data)


NEAR_MATCHES: Final[Task[dict[str, list[str]]]] = Task(
    "hints", __name__, decode_result, wall_s=WALL_S, memory_bytes=task.MEMORY_BYTES, max_result_bytes=4 << 20
)
