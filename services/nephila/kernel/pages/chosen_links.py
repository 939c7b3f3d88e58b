"""Some of the links of a page: parts of a message go to different partitions, and links that were sent before stay out.

The links of a message are columns of bytes, so a choice copies parts of each column. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from nephila.kernel.messages import Outlinks


def only(message: Outlinks, chosen: Sequence[int]) -> Outlinks:
    """A copy with the links at these rising indices alone. O(chosen)."""
    fingerprints: list[bytes] = []
    urls: list[bytes] = []
    anchors: list[bytes] = []
    url_ends: list[int] = []
    anchor_ends: list[int] = []
    spans: list[int] = []
    ends = memoryview(message.url_ends).cast("I")
    texts = memoryview(message.anchor_ends).cast("I")  # seeds of a file have none
    hosts = memoryview(message.host_spans).cast("I")
    at = text_at = 0
    for i in chosen:
        fingerprints.append(message.fingerprints[16 * i : 16 * i + 16])
        start, end = ends[i - 1] if i else 0, ends[i]
        urls.append(message.urls[start:end])
        spans += (hosts[2 * i] - start + at, hosts[2 * i + 1] - start + at)
        at += end - start
        url_ends.append(at)
        if texts:
            start, end = texts[i - 1] if i else 0, texts[i]
            anchors.append(message.anchors[start:end])
            text_at += end - start
            anchor_ends.append(text_at)
    return Outlinks(
        job=message.job,
        parent_key=message.parent_key,
        parent_url=message.parent_url,
        depth=message.depth,
        fingerprints=b"".join(fingerprints),
        urls=b"".join(urls),
        url_ends=_packed(url_ends),
        host_spans=_packed(spans),
        anchors=b"".join(anchors),
        anchor_ends=_packed(anchor_ends),
        flags=bytes([message.flags[i] for i in chosen]) if message.flags else b"",
        lastmods=b"".join([message.lastmods[8 * i : 8 * i + 8] for i in chosen]) if message.lastmods else b"",
        priorities=bytes([message.priorities[i] for i in chosen]) if message.priorities else b"",
        source=message.source,
        parent_priority=message.parent_priority,
        context=message.context,
        next_pages=message.next_pages,
        next_always=message.next_always,
    )


def _packed(numbers: list[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)
