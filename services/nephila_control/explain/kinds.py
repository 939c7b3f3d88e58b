"""The verdict of `nephila explain` in one word. Pure."""

from __future__ import annotations

from typing import Literal

from nephila.kernel.reasons.row import RowKind

Kind = Literal[
    RowKind,
    "watched", "gone", "copy_kept", "trap_shape", "trap_quarantine", "seen",
    "leased", "fetched", "ending", "interrupted",
    "paused", "budget_job", "budget_host", "budget_domain", "quota", "window", "queue_full",
    "retry", "backing_off", "delay", "pause", "robots_retry", "address_line", "robots_first", "behind", "next",
    "out_of_scope", "too_deep", "copy", "unknown",
]  # fmt: skip
"""The verdict in one word: of a row, or of a URL without one. A kind is never removed, because programs compare it."""
