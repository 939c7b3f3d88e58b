"""Some of the packed links of a message; layout: ../README.md."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate


def _spans(packed: bytes, count: int) -> tuple[Sequence[int], Sequence[int]]:
    """Starts and ends of concatenated values."""
    ends = struct.unpack(f"<{count}I", packed)
    return [0, *ends[:-1]], ends


def _pack(numbers: Iterable[int]) -> bytes:
    listed = list(numbers)
    return struct.pack(f"<{len(listed)}I", *listed)


def links_at(
    chosen: Sequence[int],
    fingerprints: bytes,
    urls: bytes,
    url_ends: bytes,
    host_spans: bytes,
    anchors: bytes,
    anchor_ends: bytes,
    flags: bytes,
    lastmods: bytes,
    priorities: bytes,
) -> tuple[bytes, ...]:
    """The columns, in the order of the arguments, of the links at these rising indices. Empty columns behind the places
    of hosts stay empty. ValueError for columns that do not fit together and for an index beyond them. O(chosen)."""
    count = len(fingerprints) // 16
    try:
        hosts = struct.unpack(f"<{2 * count}I", host_spans)
        starts, ends = _spans(url_ends, count)
        text_starts, text_ends = _spans(anchor_ends, count) if anchor_ends or anchors else ([], ())
        kept_urls = [urls[starts[at] : ends[at]] for at in chosen]
    except (struct.error, IndexError) as error:
        raise ValueError("columns of links that do not fit together") from error
    texts = [anchors[text_starts[at] : text_ends[at]] for at in chosen] if text_ends else []
    new_ends = list(accumulate(map(len, kept_urls)))
    shifts = [end - ends[at] for at, end in zip(chosen, new_ends, strict=True)]
    return (
        b"".join([fingerprints[16 * at : 16 * at + 16] for at in chosen]),
        b"".join(kept_urls),
        _pack(new_ends),
        _pack(hosts[2 * at + part] + shift for at, shift in zip(chosen, shifts, strict=True) for part in (0, 1)),
        b"".join(texts),
        _pack(accumulate(map(len, texts))),
        bytes([flags[at] for at in chosen]) if flags else b"",
        b"".join([lastmods[8 * at : 8 * at + 8] for at in chosen]) if lastmods else b"",
        bytes([priorities[at] for at in chosen]) if priorities else b"",
    )
