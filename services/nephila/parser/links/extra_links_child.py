"""Extra links (`extra_links.py`) of a page whose tree is too costly for the loop, in a child process.

Runs in the sandbox. The page is sent as UTF-8, since a locked-down child cannot load codecs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from selectolax.lexbor import LexborHTMLParser

from nephila.kernel.pages.requisites import MAX_REQUISITES
from nephila.native import to_utf8
from nephila.parser.links.extra_links import KINDS, MAX_LINKS, extra_links_of, tree_of
from nephila.parser.links.link_list import UnresolvedLink
from nephila.parser.sandbox import Task

MEMORY_BYTES: Final = 768 << 20
Found = list[tuple[int, list[UnresolvedLink]]]


class LinksRequest(msgspec.Struct, array_like=True):
    source: bytes
    encoding: str
    """Of the page, in which queries are; `source` is UTF-8."""
    base: str
    kinds: list[str]


_encode = msgspec.msgpack.Encoder().encode
_decode_request = msgspec.msgpack.Decoder(LinksRequest).decode
_decode_found = msgspec.msgpack.Decoder(Found).decode


def run(payload: bytes) -> bytes:
    """Entry point of the child, see `Task.module`."""
    request = _decode_request(payload)
    return _encode(extra_links_of(tree_of(request.source, "utf-8"), request.base, request.kinds, request.encoding))


def payload_of(body: bytes, encoding: str, base: str, kinds: Sequence[str]) -> bytes:
    return _encode(LinksRequest(to_utf8(body, encoding), encoding, base, list(kinds)))


def decode_result(data: bytes) -> Found:
    """Decode the result of a child. Raises `ValueError` or `msgspec.MsgspecError` for malformed data."""
    groups = _decode_found(data)
    flags = {flag for kinds in KINDS.values() for flag, _ in kinds}
    most = MAX_LINKS * 2 * len(KINDS) + MAX_REQUISITES
    if any(flag not in flags for flag, _ in groups) or sum(len(rows) for _, rows in groups) > most:
        raise ValueError("links of a kind or number that was not requested")
    return groups


EXTRA_LINKS: Final[Task[Found]] = Task("links", __name__, decode_result, memory_bytes=MEMORY_BYTES)

# Loaded here, since nothing can be loaded after the lock-down.
LexborHTMLParser("<a href=x>").css("a")
