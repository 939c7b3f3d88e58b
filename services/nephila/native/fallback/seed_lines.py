"""Packed links from lines of text that are plain URLs; layout: ../README.md."""

from __future__ import annotations

import struct

from nephila.native.fallback.urls import UrlError, UrlParts, host_span, parse_url

_MOST = 1000
_LONGEST = 8192
_NOT_PLAIN = frozenset(b"#@\\")


def seed_links(text: bytes, start: int) -> tuple[bytes, bytes, bytes, bytes, int, int, list[tuple[int, int, int]]]:
    """(fingerprints, urls, url_ends, host_spans, lines, end, odd) of the lines from `start` on, each link once: up to a
    thousand links, or a thousand lines that are no plain URLs. `odd` has of each of those its number, from 0, and its
    first and last place; `end` is where the next line begins, `lines` how many are before it. O(bytes)."""
    links: dict[bytes, str] = {}
    odd: list[tuple[int, int, int]] = []
    lines = 0
    while start < len(text) and len(links) < _MOST and len(odd) < _MOST:
        end = text.find(b"\n", start) + 1 or len(text)
        line = text[start:end].strip(b" \t\n\r\f")
        if line and not line.startswith(b"#"):
            parts = _plain_url(line)
            if parts is None:
                odd.append((lines, start, end))
            else:
                links.setdefault(parts.fingerprint, parts.href)
        lines, start = lines + 1, end
    return b"".join(links), "".join(links.values()).encode(), *_places(list(links.values())), lines, start, odd


def _plain_url(line: bytes) -> UrlParts | None:
    try:
        parts = parse_url(line.decode()) if _is_plain(line) else None
    except UrlError:
        return None
    return parts if parts is not None and len(parts.href) <= _LONGEST else None


def _is_plain(line: bytes) -> bool:
    return (
        len(line) <= _LONGEST
        and line[:8].lower().startswith((b"http://", b"https://"))
        and all(0x20 < byte < 0x7F and byte not in _NOT_PLAIN for byte in line)
    )


def _places(urls: list[str]) -> tuple[bytes, bytes]:
    ends: list[int] = []
    spans: list[int] = []
    at = 0
    for url in urls:
        spans += (at + place for place in host_span(url))
        at += len(url)
        ends.append(at)
    return struct.pack(f"<{len(ends)}I", *ends), struct.pack(f"<{len(spans)}I", *spans)
