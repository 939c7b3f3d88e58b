"""The page pass: tokens in, title, meta, text lines and raw links out. What each tag does is in tree.py.

One loop, no recursion, no tree: memory is the output plus a stack of at most 1,024 small elements.
"""

from __future__ import annotations

import re
from typing import Final

from nephila.native._twin import entities, tokenizer
from nephila.native._twin.boxes import Boxes
from nephila.native._twin.stack import Stack
from nephila.native._twin.tags import F_CHROME, F_HIDDEN, F_PRE, F_TMPL, ids
from nephila.native._twin.text import SPACES, Context, TextSink, collapse
from nephila.native._twin.tokenizer import Tokenizer

KIND_A, KIND_AREA, KIND_IFRAME, KIND_FRAME = range(4)
KIND_REFRESH: Final = 5
MAX_VALUE: Final = 8192
NO_FRAMES: Final = -1
"""Value of `frames` outside a frameset; 0 is after it, n the number of open ones."""
_TYPE: Final = re.compile(rb'"@type"(?=[ \t\n\r\f]*:[ \t\n\r\f]*(?:\[[ \t\n\r\f]*)?"([^"]{0,63})")')
FOLLOW_NOTHING, FOLLOW_TITLE, FOLLOW_VISIBLE, FOLLOW_JSON_LD = range(4)
XMP, PLAINTEXT_TAG = ids("xmp plaintext")

_SPECIAL: Final = re.compile(rb"[&\0]")


class RawLink:
    """A link as found: its href as it stands in the page, resolved only when the base is known."""

    __slots__ = ("anchor", "decoded", "href", "in_chrome", "kind", "nofollow")

    def __init__(self, href: bytes, kind: int, nofollow: bool, decoded: bool, in_chrome: bool = False) -> None:
        self.href = href
        self.kind = kind
        self.nofollow = nofollow
        self.decoded = decoded
        self.in_chrome = in_chrome
        self.anchor = (0, 0)


class PageBase:
    """State of a scan and what text and links need; `tree.Page` adds the tags."""

    def __init__(
        self, data: bytes, max_links: int, max_text: int, places: bool = False, agent: str = "nephila"
    ) -> None:
        self.tok = Tokenizer(data)
        self.stack = Stack()
        self.text = TextSink(max_text)
        self.boxes = Boxes()
        self.title: bytes | None = None
        self.lang: str | None = None
        self.base: bytes | None = None
        self.canonical: bytes | None = None
        self.robots = ""
        self.agent = agent.lower()
        self.description: str | None = None
        self.says_article = self.says_thread = False
        self.meta: list[tuple[str, str]] = []
        self.refresh: str | None = None
        self.links: list[RawLink] = []
        # Different hrefs may come to the same URL; beyond this many distinct ones a page is hostile.
        self.max_raw = max_links * 4
        self.left_out = 0
        self.frames = NO_FRAMES
        self.frameset_ok = True
        self.follow = FOLLOW_NOTHING
        self.anchor: tuple[RawLink | None, int, int] | None = None
        self.spots: list[tuple[RawLink, int]] = []
        """Occurrences in the order of the page, and where in the text each begins."""
        # Occurrences beyond these are in no main text.
        self._max_spots = max_links * 4 if places else 0
        self._seen: dict[bytes, RawLink] = {}

    def settle(self) -> None:
        """After a tag: line breaks and closed anchors that its pops brought, and the tokenizer's view of the tree."""
        stack = self.stack
        if stack.broke:
            stack.broke = False
            self.text.break_line()
        if self.anchor is not None and stack.markers < self.anchor[2]:
            self.close_anchor()
        self.tok.foreign = stack.foreign > 0 and stack.items[-1].ns != 0

    def _context(self) -> Context:
        flags = self.stack.flags()
        stack = self.stack
        return stack.block(), flags, flags & F_PRE != 0, self.anchor is not None, stack.box(), stack.inner()

    def data(self) -> None:
        """Text of the data state."""
        if self.frames != NO_FRAMES:
            return
        start, end = self.tok.span
        part = self.tok.data[start:end]
        flags = self.stack.flags()
        self.stack.text(len(part))
        rest = part.lstrip(SPACES)
        if not rest:
            if not flags & (F_HIDDEN | F_TMPL):
                if flags & F_PRE:
                    self.text.add(part, self._context())
                else:
                    self.text.add_space()
            return
        self.stack.foster(len(part))
        if self.frameset_ok and not flags & F_TMPL:
            self.frameset_ok = not part.strip(SPACES + b"\0")
        if not flags & F_HIDDEN:
            self._visible(part, True)

    def _visible(self, part: bytes, references: bool) -> None:
        """Add text with references to be decoded; NULs are dropped as the tree drops them."""
        context = self._context()
        add = self.text.add
        at = 0
        found = _SPECIAL.search(part)
        while found:
            start = found.start()
            if part[start] == 0:
                add(part[at:start], context)
                at = start + 1
            elif references:
                add(part[at:start], context)
                piece, at = entities.reference(part, start, False) or (b"&", start + 1)
                add(piece, context)
            found = _SPECIAL.search(part, max(at, start + 1))
        add(part[at:], context)

    def raw_text(self) -> None:
        """Text of a raw element, RCDATA, plaintext or a CDATA section."""
        start, end = self.tok.span
        kind = self.tok.raw_kind
        follow, self.follow = self.follow, FOLLOW_NOTHING
        flags = self.stack.flags()
        if kind == tokenizer.CDATA:
            if not flags & F_HIDDEN:
                self._visible(self.tok.data[start:end], False)
        elif follow == FOLLOW_TITLE:
            decoded = entities.decode(self.tok.data[start:end], True, False)
            self.title = collapse(decoded, MAX_VALUE)
        elif follow == FOLLOW_JSON_LD:
            for found in _TYPE.finditer(self.tok.data[start:end]):
                self.says_article |= found[1].endswith((b"Article", b"BlogPosting"))
                self.says_thread |= found[1] in (b"DiscussionForumPosting", b"QAPage")
        elif follow == FOLLOW_VISIBLE and not flags & F_HIDDEN and self.frames == NO_FRAMES:
            tag = PLAINTEXT_TAG if kind == tokenizer.PLAINTEXT else XMP
            context = (tag, flags | F_PRE, True, self.anchor is not None, self.stack.box(), tag)
            for piece in self.tok.data[start:end].split(b"\0"):
                self.text.add(piece, context)
            self.text.break_line()

    def link(self, href: bytes, kind: int, nofollow: bool) -> RawLink | None:
        """Note a link; its first occurrence counts, `nofollow` and the place around it only if every one says so."""
        in_chrome = self._max_spots > 0 and self.stack.flags() & F_CHROME != 0
        link = self._seen.get(href)
        if link is not None:
            link.nofollow &= nofollow
            link.in_chrome &= in_chrome
        elif len(self.links) >= self.max_raw:
            self.left_out += 1
            return None
        else:
            link = self._seen[href] = RawLink(href, kind, nofollow, False, in_chrome)
            self.links.append(link)
        if len(self.spots) < self._max_spots:
            self.spots.append((link, self.text.length))
        return link

    def refresh_link(self, target: str) -> None:
        """Note the target of a meta refresh."""
        if len(self.links) < self.max_raw:
            self.links.append(RawLink(target.encode(), KIND_REFRESH, False, True))

    def open_anchor(self, link: RawLink | None) -> None:
        """Text from here on is inside a link."""
        self.close_anchor()
        self.anchor = (link, self.text.length, self.stack.markers)

    def close_anchor(self) -> None:
        """The open link ends here; its first text that is not empty is its anchor."""
        anchor, self.anchor = self.anchor, None
        if anchor is None:
            return
        link, start, _ = anchor
        if link is None:
            return
        if link.anchor[0] == link.anchor[1] and start < self.text.length:
            link.anchor = (start, self.text.length)

    def drop_body(self) -> None:
        """A frameset takes the place of the body: what the body held is no longer in the tree."""
        self.anchor = None
        self.links = [link for link in self.links if link.kind == KIND_REFRESH]
        self._seen.clear()
        self.spots.clear()
        self.text.clear()
        self.stack.pop_to(0)
