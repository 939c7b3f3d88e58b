"""`nephila extract` of a page whose tree has no known cost, in a child process with a time limit.

Runs in the sandbox. The page is sent as UTF-8, since a locked-down child cannot load codecs.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nephila.native import PassOptions, page_pass, to_utf8
from nephila.parser.config import ParserConfig
from nephila.parser.sandbox import Task
from nephila.parser.single.html import NOWHERE, fill_html

WALL_S: Final = 5.0
MEMORY_BYTES: Final = 1 << 30


class ExtractRequest(msgspec.Struct, array_like=True):
    url: str
    source: bytes
    markdown: bool
    options: PassOptions


_encode = msgspec.msgpack.Encoder().encode
_decode_request = msgspec.msgpack.Decoder(ExtractRequest).decode
_decode = msgspec.msgpack.Decoder(dict[str, str | list[str | dict[str, Any]]]).decode


def run(payload: bytes) -> bytes:
    """Entry point of the child, see `Task.module`."""
    request, config = _decode_request(payload), ParserConfig()
    passed = page_pass(request.source, request.url or NOWHERE, "utf-8", request.options)
    result: dict[str, Any] = {"url": request.url}
    fill_html(result, request.source, "utf-8", passed, config, request.markdown)
    return _encode(result)


def payload_of(url: str, body: bytes, encoding: str, markdown: bool, options: PassOptions) -> bytes:
    return _encode(ExtractRequest(url, to_utf8(body, encoding), markdown, options))


def decode_result(data: bytes) -> dict[str, Any]:
    """Decode the result of a child. Raises `ValueError` or `msgspec.MsgspecError` for malformed data."""
    result: dict[str, Any] = _decode(data)
    return result


EXTRACT: Final[Task[dict[str, Any]]] = Task(
    "extract", __name__, decode_result, wall_s=WALL_S, memory_bytes=MEMORY_BYTES, max_result_bytes=64 << 20
)

# Loaded here, since nothing can be loaded after the lock-down.
run(
    payload_of(
        "http://a.test/",
        b"<title>a</title>"
        b'<script type=\'application/ld+json\'>{"@type":"Article","datePublished":"2020-01-01"}</script>'
        b"<article><h1>a</h1><p>b &eacute; <a href=/c>c</a><img src=d.png></p></article>"
        b"<time datetime=2020-01-01>x</time>",
        "utf-8",
        markdown=True,
        options=PassOptions(),
    )
)
