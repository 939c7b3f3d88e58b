"""A page's metadata as one compact JSON object: only present values, each bounded.

Keys: encoding, description, canonical, robots, x_robots_tag, refresh, sniffed_type, comments, error; list, links and
problem for sitemaps and feeds; and the names of the <meta> elements that the page pass keeps (OpenGraph, Twitter cards,
Dublin Core, citation, author, dates). The first value of a name is kept; the parser's own keys have precedence over a
page's.
"""

from __future__ import annotations

from operator import itemgetter

import msgspec

from nephila.kernel.messages import Record
from nephila.kernel.page_facts.facts import COMMENTS

MAX_NOTE_CHARS = 2000
_encode = msgspec.json.Encoder().encode
_value = itemgetter(1)


def to_json(entries: dict[str, str], pairs: list[tuple[str, str]], max_chars: int, max_entries: int) -> str:
    """JSON of the non-empty `entries`, then `pairs`; long values are cut except comments, which have a bound of their
    own; pairs beyond the limit are dropped."""
    content = dict(filter(_value, entries.items()))
    for name, value in pairs:
        if value and name not in content:
            if len(content) >= max_entries:
                break
            content[name] = value
    if not content:
        return ""
    text = _encode(content)
    if len(text) > max_chars:
        # Only then can a value be too long; the common page is not checked value by value.
        text = _encode({key: value if key == COMMENTS else value[:max_chars] for key, value in content.items()})
    return text.decode()


def note(record: Record, name: str, text: str) -> None:
    """Add an entry to a record's metadata: the problem of a part of the page."""
    meta = msgspec.json.decode(record.meta) if record.meta else {}
    meta[name] = text.encode("utf-8", "replace").decode()[:MAX_NOTE_CHARS]
    record.meta = _encode(meta).decode()
