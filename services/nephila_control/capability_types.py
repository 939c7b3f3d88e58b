"""What works in a program, as an answer."""

from __future__ import annotations

from typing import Literal

import msgspec

CapabilityName = Literal["change", "write", "rules", "rows", "stored_pages", "extract", "commit", "browser"]
"""change: jobs and settings. write: anything else that this API changes, as labels of an audit. extract: items of
stored pages. commit: rules of the studio into git."""


class Capability(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a program can do or not."""

    name: CapabilityName
    works: bool
    reason: str = ""
    """Why it does not work; empty if it does."""
    remedy: str = ""
    changes: bool = False
    """True if it changes something, so that a read-only server does not offer it."""


class Capabilities(msgspec.Struct, kw_only=True):
    """What works in a program."""

    capabilities: list[Capability]
