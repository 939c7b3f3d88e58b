"""Outlinks as a parser packs them, made of plain URLs."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from typing import Any

from nephila.kernel.messages import Outlinks
from nephila.native import parse_url


def outlinks(
    *urls: str,
    job: str = "j",
    depth: int = 1,
    anchors: Sequence[str] = (),
    parent_key: bytes = b"p" * 16,
    parent_url: str = "http://parent/",
    **fields: Any,
) -> Outlinks:
    """The links of one page."""
    parts = [parse_url(url) for url in urls]
    packed, ends, spans = b"", [], []
    for one in parts:
        start = len(packed) + one.href.index("//") + 2
        spans += [start, start + len(one.host_key)]
        packed += one.href.encode()
        ends.append(len(packed))
    texts, text_ends = b"", []
    for text in anchors or [""] * len(urls):
        texts += text.encode()
        text_ends.append(len(texts))
    fields.setdefault("flags", bytes(len(urls)))
    return Outlinks(
        job,
        parent_key,
        parent_url,
        depth,
        fingerprints=b"".join(one.fingerprint for one in parts),
        urls=packed,
        url_ends=struct.pack(f"<{len(ends)}I", *ends),
        host_spans=struct.pack(f"<{len(spans)}I", *spans),
        anchors=texts,
        anchor_ends=struct.pack(f"<{len(text_ends)}I", *text_ends),
        **fields,
    )


def urls_of(links: Outlinks) -> list[str]:
    """The URLs of a message."""
    ends = [0, *memoryview(links.url_ends).cast("I")]
    return [links.urls[start:end].decode() for start, end in itertools.pairwise(ends)]
