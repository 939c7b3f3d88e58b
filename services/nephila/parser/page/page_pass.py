"""The page pass of the native core and its result, as types.

The core itself (`nephila.native`) is chosen in `build()`; tests pass a fake with the same attributes.
"""

from __future__ import annotations

from typing import Protocol


class PagePass(Protocol):
    """Result of one pass over a document. Link buffers are packed as in `Outlinks`; each attribute is lazy."""

    @property
    def title(self) -> str:
        """Text of the first <title>, white space collapsed."""

    @property
    def lang(self) -> str:
        """lang attribute of <html>."""

    @property
    def base(self) -> str:
        """Absolute URL that links resolve against."""

    @property
    def canonical(self) -> str:
        """Absolute URL of <link rel=canonical>."""

    @property
    def robots(self) -> str:
        """Contents of <meta name=robots> and of the one of the agent's name, lower case, joined by commas."""

    @property
    def description(self) -> str:
        """Content of <meta name=description>."""

    @property
    def meta(self) -> list[tuple[str, str]]:
        """Name (or property) in lower case and content of <meta> elements that describe the page, in order."""

    @property
    def refresh(self) -> str:
        """Absolute URL of <meta http-equiv=refresh>."""

    @property
    def depth(self) -> int:
        """Upper bound of the nesting depth of any tree of the page. 2^32 - 1: no bound; building a tree may take time
        quadratic in the page's size."""

    @property
    def links_left_out(self) -> int:
        """Number of links beyond the limit."""

    @property
    def text(self) -> bytes:
        """Visible text, UTF-8, one line per block."""

    @property
    def text_lines(self) -> bytes:
        """Packed <IIIHH per line of text: start, length, link bytes, tag, flags."""

    @property
    def main_lines(self) -> bytes:
        """uint32 index of each line of the main text, ascending."""

    @property
    def main_text(self) -> bytes:
        """The lines of the main text; empty if the page has none."""

    @property
    def link_count(self) -> int:
        """Number of links, each fingerprint once."""

    @property
    def link_urls(self) -> bytes:
        """URLs one after the other, UTF-8."""

    @property
    def link_ends(self) -> bytes:
        """uint32 end of each URL."""

    @property
    def fingerprints(self) -> bytes:
        """16 bytes per link."""

    @property
    def host_spans(self) -> bytes:
        """Two uint32 per link: start and end of the host key within the URLs."""

    @property
    def anchors(self) -> bytes:
        """Anchor texts one after the other, UTF-8."""

    @property
    def anchor_ends(self) -> bytes:
        """uint32 end of each anchor text."""

    @property
    def link_flags(self) -> bytes:
        """One byte per link: bit 0 nofollow, bits 1-3 the kind, bits 4 and 5 the place (`kernel.linkplaces`)."""


class PageCall(Protocol):
    """The page pass: one call per document."""

    def __call__(
        self, body: bytes, url: str, encoding: str, *, max_links: int, max_text_bytes: int, agent: str
    ) -> PagePass: ...
