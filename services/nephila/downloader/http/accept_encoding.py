"""The content codings that a request asks for.

A module of its own: a crawl with the native fetcher loads no decoder of `response.decode`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Final

HAS_ZSTD: Final = sys.version_info >= (3, 14) or find_spec("backports.zstd") is not None
"""False where no wheel of the library exists for this platform."""
ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd" if HAS_ZSTD else "gzip, deflate, br"
