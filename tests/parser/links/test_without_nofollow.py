"""Messages of links without those that say nofollow: each link that stays keeps all that belongs to it."""

from __future__ import annotations

import struct

import msgspec
import pytest
from nephila.kernel import messages as m
from nephila.parser.links.link_list import UnresolvedLink, pack, resolve, run_to_end, without_nofollow

ENTRIES = [
    UnresolvedLink("http://one.test/first", 11.0, "the first"),
    UnresolvedLink("http://second.test/", 0.0, ""),
    UnresolvedLink("http://third.test/a/long/path", 33.0, "third"),
    UnresolvedLink("http://x.test/4", 44.0, "the fourth"),
]
PAGE = m.Page(job="t", url_key=b"k" * 16, url="http://a.test/")


def message(entries: list[UnresolvedLink], flags: bytes, priorities: bytes) -> m.Outlinks:
    """Links of one page with these flags and priorities."""
    links = pack(PAGE, run_to_end(resolve(PAGE.url, entries)), 1, m.LinkSource.FEED)
    return msgspec.structs.replace(links, flags=flags, priorities=priorities)


@pytest.mark.parametrize("kept", [(), (0,), (3,), (1, 2), (0, 2, 3)])
def test_what_stays_equals_a_message_of_these_links(kept: tuple[int, ...]) -> None:
    """URL, host, fingerprint, text, date and priority stay with their link."""
    flags = bytes(0b10 if at in kept else 0b11 for at in range(4))
    found = without_nofollow(message(ENTRIES, flags, b"\x01\x02\x03\x04"))
    expected = message([ENTRIES[at] for at in kept], b"\x02" * len(kept), bytes(at + 1 for at in kept))
    dates = struct.pack(f"<{len(kept)}d", *(ENTRIES[at].lastmod for at in kept))
    assert found == msgspec.structs.replace(expected, lastmods=dates)


def test_a_message_without_dates_and_priorities_gets_none() -> None:
    """Both are optional."""
    entries = [entry._replace(lastmod=0.0) for entry in ENTRIES]
    found = without_nofollow(message(entries, b"\x00\x01\x00\x01", b""))
    assert found == message([entries[0], entries[2]], b"\x00\x00", b"")


def test_a_message_without_nofollow_is_returned_itself() -> None:
    """Nothing is copied."""
    links = message(ENTRIES, bytes(4), b"")
    assert without_nofollow(links) is links
