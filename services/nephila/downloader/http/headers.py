"""Header lines of the settings: "Name: value" for every host, "HOST Name: value" for some hosts. Pure."""

from __future__ import annotations

import re

from nephila.kernel.runtime.errors import UsageError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_HOST = re.compile(r"(?:\*|localhost|(?:\*\.)?[^\s/@]*[.:][^\s/@]*)\Z")
_OURS = frozenset(("host", "connection", "transfer-encoding", "content-length"))


def split_header(line: str) -> tuple[str, str, str]:
    """Host pattern (empty: every host), name and value. Raises `UsageError` for a header that cannot be sent; its text
    does not repeat the value, which may be a secret."""
    start, colon, value = line.partition(":")
    # A host may have a port: "a.example:8080 Name: value".
    if colon and (match := re.match(r"(\d+\s+[^:\s]+)\s*:(.*)", value, re.DOTALL)) and " " not in start.strip():
        start, value = f"{start}:{match[1]}", match[2]
    host, _, name = start.strip().rpartition(" ")
    host, name, value = host.strip().lower(), name.strip(), value.strip()
    label = f"header {' '.join((host, name)).strip()[:60]!r}"
    if not colon or not _NAME.match(name) or (host and not _HOST.match(host)):
        raise UsageError(f"{label}: not of the form 'Name: value' or 'HOST Name: value'")
    if name.lower() in _OURS:
        raise UsageError(f"{label}: {name} is set by the downloader")
    if any(ord(char) < 32 or ord(char) == 127 for char in value):
        raise UsageError(f"{label}: control characters in its value")
    if not value.isascii():
        raise UsageError(f"{label}: only ASCII can be sent")
    return host, name, value
