"""The fallback of the native core in Python on libraries: the same calls, slower, and simpler main text.

URLs and fingerprints, robots rules, links, titles and directives are the same. Checkpoints have a format of their own.
"""

from __future__ import annotations

from nephila.native.fallback.hosts import HostStore
from nephila.native.fallback.keywords import KeywordSet
from nephila.native.fallback.link_buffers import links_at
from nephila.native.fallback.link_scope import LinkScope
from nephila.native.fallback.linked_hosts import LinkedHosts
from nephila.native.fallback.near_copies import NearCopyIndex, simhash
from nephila.native.fallback.pages.page import TAGS, PagePass, page_pass
from nephila.native.fallback.pattern_filter import PatternFilter
from nephila.native.fallback.robots import RobotsRules, robots_rule, robots_sitemaps
from nephila.native.fallback.seed_lines import seed_links
from nephila.native.fallback.spelling import spelled
from nephila.native.fallback.srcset import best_of_srcset, candidates_of_srcset
from nephila.native.fallback.structure import blocks, markdown, recoded, structure_by
from nephila.native.fallback.texts import is_storable, is_tidy, quoted, sniff_encoding, to_utf8, trimmed
from nephila.native.fallback.trie import Trie
from nephila.native.fallback.urls import UrlError, UrlParts, form_encoded, host_digests, parse_any, parse_url, query_in

__all__ = [
    "TAGS",
    "HostStore",
    "KeywordSet",
    "LinkScope",
    "LinkedHosts",
    "NearCopyIndex",
    "PagePass",
    "PatternFilter",
    "RobotsRules",
    "Trie",
    "UrlError",
    "UrlParts",
    "best_of_srcset",
    "blocks",
    "candidates_of_srcset",
    "form_encoded",
    "host_digests",
    "is_storable",
    "is_tidy",
    "links_at",
    "markdown",
    "page_pass",
    "parse_any",
    "parse_url",
    "query_in",
    "quoted",
    "recoded",
    "robots_rule",
    "robots_sitemaps",
    "seed_links",
    "simhash",
    "sniff_encoding",
    "spelled",
    "structure_by",
    "to_utf8",
    "trimmed",
]
