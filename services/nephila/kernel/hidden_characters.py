"""The characters above ASCII that a reader does not see, and that make a text read as another one."""

from __future__ import annotations

from typing import Final

HIDDEN: Final = (
    r"\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f"
)
"""Inside of [] in a pattern: DEL and controls, soft hyphen, zero-width and direction marks, lone surrogates, tags. Each
place adds the controls of ASCII that it removes."""
