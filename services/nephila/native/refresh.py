"""The URL of a declarative refresh: of `<meta http-equiv=refresh>` in the fallback, and of the header Refresh. Pure."""

from __future__ import annotations

import re
from typing import Final

SPACES: Final = " \t\n\r\f"
_REFRESH: Final = re.compile(
    r"[ \t\n\r\f]*+(?:[0-9]+|(?=\.))[0-9.]*+(?=[ \t\n\r\f;,])[ \t\n\r\f]*+(?:[;,][ \t\n\r\f]*+)?+(?=.)", re.DOTALL
)
_REFRESH_URL: Final = re.compile(r"url[ \t\n\r\f]*", re.IGNORECASE)


def refresh_target(content: str) -> str | None:
    """The URL of a refresh, by the standard's "shared declarative refresh steps"; None without one."""
    match = _REFRESH.match(content)
    if not match:
        return None
    rest = content[match.end() :]
    word = _REFRESH_URL.match(rest)
    if word:
        if rest[word.end() : word.end() + 1] != "=":
            return rest
        rest = rest[word.end() + 1 :].lstrip(SPACES)
    if rest[:1] in ("'", '"') and rest:
        return rest[1:].partition(rest[0])[0]
    return rest
