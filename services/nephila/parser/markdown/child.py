"""Markdown of a page that has too many tags for the loop, in a child process.

Runs in the sandbox. The page is sent as UTF-8, since a locked-down child cannot load codecs.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nephila.native import to_utf8
from nephila.parser.markdown import MAX_CHARS, MarkdownSource, markdown, resolver
from nephila.parser.page.html_tree import css, html_tree
from nephila.parser.sandbox import Task


class Request(msgspec.Struct, array_like=True):
    """One page, the lines of its main text, and what its links are relative to."""

    page: bytes
    lines: str
    base: str


_encode = msgspec.msgpack.Encoder().encode
_decode_request = msgspec.msgpack.Decoder(Request).decode


def run(payload: bytes) -> bytes:
    """Entry point of the child, see `Task.module`."""
    request = _decode_request(payload)
    return markdown(html_tree(request.page), request.lines, resolver(request.base)).encode("utf-8", "replace")


def payload_of(body: bytes, encoding: str, source: MarkdownSource) -> bytes:
    """Payload for one page."""
    return _encode(Request(to_utf8(body, encoding), source.lines, source.base))


def decode_result(data: bytes) -> bytes:
    """The Markdown. Raises `ValueError` for bytes that are no text."""
    data.decode()
    return data


MARKDOWN: Final[Task[bytes]] = Task(
    "markdown", __name__, decode_result, memory_bytes=768 << 20, max_result_bytes=4 * MAX_CHARS
)

# Loaded here, since nothing can be loaded after the lock-down.
css(html_tree("<table>").body, "table")
