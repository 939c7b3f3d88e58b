"""The content codings that a request asks for.

A module of its own: a crawl with the native fetcher loads no decoder of `response.decode`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Final

from nephila.native import HAS_HTTP_CLIENT as HAS_NATIVE


def _has(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        return False


HAS_BROTLI: Final = _has("brotli")
HAS_ZSTD: Final = sys.version_info >= (3, 14) or _has("backports.zstd")
"""Whether Python can decode these, by the extra `codings`. The native fetcher decodes all itself."""
ACCEPT_ENCODING: Final = ", ".join(
    ["gzip", "deflate", *["br"] * (HAS_NATIVE or HAS_BROTLI), *["zstd"] * (HAS_NATIVE or HAS_ZSTD)]
)
