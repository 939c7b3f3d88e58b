"""A page's metadata as one compact JSON object: only what is present, every value bounded.

Keys: encoding, description, canonical, robots, x_robots_tag, refresh, sniffed_type, error, of a sitemap or feed list,
links and problem, and the names of the <meta>
elements that the page pass keeps (OpenGraph, Twitter cards, Dublin Core, citation, author, dates). The first of a
name wins, and our own keys win over names a page chose to be called the same.
"""

from __future__ import annotations

import msgspec

from nephila.kernel.messages import Record

MAX_NOTE_CHARS = 2000
_encode = msgspec.json.Encoder().encode


def to_json(entries: dict[str, str], pairs: list[tuple[str, str]], max_chars: int, max_entries: int) -> str:
    """JSON of what is not empty in `entries`, then in `pairs`; long values are cut, pairs beyond the limit left out."""
    found = {key: value for key, value in entries.items() if value}
    for name, value in pairs:
        if value and name not in found:
            if len(found) >= max_entries:
                break
            found[name] = value
    if not found:
        return ""
    text = _encode(found)
    if len(text) > max_chars:
        # Only then can a value be too long: the common page pays for no look at each.
        text = _encode({key: value[:max_chars] for key, value in found.items()})
    return text.decode()


def note(record: Record, name: str, text: str) -> None:
    """A further entry of a record's metadata: what went wrong with a part of it."""
    meta = msgspec.json.decode(record.meta) if record.meta else {}
    meta[name] = text.encode("utf-8", "replace").decode()[:MAX_NOTE_CHARS]
    record.meta = _encode(meta).decode()
