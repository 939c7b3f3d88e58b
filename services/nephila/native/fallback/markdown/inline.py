"""Text within a block: emphasis, code, links and images, cut into lines.

Invariants: markup is closed in the line in which it is opened; white space never stands inside of a marker, where the
marker would be invalid. O(characters), since at most four kinds of markup are open at a time.
"""

from __future__ import annotations

import re
from typing import Final

from nephila.native.fallback.markdown.blocks import BlockLine

EMPHASIS: Final = {"strong": "**", "b": "**", "em": "*", "i": "*", "cite": "*", "dfn": "*"}
CODE: Final = frozenset(("code", "kbd", "samp", "tt"))
SIGNS: Final = frozenset("¶#§∞⚓⁋☍🔗⛓￼")
"""What permalinks of headings are shown as."""

CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Controls but line feed and tab, and marks that change the direction of text: never in Markdown."""
DROPPED: Final = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Those that part no words."""
_SPECIAL: Final = re.compile(r"[\\`*\[]|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!?])|&(?=#?[A-Za-z0-9_]{1,32};)|~(?=~)")
_TICKS: Final = re.compile(r"`+")
_URL: Final = str.maketrans({"(": "%28", ")": "%29", " ": "%20", "<": "%3C", ">": "%3E", "\n": "", "\\": "%5C"})


class Inline:
    """Collects a block's text and cuts it into lines."""

    def __init__(self) -> None:
        self.lines: list[BlockLine] = []
        self._plain: list[str] = []
        self._marked: list[str] = []
        self._open: list[tuple[str, int]] = []
        """Markers of the emphasis that is open and where it begins in `_marked`, outermost first."""
        self._code = -1
        """Where code begins in `_marked`; -1: there is none."""
        self._link: tuple[int, int, str, bool] | None = None
        """Where the link begins in `_marked` and `_plain`, its URL, whether it leads to its own page."""

    def text(self, text: str) -> None:
        """A run of text."""
        self._plain.append(text)
        if self._code < 0 and not text.isspace():
            text = _SPECIAL.sub(_escape, text)
        self._marked.append(text)

    def emphasis(self, marker: str) -> bool:
        """Emphasis begins; False where it is within such already."""
        if self._code >= 0 or any(marker == other for other, _ in self._open):
            return False
        self._open.append((marker, len(self._marked)))
        return True

    def end_emphasis(self, marker: str) -> None:
        """The innermost emphasis ends; one that was closed by its link is none any more."""
        if self._open and self._open[-1][0] == marker:
            self._wrap(self._open.pop()[1], marker, marker)

    def code(self) -> bool:
        """Code begins; False where it is within such already."""
        if self._code >= 0:
            return False
        self._code = len(self._marked)
        return True

    def end_code(self) -> None:
        """The code ends."""
        at, self._code = self._code, -1
        content = "".join(self._marked[at:])
        ticks = "`" * (1 + max(map(len, _TICKS.findall(content)), default=0))
        pad = " " if content.strip()[:1] == "`" or content.strip()[-1:] == "`" else ""
        self._wrap(at, ticks + pad, pad + ticks)

    def link(self, url: str, own: bool) -> bool:
        """A link begins; False where it is within such, or within code."""
        if self._link is not None or self._code >= 0:
            return False
        self._link = (len(self._marked), len(self._plain), url, own)
        return True

    def end_link(self) -> None:
        """The link ends. A permalink's sign is left out; what has no text is no link."""
        if self._link is None:
            return
        at, plain_at, url, own = self._link
        self._link = None
        said = "".join(self._plain[plain_at:]).strip()
        if own and said and len(said) <= 3 and set(said) <= SIGNS:
            del self._marked[at:]
        elif url:
            content = "".join(self._marked[at:])
            self._marked[at:] = [_balanced(content)]
            self._wrap(at, "[", f"]({url.translate(_URL)})")
        self._open = [one for one in self._open if one[1] <= at]

    def image(self, alt: str, url: str) -> None:
        """A picture."""
        if self._code < 0:
            alt = _SPECIAL.sub(_escape, collapsed(alt))
            self._marked.append(f"![{_balanced(alt)}]({url.translate(_URL)})")

    def cut(self) -> None:
        """The line ends; markup that is open goes on in the next."""
        if not self._marked and not self._plain:
            return
        if self._code < 0 and self._link is None and not self._open:
            self._cut_plain()
            return
        code, link, opened = self._code >= 0, self._link, [marker for marker, _ in self._open]
        if code:
            self.end_code()
        while self._open and (link is None or self._open[-1][1] >= link[0]):
            self.end_emphasis(self._open[-1][0])
        if link is not None:
            self.end_link()
        while self._open:
            self.end_emphasis(self._open[-1][0])
        self._cut_plain()
        if link is not None:
            self._link = (0, 0, link[2], link[3])
        self._open = [(marker, 0) for marker in opened]
        if code:
            self._code = 0

    def _cut_plain(self) -> None:
        """The line ends, and no markup is open."""
        plain = collapsed("".join(self._plain))
        written = collapsed("".join(self._marked))
        if plain or written:
            self.lines.append(BlockLine(plain, written))
        self._plain, self._marked = [], []

    def take(self) -> list[BlockLine]:
        """The lines so far, the last one cut."""
        if not self.lines and not self._marked and not self._plain:
            return []
        self.cut()
        lines, self.lines = self.lines, []
        return lines

    def _wrap(self, at: int, before: str, behind: str) -> None:
        content = "".join(self._marked[at:])
        inner = content.strip()
        if not inner:
            self._marked[at:] = [content]
            return
        start = content.index(inner)
        lead, trail = content[:start], content[start + len(inner) :]
        self._marked[at:] = [f"{lead}{before}{inner}{behind}{trail}"]


def collapsed(text: str) -> str:
    """White space collapsed, without controls."""
    return CONTROLS.sub("", " ".join(text.split()))


def _escape(found: re.Match[str]) -> str:
    return "\\" + found[0]


def _balanced(text: str) -> str:
    """Text within brackets, which no bracket in it may close; those of a picture are whole."""
    if "]" not in text or "![" in text:
        return text
    return re.sub(r"(?<!\\)\]", r"\\]", text)
