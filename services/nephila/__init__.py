"""Nephila: a Kubernetes-native web crawler whose four services also run as one program.

From Python: `crawl`, `fetch`, `extract`, `search` and the types that they return; loaded at the first use.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

__all__ = [
    "Crawl", "End", "Found", "Fragment", "Hit", "Link", "Options", "Page", "UsageError", "UserError", "__version__",
    "crawl", "extract", "fetch", "search",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'nephila' has no attribute {name!r}")
    return getattr(importlib.import_module("nephila.api"), name)


def __dir__() -> list[str]:
    return __all__
