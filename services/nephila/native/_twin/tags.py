"""Element names as small numbers with their categories, from tags.txt (which the Rust build reads, too)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_CATEGORIES: Final = (
    "special", "scope", "list", "button", "table", "closep", "format", "void", "block", "implied", "heading",
    "breakout", "marker", "attrs", "scoped",
)  # fmt: skip
_FLAGS: Final = {
    "heading": 1, "item": 2, "cell": 4, "chrome": 8, "pre": 16, "main": 32, "hidden": 256, "tmpl": 512,
}  # fmt: skip

C_SPECIAL, C_SCOPE, C_LIST, C_BUTTON, C_TABLE, C_CLOSEP, C_FORMAT, C_VOID = (1 << bit for bit in range(8))
C_BLOCK, C_IMPLIED, C_HEADING, C_BREAKOUT, C_MARKER, C_ATTRS, C_SCOPED = (1 << bit for bit in range(8, 15))
F_CHROME: Final = _FLAGS["chrome"]
F_PRE: Final = _FLAGS["pre"]
F_COMMENT: Final = 64
F_HIDDEN: Final = _FLAGS["hidden"]
F_TMPL: Final = _FLAGS["tmpl"]


def _read() -> tuple[list[str], list[int], list[int]]:
    names, cats, flags = [""], [0], [0]
    for line in Path(__file__).parent.with_name("tags.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, cat_words, flag_words = line.split()
            names.append(name)
            cats.append(sum(1 << _CATEGORIES.index(word) for word in cat_words.split(",") if word != "-"))
            flags.append(sum(_FLAGS[word] for word in flag_words.split(",") if word != "-"))
    return names, cats, flags


TAGS, CATS, FLAGS = _read()
IDS: Final = {name.encode(): number for number, name in enumerate(TAGS) if number}


def ids(names: str) -> tuple[int, ...]:
    """The ids of names separated by spaces, for tuple assignments and sets."""
    return tuple(IDS[name.encode()] for name in names.split())
