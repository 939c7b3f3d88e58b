"""Settings of the parser; most of them bound the cost of a single page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from nephila.kernel.runtime.config import Positive
from nephila.kernel.topics import DEFAULT_PARTITIONS

if TYPE_CHECKING:
    from nephila.native import PassOptions


class ParserConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the parser; the chart's values use the same names."""

    window: Positive = 4096
    """Pages that are received and not yet acknowledged. Storage and frontier commit once a second at most, so this
    is also the maximum of pages per second. Such a page holds its text and links, no longer its body."""

    partitions: Positive = DEFAULT_PARTITIONS
    """Partitions of the keyed topics, a power of two, the same for all services; determines the partition of the
    record of a dead letter."""

    max_inline_bytes: Positive = 8 << 20
    """A longer page is parsed in a child process: parsing takes 1-2 ms per MB, at most 8 ms."""

    max_links: Positive = 10_000
    """Links taken from one page, in document order; a trap page may list millions."""

    max_list_urls: Positive = 55_000
    """URLs taken from one sitemap: the protocol allows 50,000, and many sites exceed it by a few."""

    max_list_bytes: Positive = 55 << 20
    """Bytes read of one uncompressed sitemap or feed: the protocol allows 50 MB. Of a longer one the beginning is
    used."""

    max_text_bytes: Positive = 4_000_000
    """UTF-8 bytes of visible text stored of one page; the largest real articles have a tenth of it."""

    full_text: bool = False
    """Store all visible text of a page instead of its main text. A recrawl compares the main text in both cases."""

    hidden_text: bool = False
    """Keep text that a page hides by its own attributes (hidden, display: none, visibility: hidden, closed dialogs)."""

    max_title_chars: Positive = 1_000
    """Characters of a title; browsers show about sixty."""

    max_meta_chars: Positive = 2_000
    """Characters of one metadata value (description, canonical URL, an OpenGraph property)."""

    max_comments_chars: Positive = 100_000
    """Characters of the comments of readers stored of one article."""

    max_meta_entries: Positive = 100
    """Metadata entries stored of one page; real pages have fewer than forty."""

    robots_agent: str = "nephila"
    """Product token that meta robots and X-Robots-Tag may address; the same as for robots.txt."""

    rule_scripts: bool = False
    """Run the scripts of rules, in a process without files and network. The authors of the rules are then trusted
    with CPU time."""

    rule_functions_dir: str = ""
    """Directory of Python files whose functions rules may call by name (`py`). They are loaded with the rights of this
    process and called in a child process. Empty: none are called."""

    @property
    def pass_options(self) -> PassOptions:
        """Options of the page pass, with main text. The page threads of the core read them, too."""
        from nephila.native import PassOptions

        return PassOptions(self.max_links, self.max_text_bytes, agent=self.robots_agent, hidden_text=self.hidden_text)
