"""Text from the web made safe for a terminal: no escape sequences, no control characters, no hidden direction changes.

Invariant: the result is one line without control characters, no longer than the limit. `sanitize` is for print(),
`sanitize_markup` for Rich, where a title such as "[link=file:///etc/passwd]free[/]" would otherwise be markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nephila.kernel.pages.hidden_characters import hidden
from nephila.kernel.runtime.late_pattern import late_pattern

_SEQUENCES = late_pattern(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor, screen
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS …: title, clipboard
    r"|\x1b[ -/]*[0-~]?"
)
_BLANKS = late_pattern(r"[\s\x1c-\x1f\x85\u2028\u2029]+")
_HIDDEN = late_pattern(hidden(r"\x00-\x1f"))
_UNSEEN = late_pattern(r"(?![\n\t]|\r\n)" + _HIDDEN.pattern)
_MARKUP = late_pattern(r"(\\*)(\[[a-z#/@][^[]*?])", re.IGNORECASE)
_SLACK = 16
"""Text longer than this many times the limit is cut before escape sequences are removed."""


def sanitize(text: str, limit: int = 200) -> str:
    """One harmless line of at most `limit` characters; a longer text ends in an ellipsis. O(limit)."""
    cut = len(text) > limit * _SLACK
    text = _SEQUENCES.sub("", text[: limit * _SLACK])
    text = _HIDDEN.sub("", _BLANKS.sub(" ", text)).strip()
    if len(text) > limit or cut:
        return text[: max(limit - 1, 0)].rstrip() + "…"
    return text


def sanitize_markup(text: str, limit: int = 200) -> str:
    """`sanitize`, with Rich markup escaped (backslashes may make it longer than `limit`)."""
    escaped = _MARKUP.sub(lambda match: f"{match[1]}{match[1]}\\{match[2]}", sanitize(text, limit))
    # A backslash at the end would escape the markup tag that follows it.
    return escaped + "\\" if escaped.endswith("\\") and not escaped.endswith("\\\\") else escaped


def escape_controls(text: str) -> str:
    r"""Text of many lines for a terminal: control characters become escapes such as \u202e, as JSON writes them, so
    that a line of JSON keeps its meaning. Line ends and tabs stay. O(n)."""
    return _UNSEEN.sub(lambda match: _escaped(match[0]), text)


def _escaped(character: str) -> str:
    data = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at]:02x}{data[at + 1]:02x}" for at in range(0, len(data), 2))


def sanitize_lines(text: str) -> Iterator[str]:
    """The lines of a longer text, each sanitized, uncut, with its spaces and tabs."""
    for line in text.splitlines():
        yield "\t".join(_HIDDEN.sub("", part) for part in _SEQUENCES.sub("", line).split("\t"))
