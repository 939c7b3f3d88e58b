"""Robots directives of a page: meta robots and X-Robots-Tag, in the same syntax.

Invariants: a directive counts if it names no agent or the crawler's product token; of contradicting directives the
stricter one counts. Only following is decided here: `noindex` is about a search index and does not prevent storing.
"""

from __future__ import annotations

from typing import Final

# Directives with a value after a colon, which must not be taken for an agent's name.
_VALUED: Final = frozenset(("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"))
_NO_FOLLOW: Final = frozenset(("nofollow", "none"))


def nofollow(directives: str, token: str) -> bool:
    """True when `directives` forbids following links to every crawler or to the one called `token`.

    The text is "nofollow, noindex" or "googlebot: nofollow, otherbot: none"; an agent's name applies to the directives
    after it, up to the next name or line end.
    """
    text = directives.lower()
    if "nofollow" not in text and "none" not in text:
        return False
    for line in text.splitlines():
        ours = True
        for part in line.replace(";", ",").split(","):
            name, colon, rest = part.strip().partition(":")
            directive = name.strip()
            if colon and directive not in _VALUED:
                ours = directive == token
                directive = rest.strip()
            if ours and not _NO_FOLLOW.isdisjoint(directive.split()):
                return True
    return False
