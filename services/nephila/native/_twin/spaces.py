"""Whether a text has white space that collapsing would change; see core/src/spaces.rs."""

from __future__ import annotations

_CONTROLS = tuple(chr(code) for code in (*range(32), 127))


def is_tidy(text: str) -> bool:
    """ASCII with no white space but single spaces."""
    return text.isascii() and "  " not in text and not any(code in text for code in _CONTROLS)
