"""JSON as text: laid out, its escapes resolved, still JSON; a title where one is named; addresses in its values.

Nothing is lost or rounded: numbers, order and doubled keys stay as written. What is too long, too deep, too crowded or
no JSON stays as it came. Invariant: at most MAX_BYTES are decoded and MAX_NODES looked at, so that brackets alone
cannot cost more than a tenth of a second or a hundred megabytes.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from nephila.kernel.runtime.late_pattern import late_pattern
from nephila.parser.documents.content import MAX_URL_CHARS, MAX_WORD_CHARS, DocumentContent
from nephila.parser.page.text import one_line

MAX_BYTES: Final = 1 << 20
MAX_NODES: Final = 100_000
MAX_DEPTH: Final = 32
"""Of what is laid out: two blanks a level on every line would make megabytes of a few thousand brackets."""

_TITLES: Final = ("title", "headline", "name")
_ADDRESSES: Final = frozenset(("url", "uri", "href", "link", "permalink", "next", "prev", "previous", "first", "last"))
_ESCAPE: Final = late_pattern(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|.)")


def read_json(text: str, max_links: int) -> DocumentContent:
    """The content of a JSON document; `text` is decoded. O(its length)."""
    raw = text.encode("utf-8", "replace")
    if len(raw) > MAX_BYTES:
        return DocumentContent(text=raw, problem=f"not looked into: more than {MAX_BYTES:,} bytes of JSON")
    try:
        document = msgspec.json.decode(raw)
    except RecursionError:
        return DocumentContent(text=raw, problem="not looked into: its values lie too deep in each other")
    except msgspec.DecodeError as error:
        # A number that no machine has is good JSON all the same.
        what = "not looked into" if "out of range" in str(error) else "no JSON"
        return DocumentContent(text=raw, problem=f"{what}: {error}"[:200])
    depth, links = _walk(document, max_links)
    content = DocumentContent(text=raw, title=_title(document), links=list(links.items()))
    if depth > MAX_DEPTH:
        content.problem = f"not laid out: more than {MAX_DEPTH} levels or {MAX_NODES:,} values"
    else:
        content.text = _ESCAPE.sub(_character, msgspec.json.format(raw, indent=2).decode()).encode("utf-8", "replace")
    return content


def _walk(document: Any, max_links: int) -> tuple[int, dict[str, str]]:
    """How deep it is (beyond MAX_DEPTH where not all was looked at), and addresses with the title beside them."""
    deepest = nodes = 0
    links: dict[str, str] = {}
    level = [document] if isinstance(document, dict | list) else []
    while level and deepest <= MAX_DEPTH:
        deepest += 1
        below: list[Any] = []
        for node in level:
            values = node.items() if isinstance(node, dict) else enumerate(node)
            nodes += len(node)
            if nodes > MAX_NODES:
                return MAX_DEPTH + 1, links
            for name, value in values:
                if isinstance(value, dict | list):
                    below.append(value)
                elif isinstance(value, str) and len(links) < max_links and _is_address(name, value):
                    links.setdefault(value, _title(node))
        level = [node for node in below if node]
    return deepest, links


def _is_address(name: Any, value: str) -> bool:
    if len(value) > MAX_URL_CHARS or not value or value.isspace() or " " in value.strip():
        return False
    if value.startswith(("http://", "https://")):
        return True
    return isinstance(name, str) and name.lower() in _ADDRESSES and ("/" in value or "?" in value)


def _title(node: Any) -> str:
    if not isinstance(node, dict):
        return ""
    title = next((node[name] for name in _TITLES if isinstance(node.get(name), str)), "")
    return one_line(title[:MAX_WORD_CHARS])


def _character(match: re.Match[str]) -> str:
    """An escape as the character it stands for, unless that has to stay escaped in JSON or is half a character."""
    high, low, single = match.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    code = int(single, 16) if single else 0
    return chr(code) if code >= 0xA0 and not 0xD800 <= code <= 0xDFFF else match[0]
