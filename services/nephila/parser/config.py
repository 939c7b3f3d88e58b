"""The parser's settings; every one bounds what a single page may cost."""

from __future__ import annotations

import msgspec

from nephila.kernel.runtime.config import Positive
from nephila.kernel.topics import DEFAULT_PARTITIONS


class ParserConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the parser; the chart's values use the same names."""

    window: Positive = 4096
    """Pages taken and not acked yet. Storage and frontier commit once a second at most, so this is also the ceiling
    on pages per second; an unacked page holds its text and links, no longer its body."""

    partitions: Positive = DEFAULT_PARTITIONS
    """Partitions of the keyed topics, a power of two, the same everywhere; a dead page's record is sent by it."""

    max_inline_bytes: Positive = 8 << 20
    """A longer page is read in a child process: the page pass takes up to 8 ms a megabyte, mostly 1 to 2."""

    max_links: Positive = 10_000
    """Links taken from one page, in document order; a trap page lists millions."""

    max_list_urls: Positive = 55_000
    """URLs taken from one sitemap: the protocol allows 50,000, and sites that miscount by a few are many."""

    max_list_bytes: Positive = 55 << 20
    """Bytes read of one sitemap or feed, unpacked: the protocol allows 50 MB; of a longer one the start is kept."""

    max_text_bytes: Positive = 4_000_000
    """UTF-8 bytes of visible text kept of one page; the largest real articles have a tenth of it."""

    full_text: bool = False
    """Keep all visible text of a page instead of its main text. What a recrawl compares
    is the main text all the same."""

    max_title_chars: Positive = 1_000
    """Characters of a title; browsers show about sixty."""

    max_meta_chars: Positive = 2_000
    """Characters of one metadata value (description, canonical URL, an OpenGraph property)."""

    max_meta_entries: Positive = 100
    """Metadata entries kept of one page; real pages have under forty."""

    markdown: bool = False
    """Make Markdown of the main text of HTML pages, for the format of that name: a tree per page, 5-20 ms."""

    robots_agent: str = "nephila"
    """Product token that meta robots and X-Robots-Tag may address; the same as in robots.txt."""

    rule_scripts: bool = False
    """Scripts of rules are run, in a process without files and network: code of whoever writes the rules."""
