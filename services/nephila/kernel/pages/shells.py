"""Shells: pages of a few words whose content comes by scripts. Pure.

A menu or a hint to switch scripts on has at most SHELL_WORDS distinct words. That is a guess about a page that was not
rendered; only a comparison with its rendered copy proves it (`downloader/browser/auto`).
"""

from __future__ import annotations

import re
from typing import Final

SHELL_WORDS: Final = 50
"""Distinct words that a page without its content may have."""
SHELL: Final = "shell"
"""Entry of the metadata of such a page."""
SHELL_LINKS: Final = 3
"""Links that it may have: the content brings the others."""
_MAX_TEXT_BYTES: Final = 40 * SHELL_WORDS
_SCRIPT: Final = re.compile(rb"<script[\s>]", re.IGNORECASE)


def has_few_words(words: frozenset[bytes]) -> bool:
    """Whether a page may be a shell by its distinct words."""
    return len(words) <= SHELL_WORDS


def is_shell(text: bytes, body: bytes) -> bool:
    """Whether a page with at most SHELL_LINKS links looks like a shell: few words, and scripts. O(body) where the text
    is short, else O(1)."""
    if len(text) > _MAX_TEXT_BYTES or not has_few_words(frozenset(text.split())):
        return False
    return _SCRIPT.search(body) is not None
