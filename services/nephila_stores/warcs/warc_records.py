"""WARC 1.1 records of an HTTP answer as bytes: request and response, or request and revisit for a 304; metadata.

HTTP heads are stored byte for byte. If the stored body differs from the received bytes, the headers that would be wrong
(Content-Encoding, Transfer-Encoding, Content-Length) are renamed to X-Crawler-…, as in Common Crawl, and the correct
Content-Length is added. The records are built here: warcio's builder costs twice the CPU and keeps no raw heads
(docs/adr/0006). Tests read the files with warcio and fastwarc.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import socket
import uuid
import zlib
from collections.abc import Iterator
from typing import Any

from nephila import __version__
from nephila.kernel import messages as m
from nephila.kernel.runtime.late_pattern import late_pattern
from nephila.kernel.url_credentials import without_credentials
from nephila.storage.rows import iso, unpack_links

from nephila_stores.warcs.captures import Capture

_CRLF = b"\r\n"
_LINE_END = late_pattern(rb"\r?\n")
_UNSAFE = late_pattern(r"[\x00-\x20\x7f<>\"]")
_REVISIT = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_AGENT = late_pattern(rb"(?im)^user-agent:[ \t]*([^\r\n]*)")
_RECORD_ID = late_pattern(rb"WARC-Record-ID: (\S+)")
_GZIP_WBITS = 31
_GZIP_LEVEL = 6
_IGZIP_LEVEL = 2

_isal: Any
try:  # igzip takes a tenth of zlib's time and 15 % more bytes
    from isal import isal_zlib as _isal
except ImportError:  # pragma: no cover - the platform decides
    _isal = None


def gzip_member(data: bytes) -> bytes:
    """The data as one gzip member."""
    if _isal is not None:
        return bytes(_isal.compress(data, _IGZIP_LEVEL, _GZIP_WBITS))
    return zlib.compress(data, _GZIP_LEVEL, _GZIP_WBITS)


def warcinfo(filename: str, page: m.Page) -> bytes:
    """The first record of a file, with the time of the first answer in it."""
    fields = [
        ("software", f"nephila/{__version__} (https://nephila.dev)"),
        ("format", "WARC File Format 1.1"),
        ("conformsTo", "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"),
        ("hostname", socket.gethostname()),
        ("isPartOf", page.job),
    ]
    agent = _AGENT.search(bytes(page.request_head))
    if agent is not None:
        fields.append(("http-header-user-agent", agent[1].decode("latin-1")))
    block = _fields(fields)
    return _record(
        {
            "WARC-Type": "warcinfo",
            "WARC-Record-ID": _new_id(),
            "WARC-Date": warc_date(page),
            "WARC-Filename": filename,
            "Content-Type": "application/warc-fields",
            "WARC-Block-Digest": _digest(block),
        },
        block,
    )


def metadata(page: m.Page, record: m.Record, response: bytes, date: str) -> bytes:
    """The metadata record: depth, outcome, and the outlinks if the job stores links. `response` is the record that it
    describes."""
    fields = [("hopsFromSeed", str(record.depth)), ("fetchNo", str(page.fetch_no)), ("title", record.title)]
    fields += [("outlink", url) for url, _, _ in unpack_links(record.links)] if record.links is not None else []
    block = _fields(fields)
    head = response[: response.find(_CRLF * 2)]
    record_id = _RECORD_ID.search(head)
    return _record(
        {
            "WARC-Type": "metadata",
            "WARC-Record-ID": _new_id(),
            "WARC-Target-URI": uri_of(page),
            "WARC-Date": date,
            **({"WARC-Refers-To": record_id[1].decode()} if record_id is not None else {}),
            "Content-Type": "application/warc-fields",
            "WARC-Block-Digest": _digest(block),
        },
        block,
    )


def _fields(fields: list[tuple[str, str]]) -> bytes:
    """Fields as application/warc-fields; a line break in a value must not create a field."""
    lines = (f"{name}: {' '.join(value.split())}\r\n" for name, value in fields if value)
    return "".join(lines).encode("utf-8", "replace")


def warc_date(page: m.Page) -> str:
    """The start of the fetch; each record needs a date."""
    return iso(page.fetched_at) or iso(1.0)


def page_records(page: m.Page, earlier: Capture | None = None) -> Iterator[bytes]:
    """The uncompressed records of one fetch, response or revisit last. `earlier`: the record that a 304 confirms."""
    payload = bytes(page.wire_body or page.body)
    decoded = not page.wire_body and bool(page.body)
    head = page.response_head or _plain_head(page)
    common = {
        "WARC-Target-URI": uri_of(page),
        "WARC-Date": warc_date(page),
        **_address(page.address),
        "Nephila-Fetch-ID": f"{page.url_key.hex()}-{page.fetch_no}-{page.attempt}",
    }
    response_id = _new_id()
    if page.request_head:
        block = _terminated(page.request_head)
        headers = {
            "WARC-Type": "request",
            "WARC-Record-ID": _new_id(),
            **common,
            "WARC-Concurrent-To": response_id,
            "Content-Type": "application/http; msgtype=request",
            "WARC-Block-Digest": _digest(block),
        }
        yield _record(headers, block)
    if page.not_modified:
        block = _terminated(head)
        headers = {
            "WARC-Type": "revisit",
            "WARC-Record-ID": response_id,
            **common,
            "WARC-Profile": _REVISIT,
            "WARC-Refers-To-Target-URI": common["WARC-Target-URI"],
            **(
                {"WARC-Refers-To-Date": earlier.date, "WARC-Payload-Digest": earlier.digest}
                if earlier is not None
                else {}
            ),
            "Content-Type": "application/http; msgtype=response",
            "WARC-Block-Digest": _digest(block),
        }
        yield _record(headers, block)
        return
    block = true_head(head, len(payload), decoded) + payload
    headers = {
        "WARC-Type": "response",
        "WARC-Record-ID": response_id,
        **common,
        "Content-Type": "application/http; msgtype=response",
        "WARC-Payload-Digest": _digest(payload),
        "WARC-Block-Digest": _digest(block),
        "Nephila-Status": str(page.status),
        **({"WARC-Truncated": page.truncated} if page.truncated else {}),
    }
    yield _record(headers, block)


def resource_records(page: m.Page, response: bytes) -> Iterator[bytes]:
    """The uncompressed records of what a browser made of a page: its document after the scripts, and its captures.

    `response` is the record of the answer of the server. The JSON that scripts fetched has its own URL; the others have
    the URL of the page after `urn:` and their kind, since the answer has that URL itself.
    """
    if not page.rendered:
        return
    record_id = _RECORD_ID.search(response[: response.find(_CRLF * 2)])
    document = m.Capture("document", without_credentials(page.url), "text/html; charset=utf-8", bytes(page.body))
    for capture in (document, *page.captures):
        if not capture.body:
            continue
        url = record_uri(without_credentials(capture.url or page.url))
        headers = {
            "WARC-Type": "resource",
            "WARC-Record-ID": _new_id(),
            "WARC-Target-URI": url if capture.kind == "xhr" else f"urn:{capture.kind}:{url}",
            "WARC-Date": warc_date(page),
            **({"WARC-Concurrent-To": record_id[1].decode()} if record_id is not None else {}),
            "Nephila-Fetch-ID": f"{page.url_key.hex()}-{page.fetch_no}-{page.attempt}",
            "Content-Type": _UNSAFE.sub("", capture.content_type) or "application/octet-stream",
            "WARC-Block-Digest": _digest(bytes(capture.body)),
        }
        yield _record(headers, bytes(capture.body))


def true_head(head: bytes, body_bytes: int, decoded: bool) -> bytes:
    """The head, ended by an empty line; headers that do not describe a body of `body_bytes` bytes are renamed.

    `decoded`: the content encoding was removed from the body. The transfer encoding is always removed.
    """
    lines = _LINE_END.split(bytes(head).strip(_CRLF))
    headers, length_told, length_false = lines[:1], False, False
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        lower, value = name.strip().lower(), value.strip()
        wrong = (
            lower == b"transfer-encoding"
            or (lower == b"content-encoding" and decoded and value.lower() != b"identity")
            or (lower == b"content-length" and value != b"%d" % body_bytes)
        )
        length_told |= lower == b"content-length" and not wrong
        length_false |= wrong
        headers.append(b"X-Crawler-" + line if wrong else line)
    if not length_false:
        return _terminated(head)
    if not length_told:
        headers.append(b"Content-Length: %d" % body_bytes)
    return _CRLF.join(headers) + _CRLF * 2


def _record(headers: dict[str, str], block: bytes) -> bytes:
    lines = ["WARC/1.1", *(f"{name}: {value}" for name, value in headers.items()), f"Content-Length: {len(block)}"]
    return "\r\n".join(lines).encode() + _CRLF * 2 + block + _CRLF * 2


def _plain_head(page: m.Page) -> bytes:
    # Raw capture was off: a minimal head makes the body readable as an answer.
    content_type = _UNSAFE.sub("", page.content_type) or "application/octet-stream"
    return f"HTTP/1.1 {page.status or 200} \r\nContent-Type: {content_type}\r\n".encode()


def _terminated(head: bytes) -> bytes:
    """The head without leading empty lines, with exactly one at its end."""
    return bytes(head).strip(_CRLF) + _CRLF * 2


def _new_id() -> str:
    return f"<urn:uuid:{uuid.uuid4()}>"


def _digest(data: bytes) -> str:
    # Readers of WARC files check SHA-1 in base 32.
    return "sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def uri_of(page: m.Page) -> str:
    """The URL of a page as records have it: without credentials."""
    return record_uri(without_credentials(page.url))


def record_uri(url: str) -> str:
    """A URL without credentials as records have it: a line break in it creates no header."""
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", url).encode("utf-8", "replace").decode()


def _address(address: str) -> dict[str, str]:
    try:
        return {"WARC-IP-Address": str(ipaddress.ip_address(address))}
    except ValueError:
        return {}
