"""WARC files of other projects: good ones are read as warcio reads them, bad ones are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nephila_rules.warcs import ArchivedPage, BadRecord, read_warc

pytestmark = pytest.mark.conformance

ARC = "ARC, not WARC: this older format is not read"
LZ4 = "packed by lz4, which is not read"

BAD: dict[str, list[str]] = {
    "block-sized-records.warc.lz4": [LZ4],
    "warcfile.warc.lz4": [LZ4],
    "clipped.warc.gz": ["broken: the gzip stream ends early"],
    "bad.arc": [ARC],
    "example.arc": [ARC],
    "example.arc.gz": [ARC],
    "example-space-in-url.arc": [ARC],
    # Its deflate stream has ended; only the trailer is cut off.
    "example-trunc.warc": ["no record begins here"],
}
"""File: what is told of it. Of all others every page is read."""

DIGESTS = {"clueweb-quirk.warc.gz": 29, "example-trunc.warc": 1, "example-wrong-chunks.warc.gz": 1}
"""File: pages whose digests are those of other bytes, which is told with them."""

BEYOND_WARCIO = {
    "example-bad-non-chunked.warc.gz": 1,
    "example-bad.warc.gz.bad": 2,
    "example-wrong-chunks.warc.gz": 1,
    **dict.fromkeys(BAD, 0),
    "example-trunc.warc": 1,
}
"""File: pages that we read where warcio gives up, or reads less or more."""


def archives(data: Path) -> list[Path]:
    """All of them."""
    return sorted(path for path in (data / "warcs").rglob("*") if ".warc" in path.name or ".arc" in path.name)


def by_warcio(path: Path) -> list[tuple[str, bytes]]:
    """Addresses and bodies that warcio finds."""
    iterator: Any = pytest.importorskip("warcio.archiveiterator").ArchiveIterator
    found = []
    with path.open("rb") as file:
        for record in iterator(file):
            url = (record.rec_headers.get_header("WARC-Target-URI") or "").strip("<>")
            if record.rec_type in ("response", "resource") and url.startswith("http"):
                found.append((url, record.content_stream().read()))
    return found


def test_archives(conformance_data: Path) -> None:
    """Pages as warcio has them, byte for byte; faults as listed."""
    pages = 0
    for path in archives(conformance_data):
        with path.open("rb") as file:
            found = list(read_warc(file))
        assert [one.reason for one in found if isinstance(one, BadRecord)] == BAD.get(path.name, []), path.name
        good = [one for one in found if isinstance(one, ArchivedPage)]
        assert sum(bool(one.problem) for one in good) == DIGESTS.get(path.name, 0), path.name
        pages += len(good)
        if path.name in BEYOND_WARCIO:
            assert len(good) == BEYOND_WARCIO[path.name], path.name
        else:
            assert [(one.url, one.body) for one in good] == by_warcio(path), path.name
    print(f"archives: {pages} pages")
    assert pages == 76


def test_every_archive_torn_anywhere(conformance_data: Path) -> None:
    """Cut at thirty places each: pages or faults, and no more pages than there were."""
    import io

    for path in archives(conformance_data):
        whole = path.read_bytes()[:60_000]
        for part in range(30):
            found = list(read_warc(io.BytesIO(whole[: len(whole) * part // 30])))
            assert len(found) < 100
