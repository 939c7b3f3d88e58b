"""The scope of a job has no form of its own in the fallback: Python decides about each link."""

from __future__ import annotations

from typing import Any


class LinkScope:
    """Refuses every scope with ValueError, as the core does for a pattern that it cannot search."""

    def __init__(self, *scope: Any) -> None:
        raise ValueError("the fallback has no native scopes")
