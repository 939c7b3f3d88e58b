"""Which <code> elements are preformatted blocks without a <pre> around them, as in ../../core/src/preformatted.rs."""

from __future__ import annotations

from selectolax.lexbor import LexborNode

from nephila.native.fallback.pages.lines import SPACES

_KEEP_LINES = ("pre", "pre-wrap", "break-spaces")


def is_code_block(node: LexborNode) -> bool:
    """Whether a <code> is such a block: by the classes of Verso, or by its own white-space and a line feed."""
    attributes = node.attributes
    if {"hl", "block"} <= set((attributes.get("class") or "").split()):
        return True
    return _white_space(attributes.get("style") or "") in _KEEP_LINES and "\n" in (node.text() or "").strip(SPACES)


def _white_space(style: str) -> str:
    """The last `white-space` of an inline style, "" for none."""
    last = ""
    for declaration in style.split(";"):
        name, _, value = declaration.partition(":")
        if name.strip().lower() == "white-space":
            last = value.partition("!")[0].strip().lower()
    return last
