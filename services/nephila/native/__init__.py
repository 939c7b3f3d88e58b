"""The native core: page pass, URL identity, character sets, robots rules, MD5 trie, host store; or its fallback.

The core (core/, Rust) and the fallback (fallback/, Python) have the same calls. Host keys, canonical URLs and
fingerprints are equal. Main text and checkpoint files differ. The implementation is chosen once, at import:
`NEPHILA_NATIVE=python` takes the fallback, `NEPHILA_NATIVE=rust` makes a missing core an ImportError, otherwise the
core is taken where it is built. Buffer layouts: README.md.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from nephila.native.pass_options import PassOptions

KEY_VERSION: Final = 2
"""Version of the canonical form, and with it of every fingerprint. docs/identity.md."""

_wanted = os.environ.get("NEPHILA_NATIVE", "").strip().lower()
if _wanted not in ("", "python", "rust"):
    raise ImportError(f"NEPHILA_NATIVE must be 'python' or 'rust', not {_wanted!r}")

IMPLEMENTATION: str

HAS_HTTP_CLIENT: bool
"""Whether `_core.HttpClient` is there: the core on a system with poll. The fallback has none."""

if TYPE_CHECKING:
    from nephila.native._core import (
        HostStore,
        KeywordSet,
        LinkedHosts,
        LinkScope,
        NearCopyIndex,
        PagePass,
        PatternFilter,
        RobotsRules,
        Trie,
        UrlError,
        UrlParts,
        best_of_srcset,
        blocks,
        candidates_of_srcset,
        form_encoded,
        host_digests,
        is_storable,
        is_tidy,
        links_at,
        markdown,
        page_pass,
        parse_any,
        parse_url,
        query_in,
        quoted,
        recoded,
        robots_rule,
        robots_sitemaps,
        seed_links,
        simhash,
        sniff_encoding,
        spelled,
        structure_by,
        to_utf8,
        trimmed,
    )
else:
    try:
        if _wanted == "python":
            raise ImportError("the fallback was requested")
        from nephila.native import _core as _chosen

        IMPLEMENTATION = "rust"
    except ImportError as _error:
        if _wanted == "rust":
            raise ImportError(
                "NEPHILA_NATIVE=rust, but the native core is not built: pip install needs cargo"
            ) from _error
        from nephila.native import fallback as _chosen

        IMPLEMENTATION = "python"
    HAS_HTTP_CLIENT = hasattr(_chosen, "HttpClient")
    HostStore = _chosen.HostStore
    KeywordSet = _chosen.KeywordSet
    LinkedHosts = _chosen.LinkedHosts
    LinkScope = _chosen.LinkScope
    NearCopyIndex = _chosen.NearCopyIndex
    PagePass = _chosen.PagePass
    PatternFilter = _chosen.PatternFilter
    RobotsRules = _chosen.RobotsRules
    Trie = _chosen.Trie
    UrlError = _chosen.UrlError
    UrlParts = _chosen.UrlParts
    best_of_srcset = _chosen.best_of_srcset
    blocks = _chosen.blocks
    candidates_of_srcset = _chosen.candidates_of_srcset
    form_encoded = _chosen.form_encoded
    host_digests = _chosen.host_digests
    is_storable = _chosen.is_storable
    is_tidy = _chosen.is_tidy
    links_at = _chosen.links_at
    markdown = _chosen.markdown
    page_pass = _chosen.page_pass
    parse_any = _chosen.parse_any
    parse_url = _chosen.parse_url
    query_in = _chosen.query_in
    quoted = _chosen.quoted
    recoded = _chosen.recoded
    robots_rule = _chosen.robots_rule
    robots_sitemaps = _chosen.robots_sitemaps
    seed_links = _chosen.seed_links
    simhash = _chosen.simhash
    sniff_encoding = _chosen.sniff_encoding
    spelled = _chosen.spelled
    structure_by = _chosen.structure_by
    to_utf8 = _chosen.to_utf8
    trimmed = _chosen.trimmed


_MANIFESTS: Final = {b"NPHQMAN\0": "rust", b"NPHFALL\0": "python"}
_NAMES: Final = {"rust": "the native core", "python": "the Python fallback"}


def check_implementation(manifest: bytes) -> None:
    """ValueError if the manifest of a host store is of the other implementation: their files differ."""
    wrote = _MANIFESTS.get(manifest[:8], IMPLEMENTATION)
    if wrote != IMPLEMENTATION:
        raise ValueError(f"written by {_NAMES[wrote]}, this program runs {_NAMES[IMPLEMENTATION]}")


def partition_of(fingerprint: bytes, partitions: int) -> int:
    """The partition of a fingerprint: its top log2(partitions) bits. `partitions` is a power of two up to 2**32.

    ValueError for anything else. O(1).
    """
    bits = partitions.bit_length() - 1
    if partitions < 1 or partitions != 1 << bits or bits > 32:
        raise ValueError(f"partitions must be a power of two from 1 to 2**32, not {partitions}")
    return int.from_bytes(fingerprint[:4], "big") >> (32 - bits)


__all__ = [
    "HAS_HTTP_CLIENT",
    "IMPLEMENTATION",
    "KEY_VERSION",
    "HostStore",
    "KeywordSet",
    "LinkScope",
    "LinkedHosts",
    "NearCopyIndex",
    "PagePass",
    "PassOptions",
    "PatternFilter",
    "RobotsRules",
    "Trie",
    "UrlError",
    "UrlParts",
    "best_of_srcset",
    "blocks",
    "candidates_of_srcset",
    "check_implementation",
    "form_encoded",
    "host_digests",
    "is_storable",
    "is_tidy",
    "links_at",
    "markdown",
    "page_pass",
    "parse_any",
    "parse_url",
    "partition_of",
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
