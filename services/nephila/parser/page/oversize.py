"""The page pass of a very long page, in a child process: it takes up to 8 ms per megabyte, too long for the loop.

Runs in the sandbox. The parent checks that buffers and counts of the result agree, as it checks every result of a
child.
"""

from itertools import pairwise
from typing import Final, cast

import msgspec

from nephila.native import PagePass, PassOptions, page_pass
from nephila.parser.sandbox import Task


class FoundPass(msgspec.Struct, frozen=True):
    """A page pass as a message: the attributes of `PagePass` that the parser reads."""

    title: str
    lang: str
    base: str
    canonical: str
    robots: str
    description: str
    meta: list[tuple[str, str]]
    refresh: str
    depth: int
    links_left_out: int
    text: bytes
    text_lines: bytes
    main_lines: bytes
    main_text: bytes
    comments: bytes
    structure: bytes
    text_hash: bytes
    link_count: int
    link_urls: bytes
    link_ends: bytes
    fingerprints: bytes
    host_spans: bytes
    anchors: bytes
    anchor_ends: bytes
    link_flags: bytes


class PassRequest(msgspec.Struct, array_like=True):
    """One page and the options of its page pass."""

    body: bytes
    url: str
    encoding: str
    options: PassOptions


_encode = msgspec.msgpack.Encoder().encode
_decode_request = msgspec.msgpack.Decoder(PassRequest).decode
_decode_found = msgspec.msgpack.Decoder(FoundPass).decode


def run(payload: bytes) -> bytes:
    """Entry point of the child, see `Task.module`."""
    request = _decode_request(payload)
    result = page_pass(request.body, request.url, request.encoding, request.options)
    return _encode({name: getattr(result, name) for name in FoundPass.__struct_fields__})


def payload_of(body: bytes, url: str, encoding: str, options: PassOptions) -> bytes:
    return _encode(PassRequest(body, url, encoding, options))


def decode_result(data: bytes) -> PagePass:
    """Decode the result of a child. Raises `ValueError` or `msgspec.MsgspecError` for malformed data."""
    result = _decode_found(data)
    count = result.link_count
    lengths = [len(result.fingerprints), len(result.link_ends), len(result.host_spans), len(result.anchor_ends)]
    if lengths != [16 * count, 4 * count, 8 * count, 4 * count] or len(result.link_flags) != count:
        raise ValueError("links and their number do not agree")
    for ends, data in ((result.link_ends, result.link_urls), (result.anchor_ends, result.anchors)):
        places = memoryview(ends).cast("I")
        if any(a > b for a, b in pairwise(places)) or (count and places[-1] != len(data)):
            raise ValueError("links end outside of their buffer")
    result.text.decode()
    result.comments.decode()
    return cast("PagePass", result)


PAGE: Final[Task[PagePass]] = Task(
    "page",
    "nephila.parser.page.oversize",
    decode_result,
    wall_s=10.0,
    memory_bytes=512 << 20,
    max_result_bytes=64 << 20,
)
