"""The native core and its fallback, for the contract of both; `core_only` marks tests that only the core must pass."""

from __future__ import annotations

import importlib
import struct
from types import ModuleType
from typing import Any, NamedTuple

import pytest


def load(name: str) -> ModuleType:
    """The implementation `name`, or a skip that says why not."""
    try:
        return importlib.import_module({"rust": "nephila.native._core", "python": "nephila.native.fallback"}[name])
    except ImportError:
        pytest.skip("the Rust core is not built here: no cargo at install")


@pytest.fixture(params=["rust", "python"])
def core(request: pytest.FixtureRequest) -> ModuleType:
    """Each implementation in turn."""
    return load(request.param)


core_only = pytest.mark.parametrize("core", ["rust"], indirect=True)


class Link(NamedTuple):
    """One row of the link buffers."""

    url: str
    host: str
    anchor: str
    nofollow: bool
    kind: int
    fingerprint: bytes


class Line(NamedTuple):
    """One row of `text_lines` with its text."""

    text: str
    link_bytes: int
    tag: str
    flags: int


def links_of(page: Any) -> list[Link]:
    """The link buffers unpacked."""
    count = page.link_count
    ends = struct.unpack(f"<{count}I", page.link_ends)
    spans = struct.unpack(f"<{2 * count}I", page.host_spans)
    anchor_ends = struct.unpack(f"<{count}I", page.anchor_ends)
    rows, start, anchor = [], 0, 0
    for i in range(count):
        flags = page.link_flags[i]
        rows.append(
            Link(
                page.link_urls[start : ends[i]].decode(),
                page.link_urls[spans[2 * i] : spans[2 * i + 1]].decode(),
                page.anchors[anchor : anchor_ends[i]].decode(),
                bool(flags & 1),
                flags >> 1 & 7,
                page.fingerprints[16 * i : 16 * i + 16],
            )
        )
        start, anchor = ends[i], anchor_ends[i]
    return rows


def lines_of(page: Any) -> list[Line]:
    """The text lines unpacked."""
    from nephila.native.fallback import TAGS

    return [
        Line(page.text[start : start + size].decode(), link, TAGS[tag], flags)
        for start, size, link, tag, flags in struct.iter_unpack("<IIIHH", page.text_lines)
    ]


def urls_of(page: Any) -> list[str]:
    """The hrefs alone."""
    return [link.url for link in links_of(page)]


def check_page(page: Any) -> None:
    """Every promise of the buffer layouts, in plain lines."""
    lines = list(struct.iter_unpack("<IIIHH", page.text_lines))
    assert page.text == b"\n".join(page.text[start : start + size] for start, size, *_ in lines)
    for start, size, link, _tag, flags in lines:
        part = page.text[start : start + size]
        assert size > 0
        assert link <= size
        assert flags < 128
        assert not part.endswith((b" ", b"\t", b"\n", b"\f"))
        part.decode()
    count = page.link_count
    ends = struct.unpack(f"<{count}I", page.link_ends)
    anchor_ends = struct.unpack(f"<{count}I", page.anchor_ends)
    assert list(ends) == sorted(ends)
    assert list(anchor_ends) == sorted(anchor_ends)
    assert (ends[-1] if ends else 0) == len(page.link_urls)
    assert (anchor_ends[-1] if anchor_ends else 0) == len(page.anchors)
    assert len(page.fingerprints) == 16 * count == 16 * len(page.link_flags)
    links = links_of(page)
    assert len({link.fingerprint for link in links}) == count
    for link in links:
        assert link.url.startswith(("http://", "https://"))
        assert link.url.isascii()
        assert "#" not in link.url
        assert link.host
        assert len(link.anchor.encode()) <= 200
        assert link.kind in (0, 1, 2, 3, 5)
