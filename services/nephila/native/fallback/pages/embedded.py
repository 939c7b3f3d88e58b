"""Trees within the tree of a page: declared shadow roots and documents of frames; and the readings of ruby."""

from __future__ import annotations

from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_FRAMES: Final = 3
"""Documents of `srcdoc` within each other."""
_READINGS: Final = frozenset(("rt", "rtc"))
_HOSTS: Final = frozenset(
    ("article", "aside", "blockquote", "body", "div", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "main",
     "nav", "p", "section", "span")
)  # fmt: skip
"""Elements, beside those with a hyphen, that may have a shadow root."""


def is_reading(tag: str, node: LexborNode) -> bool:
    """Whether an element is the reading of a word, in ruby."""
    if tag not in _READINGS:
        return False
    above = node.parent
    while above is not None and above.tag in ("rb", "rtc"):
        above = above.parent
    return above is not None and above.tag == "ruby"


def shadow_root(node: LexborNode, hosts: set[int]) -> LexborNode | None:
    """The content of a <template> that is the first shadow root of an element that may have one, in a <span>."""
    host = node.parent
    if node.tag != "template" or host is None or host.mem_id in hosts:
        return None
    if (node.attributes.get("shadowrootmode") or "").lower() not in ("open", "closed"):
        return None
    if host.tag not in _HOSTS and "-" not in (host.tag or ""):
        return None
    hosts.add(host.mem_id)
    source = node.html or ""
    return LexborHTMLParser(f"<span{source[len('<template') : -len('</template>')]}").css_first("body > span")


def frame_document(node: LexborNode) -> LexborNode | None:
    """The document of an <iframe srcdoc>; None for any other element."""
    source = node.attributes.get("srcdoc") if node.tag == "iframe" else None
    return LexborHTMLParser(source).root if source else None
