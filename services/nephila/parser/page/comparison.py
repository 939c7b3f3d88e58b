"""What of a page is compared with its stored copy: the text without what the job ignores, or some fields of its items.

`spec.changes.ignore` of a job is for what differs at each fetch and is no change: counters, advertisements, dates of
today. The row keeps the whole text. O(text) for expressions, which are RE2's; a tree and a second page pass for
selectors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import re2

from nephila.kernel.documents.job_schema import Ignore
from nephila.kernel.runtime.errors import UNREADABLE
from nephila.native import PagePass, to_utf8
from nephila.parser.page.html_tree import css, html_tree

HASH_BYTES: Final = 8
MAX_ELEMENTS: Final = 1000
"""Elements of a page that are left out."""


def ignores(ignore: Ignore) -> bool:
    """Whether a job ignores anything."""
    return bool(ignore.expressions or ignore.selectors or ignore.only_fields)


def hash_of_fields(items: Sequence[bytes], names: Sequence[str]) -> bytes:
    """The hash of these fields of all items, by their dotted names."""
    digest = hashlib.sha256()
    for item in items:
        try:
            data = json.loads(item)
        except (ValueError, *UNREADABLE):
            data = None
        values = [_field(data, name.split(".")) for name in names]
        digest.update(json.dumps(values, sort_keys=True).encode() + b"\n")
    return digest.digest()[:HASH_BYTES]


def _field(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def hash_of_text(text: bytes, expressions: Sequence[str]) -> bytes:
    """The hash of a text without what the expressions match and without white space at the ends of its lines."""
    for expression in expressions:
        text = _compiled(expression).sub(b"", text)
    lines = (line.strip() for line in text.split(b"\n"))
    return hashlib.sha256(b"\n".join(line for line in lines if line)).digest()[:HASH_BYTES]


@lru_cache(maxsize=1000)
def _compiled(expression: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(expression, options)


def text_without(
    body: bytes, encoding: str, selectors: Iterable[str], page_pass: Callable[[bytes], PagePass], all_text: bool
) -> bytes:
    """The text of a page without the first MAX_ELEMENTS elements that the selectors match. `all_text`: not its main
    text. The tree of the page has to fit (`tree_fits`)."""
    tree = html_tree(to_utf8(body, encoding))
    elements = [node for selector in selectors for node in css(tree.root, selector)][:MAX_ELEMENTS]
    if any(node.tag in ("html", "body") for node in elements):
        return b""
    chosen = {node.mem_id for node in elements}
    # An element within another one is gone with it: its memory is freed.
    for node in [node for node in elements if not _is_within(node, chosen)]:
        if node.mem_id in chosen:
            chosen.discard(node.mem_id)
            node.decompose()
    page = page_pass((tree.html or "").encode("utf-8", "replace"))
    return bytes(page.text if all_text else page.main_text or page.text)


def _is_within(node: Any, chosen: set[int]) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.mem_id in chosen:
            return True
        parent = parent.parent
    return False
