"""The HTTP response in a WARC record: status, type, and the decoded body.

Archives hold the bytes of the wire (chunks, gzip), or bytes with one coding removed while the header stayed. Both are
read. Invariant: at most `max_bytes` are returned.
"""

from __future__ import annotations

import re
import zlib
from typing import Final, NamedTuple

from nephila.kernel.gzip_member import RAW_DEFLATE, data_start
from nephila.kernel.pages import mime

MAX_HEAD_BYTES: Final = 256 << 10
_STATUS: Final = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")


class Message(NamedTuple):
    """The message in a record's block."""

    status: int
    content_type: str
    charset: str
    robots_tag: str
    body: bytes
    payload: bytes
    """The body without its chunks, as packed as it was: digests are made of it."""


def read_message(block: bytes, max_bytes: int) -> Message:
    """The response that a block is. Raises `ValueError` with the reason when it is none or cannot be read."""
    head, body = _split(block)
    status = _STATUS.match(head)
    if status is None:
        raise ValueError("no HTTP response")
    headers = _headers(head)
    payload = dechunked(body) if "chunked" in headers.get("transfer-encoding", "").lower() else body
    content_type, charset = mime.media_type(headers.get("content-type", ""))
    codings = [word.strip().lower() for word in headers.get("content-encoding", "").split(",") if word.strip()]
    decoded = payload
    for coding in reversed(codings):
        decoded = unpacked(decoded, coding, max_bytes)
    if len(decoded) > max_bytes:
        raise ValueError(f"more than {max_bytes:,} bytes")
    return Message(int(status[1]), content_type, charset, headers.get("x-robots-tag", ""), decoded, payload)


def _split(block: bytes) -> tuple[bytes, bytes]:
    ends = [(at, len(end)) for end in (b"\r\n\r\n", b"\n\n") if (at := block.find(end, 0, MAX_HEAD_BYTES)) >= 0]
    if not ends:
        return block[:MAX_HEAD_BYTES], b""
    at, length = min(ends)
    return block[:at], block[at + length :]


def _headers(head: bytes) -> dict[str, str]:
    """Values of repeated headers are joined, as HTTP has it."""
    headers: dict[str, str] = {}
    for line in head.decode("latin-1").splitlines()[1:]:
        name, colon, text = line.partition(":")
        if colon:
            name, value = name.strip().lower(), text.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def dechunked(body: bytes) -> bytes:
    """A body without its chunks; as it is where it has none. Torn ones give what is there."""
    if not _CHUNK.match(body):
        return body
    parts, at = [], 0
    while match := _CHUNK.match(body, at):
        size = int(match[1], 16)
        if size == 0:
            break
        parts.append(body[match.end() : match.end() + size])
        at = match.end() + size
        at += 2 if body[at : at + 2] == b"\r\n" else 1
        if at > len(body):
            break
    else:
        if at < len(body):
            # What stands where a chunk should begin: it was no chunk that came before either.
            return body
    return b"".join(parts)


def unpacked(data: bytes, coding: str, max_bytes: int) -> bytes:
    """One content coding taken off; data that is not packed stays as it is."""
    if coding in ("", "identity"):
        return data
    if coding in ("gzip", "x-gzip"):
        return _inflated(data, max(data_start(data), 0), max_bytes) if data[:2] == b"\x1f\x8b" else data
    if coding == "deflate":
        is_zlib = len(data) > 1 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
        return _inflated(data, 2 if is_zlib else 0, max_bytes)
    if coding in ("br", "zstd"):
        return _by_library(data, coding, max_bytes)
    raise ValueError(f"content coding {coding[:40]!r} is not known")


def _inflated(data: bytes, start: int, max_bytes: int) -> bytes:
    """The deflate stream that begins there. Checksums behind it are not needed, as when the page was fetched."""
    try:
        inflater = zlib.decompressobj(RAW_DEFLATE)
        content = inflater.decompress(data[start:], max_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"broken content: {error}") from None
    if len(content) <= max_bytes and not inflater.eof:
        raise ValueError("broken content: it ends early")
    return content


def _by_library(data: bytes, coding: str, max_bytes: int) -> bytes:
    try:
        if coding == "br":
            import brotli

            decoder, content = brotli.Decompressor(), b""
            for at in range(0, len(data), 4096):
                content += decoder.process(data[at : at + 4096])
                if len(content) > max_bytes:
                    break
            return content
        import zstandard

        with zstandard.ZstdDecompressor().stream_reader(data) as reader:
            return reader.read(max_bytes + 1)
    except ImportError:
        raise ValueError(f"content coding {coding} needs a library that is not installed") from None
    except Exception as error:
        raise ValueError(f"broken content: {error}") from None
