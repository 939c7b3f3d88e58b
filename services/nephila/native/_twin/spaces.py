"""White space of texts as values of rules have it, and a text as JSON; see core/src/spaces.rs."""

from __future__ import annotations

import json

_CONTROLS = tuple(chr(code) for code in (*range(32), 127))


def is_tidy(text: str) -> bool:
    """ASCII with no white space but single spaces."""
    return text.isascii() and "  " not in text and not any(code in text for code in _CONTROLS)


def trimmed(texts: list[str], most: int) -> list[str]:
    """Each text cut and collapsed within its lines, without empty lines; empty texts are left out."""
    return [found for text in texts if (found := _collapsed(_valid(text)[:most]))]


def _collapsed(text: str) -> str:
    return "\n".join([line for part in text.split("\n") if (line := " ".join(part.split()))])


def quoted(text: str) -> bytes:
    """A text as JSON has it: UTF-8 in quotes."""
    return json.dumps(_valid(text), ensure_ascii=False).encode()


def _valid(text: str) -> str:
    text.encode()
    return text
