"""CDXJ lines of WARC records: where the answer of a URL is, for pywb and other replay tools.

    com,example)/a 20261122093000 {"url":"http://example.com/a","mime":"text/html","status":"200","digest":"sha1:…",
    "length":"1043","offset":"333","filename":"job-00000.warc.gz"}

Lines are sorted bytewise: by the key (SURT), then by time. Answers and revisits have a line; a revisit has the media
type warc/revisit. The key is that of the library surt, which pywb computes for look-ups (tests/conformance).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec
from nephila.kernel.runtime.late_pattern import late_pattern

from nephila_stores.warcs.captures import header_block, member_heads

SUFFIX: Final = ".cdxj"
REVISIT: Final = "warc/revisit"
"""Media type of the line of a revisit record."""
_WARC_SUFFIX: Final = ".warc.gz"
_HEAD_BYTES: Final = 64 << 10
_END: Final = b"\r\n\r\n"
_TYPES: Final = ("response", "revisit")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_WWW: Final = late_pattern(r"www\d*\.")
_SLASHES: Final = late_pattern(r"/{2,}")
_STATUS: Final = late_pattern(r"HTTP/\S+ +(\d{3})")
_PATH_SESSIONS: Final = (
    late_pattern(r"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)"),
    late_pattern(r"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)"),
)
_QUERY_SESSIONS: Final = tuple(
    late_pattern(rf"(.*?)(?:{pattern})(?:&(.*))?")
    for pattern in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
)
_encode = msgspec.json.Encoder().encode


def index_path(warc: Path) -> Path:
    """The index of a WARC file, beside it."""
    return warc.with_name(warc.name.removesuffix(_WARC_SUFFIX) + SUFFIX)


def cdxj_line(record: bytes, offset: int, length: int, filename: str) -> str:
    """The line of a record, of which `record` has the start at least to the end of the HTTP head; "" for a record
    without a line."""
    head = header_block(record)
    kind = head.get("WARC-Type", "")
    if kind not in _TYPES:
        return ""
    url = head["WARC-Target-URI"]
    status, mime = _answer(record[(at := record.find(_END) + len(_END)) : at + _HEAD_BYTES])
    fields = {
        "url": url,
        "mime": REVISIT if kind == "revisit" else mime,
        "status": status,
        "digest": head.get("WARC-Payload-Digest", ""),
        "length": str(length),
        "offset": str(offset),
        "filename": filename,
    }
    fields = {name: value for name, value in fields.items() if value}
    return f"{surt_key(url)} {re.sub('[^0-9]', '', head['WARC-Date'])[:14]} {_encode(fields).decode()}"


def lines_of_file(path: Path, length: int | None = None) -> Iterator[str]:
    """The lines of a WARC file in the order of its records; a damaged record ends the iteration. O(bytes), some
    200 MB/s."""
    for offset, size, start in member_heads(path, path.stat().st_size if length is None else length):
        if line := cdxj_line(start, offset, size, path.name):
            yield line


def write_index(warc: Path, lines: Iterable[str]) -> None:
    """Write the index of a WARC file, complete or not at all. Raises `OSError`."""
    path = index_path(warc)
    part = path.with_name(path.name + ".part")
    part.write_bytes("".join(f"{line}\n" for line in sorted(lines, key=str.encode)).encode())
    part.replace(path)


def surt_key(url: str) -> str:
    """The key of a URL: its host reversed, without www., in lower case, without session ids, arguments sorted."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return url.lower()
    if parts.scheme not in _DEFAULT_PORTS:
        return url.lower()
    host = _WWW.sub("", _ascii(host.strip(".")), count=1) if _WWW.match(host) else _ascii(host.strip("."))
    name = host if ":" in host else ",".join(reversed(host.split(".")))
    at = f":{port}" if port is not None and port != _DEFAULT_PORTS[parts.scheme] else ""
    path = _without_sessions(_PATH_SESSIONS, _escaped(_resolved(_unescaped(parts.path))).lower())
    query = _without_sessions(_QUERY_SESSIONS, _escaped(_unescaped(parts.query)).lower())
    arguments = sorted(pair.split("=", 1) for pair in query.split("&"))
    query = "&".join("=".join(pair) for pair in arguments)
    return f"{name}{at}){path.rstrip('/') or '/'}{'?' if query else ''}{query}"


def _answer(http: bytes) -> tuple[str, str]:
    """(status, media type) of an HTTP head."""
    lines = http[: max(http.find(_END), 0) or len(http)].decode("latin-1").split("\r\n")
    status = _STATUS.match(lines[0])
    for line in lines[1:]:
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-type":
            return status[1] if status else "", re.split(r"[;\s]", value.strip(), maxsplit=1)[0]
    return status[1] if status else "", "unk"


def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


def _unescaped(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    while b"%" in data and (less := unquote_to_bytes(data)) != data:
        data = less
    return data


def _escaped(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 < byte < 0x7F and byte not in b"#%" else f"%{byte:02x}" for byte in data)


def _resolved(path: bytes) -> bytes:
    resolved: list[str] = []
    parts = _SLASHES.sub("/", path.decode("latin-1")).split("/")[1:]
    for part in parts:
        if part == "..":
            del resolved[-1:]
        elif part != ".":
            resolved.append(part)
    return ("/" + "/".join(resolved)).encode("latin-1")


def _without_sessions(patterns: Iterable[re.Pattern[str]], text: str) -> str:
    for pattern in patterns:
        match = pattern.fullmatch(text)
        if match is not None:
            text = match[1] + (match[2] or "")
    return text
