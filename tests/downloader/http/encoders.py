"""Bodies packed as servers pack them, by the value of Content-Encoding."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import brotli
import zstandard

ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "gzip, br": lambda data: brotli.compress(gzip.compress(data)),
    "br, gzip": lambda data: gzip.compress(brotli.compress(data)),
    "zstd, gzip": lambda data: gzip.compress(zstandard.compress(data)),
}
