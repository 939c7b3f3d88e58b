"""The WHATWG tokenizer over UTF-8 bytes, without building tokens: ranges into the input.

Invariant: `pos` only grows. Comments and doctypes are stepped over. What the tree decides (raw text states, CDATA) is
told to it by the caller between two tokens.
"""

from __future__ import annotations

import re
from typing import Final

from nephila.native._twin.tags import C_ATTRS, CATS, IDS, ids

DATA, RCDATA, RAWTEXT, SCRIPT, PLAINTEXT, CDATA = range(6)
TEXT, RAW, START, END, EOF = range(5)

_MARKUP: Final = re.compile(rb"<(?:[A-Za-z!?]|/(?=[\s\S]))")
_NAME: Final = re.compile(rb"[^ \t\n\r\f/>]*")
_PLAIN_TAG: Final = re.compile(
    rb"""(?>(?:[ \t\n\r\f]+[^ \t\n\r\f/>="']+(?:="[^"]*"|='[^']*')?)*)[ \t\n\r\f]*(/?)>""",
)
_GAP: Final = re.compile(rb"[ \t\n\r\f/]*")
_ATTRIBUTE: Final = re.compile(rb"[\s\S][^ \t\n\r\f/>=]*")
_EQUALS: Final = re.compile(rb"[ \t\n\r\f]*=[ \t\n\r\f]*")
_UNQUOTED: Final = re.compile(rb"[^ \t\n\r\f>]*")
_COMMENT_END: Final = re.compile(rb"--!?>")
_SCRIPT_STEP: Final = re.compile(rb"-->|<!--|</?script(?=[ \t\n\r\f/>])|</", re.IGNORECASE)
_SCRIPT_START: Final = re.compile(rb"<!--|</")

CROWD: Final = 1000
"""More attributes than this in one element: no page has them, and trees compare each with all before it."""
BODY, HTML = ids("body html")


class Tokenizer:
    """The scanner; after START and END its public fields describe the tag, after TEXT and RAW `span` the text."""

    __slots__ = (
        "all_attrs", "attrs", "crowded", "data", "foreign", "name", "pos", "raw", "raw_kind", "raw_name", "root_attrs",
        "self_closing", "span", "tag",
    )  # fmt: skip

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pos = 0
        self.raw = DATA
        self.raw_name = b""
        self.raw_kind = DATA
        self.foreign = False
        self.span = (0, 0)
        self.name = b""
        self.tag = 0
        self.self_closing = False
        self.attrs: list[tuple[bytes, bytes]] = []
        self.all_attrs = False
        self.crowded = False
        self.root_attrs = 0

    def next(self) -> int:
        """The kind of the next token; EOF for ever at the end. Amortised O(bytes consumed)."""
        if self.raw != DATA and self._raw_text():
            return RAW
        data = self.data
        while True:
            start = self.pos
            if start >= len(data):
                return EOF
            found = _MARKUP.search(data, start)
            at = found.start() if found else len(data)
            if at > start:
                self.span = (start, at)
                self.pos = at
                return TEXT
            kind = self._markup(at)
            if kind >= 0:
                return kind

    def _markup(self, at: int) -> int:
        data = self.data
        following = data[at + 1]
        if following == 0x2F:
            letter = data[at + 2 : at + 3]
            if letter.isalpha() and letter.isascii():
                return END if self._tag(at + 2) else EOF
            self._skip_past(at + 2)
            return -1
        if following == 0x21:
            return self._declaration(at)
        if following == 0x3F:
            self._skip_past(at + 1)
            return -1
        return START if self._tag(at + 1) else EOF

    def _declaration(self, at: int) -> int:
        data = self.data
        if data.startswith(b"--", at + 2):
            self.pos = _comment_end(data, at + 4)
            return -1
        if self.foreign and data.startswith(b"[CDATA[", at + 2):
            end = data.find(b"]]>", at + 9)
            self.span = (at + 9, end if end >= 0 else len(data))
            self.raw_kind = CDATA
            self.pos = end + 3 if end >= 0 else len(data)
            return RAW
        self._skip_past(at + 2)
        return -1

    def _skip_past(self, start: int) -> None:
        end = self.data.find(b">", start)
        self.pos = end + 1 if end >= 0 else len(self.data)

    def _tag(self, start: int) -> bool:
        data = self.data
        found = _NAME.match(data, start)
        assert found is not None
        name = found.group().lower()
        self.name = name
        self.tag = tag = IDS.get(name, 0)
        self.attrs = []
        if not self.all_attrs and tag != BODY and not CATS[tag] & C_ATTRS:
            plain = _PLAIN_TAG.match(data, found.end())
            # An attribute has two bytes at least: in a shorter tag nobody has to count.
            if plain and plain.end() - plain.start() <= 2 * CROWD:
                self.self_closing = bool(plain.group(1))
                self.pos = plain.end()
                return True
        return self._attributes(found.end())

    def _attributes(self, at: int) -> bool:
        data = self.data
        length = len(data)
        attrs = self.attrs
        root = self.tag == HTML or self.tag == BODY
        count = self.root_attrs if root else 0
        self.self_closing = False
        while True:
            gap = _GAP.match(data, at).end()  # type: ignore[union-attr]
            if gap >= length:
                self.pos = length
                return False
            if data[gap] == 0x3E:
                self.self_closing = gap > at and data[gap - 1] == 0x2F
                self.pos = gap + 1
                return True
            found = _ATTRIBUTE.match(data, gap)
            assert found is not None
            at = found.end()
            count += 1
            self.crowded |= count > CROWD
            if root:
                self.root_attrs = count
            value = b""
            equals = _EQUALS.match(data, at)
            if equals:
                at = equals.end()
                if at >= length:
                    self.pos = length
                    return False
                quote = data[at]
                if quote == 0x22 or quote == 0x27:
                    end = data.find(quote, at + 1)
                    if end < 0:
                        self.pos = length
                        return False
                    value = data[at + 1 : end]
                    at = end + 1
                elif quote != 0x3E:
                    unquoted = _UNQUOTED.match(data, at)
                    assert unquoted is not None
                    value = unquoted.group()
                    at = unquoted.end()
            attrs.append((found.group().lower(), value))

    def _raw_text(self) -> bool:
        data = self.data
        start = self.pos
        kind = self.raw
        self.raw = DATA
        self.raw_kind = kind
        if kind == PLAINTEXT:
            end = next_pos = len(data)
        elif kind == CDATA:
            end = data.find(b"]]>", start)
            next_pos = end + 3 if end >= 0 else len(data)
            end = end if end >= 0 else len(data)
        else:
            end = _script_end(data, start, self.raw_name) if kind == SCRIPT else _raw_end(data, start, self.raw_name)
            next_pos = end
        self.pos = next_pos
        self.span = (start, end)
        return start < end

    def attr(self, name: bytes) -> bytes | None:
        """The raw value of an attribute (first of that name), if there."""
        for known, value in self.attrs:
            if known == name:
                return value
        return None


def _comment_end(data: bytes, start: int) -> int:
    """Index just past the comment whose text starts at `start` (after `<!--`)."""
    if data.startswith(b">", start):
        return start + 1
    if data.startswith(b"->", start):
        return start + 2
    found = _COMMENT_END.search(data, start)
    return found.end() if found else len(data)


_ENDS: Final[dict[bytes, re.Pattern[bytes]]] = {}


def _end_tag(name: bytes) -> re.Pattern[bytes]:
    pattern = _ENDS.get(name)
    if pattern is None:
        # Without a name (a test's initial state) nothing is an appropriate end tag.
        body = rb"</" + re.escape(name) + rb"(?=[ \t\n\r\f/>])" if name else rb"(?!)"
        pattern = re.compile(body, re.IGNORECASE)
        if len(_ENDS) < 64:
            _ENDS[name] = pattern
    return pattern


def _raw_end(data: bytes, start: int, name: bytes) -> int:
    found = _end_tag(name).search(data, start)
    return found.start() if found else len(data)


def _script_end(data: bytes, start: int, name: bytes) -> int:
    """The end of script data, with its escaped and double escaped states."""
    at, escaped = start, 0
    end_tag = _end_tag(name)
    while True:
        found = (_SCRIPT_STEP if escaped else _SCRIPT_START).search(data, at)
        if not found:
            return len(data)
        what = found.group().lower()
        at = found.end()
        if what.startswith(b"--"):
            escaped = 0
        elif what == b"<!--":
            if escaped == 0:
                escaped = 1
            # The two dashes may already belong to a closing `-->`.
            at -= 2
        elif what.startswith(b"</"):
            if escaped < 2 and end_tag.match(data, found.start()):
                return found.start()
            if escaped == 2 and what == b"</script":
                escaped = 1
        elif escaped == 1:
            escaped = 2
