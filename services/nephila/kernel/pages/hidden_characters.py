"""The characters above ASCII that a reader does not see, and that make a text read as another one."""

from __future__ import annotations

from typing import Final

_HIDDEN: Final = (
    r"\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f"
)
"""DEL and controls, soft hyphen, zero-width and direction marks, lone surrogates, tags."""
_JOINERS: Final = rf"(?<![^\x00-\xa0\s\u200c\u200d{_HIDDEN}])(?:(?<!\w)[\u200c\u200d]|[\u200c\u200d](?!\w))"
"""A joiner is spelling behind a sign beyond ASCII and between two letters; elsewhere nobody sees it."""


def hidden(controls: str) -> str:
    """A pattern of one hidden character; `controls`: the controls of ASCII that are hidden, too, inside of []."""
    return rf"(?:[{controls}{_HIDDEN}]|{_JOINERS})"
