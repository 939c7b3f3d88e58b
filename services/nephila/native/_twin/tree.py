"""What each tag does: the standard's "in body", table, frameset and foreign content rules on the stack."""

from __future__ import annotations

from typing import Final

from nephila.native._twin import entities
from nephila.native._twin import tokenizer as t
from nephila.native._twin.boxes import COMMENT
from nephila.native._twin.meta import PageMeta
from nephila.native._twin.page import (
    FOLLOW_JSON_LD,
    FOLLOW_NOTHING,
    FOLLOW_TITLE,
    FOLLOW_VISIBLE,
    KIND_A,
    KIND_AREA,
    KIND_FRAME,
    KIND_IFRAME,
    NO_FRAMES,
)
from nephila.native._twin.stack import HTML_NS, HTML_POINT, MATH_NS, MATH_TEXT, SVG_NS
from nephila.native._twin.tags import (
    C_BLOCK,
    C_BREAKOUT,
    C_CLOSEP,
    C_FORMAT,
    C_HEADING,
    C_LIST,
    C_SCOPE,
    C_SCOPED,
    C_TABLE,
    C_VOID,
    CATS,
    F_COMMENT,
    F_HIDDEN,
    ids,
)

A, AREA, BASE, BODY, BR, BUTTON, COL, DD, DT, FONT, FORM, FRAME, FRAMESET, HEAD, HR, HTML, IFRAME, INPUT = ids(
    "a area base body br button col dd dt font form frame frameset head hr html iframe input"
)
LI, LINK, MATH, META, NOBR, NOFRAMES, OPTGROUP, OPTION, P, PLAINTEXT, RTC, RUBY, SCRIPT, SELECT, SPAN, SVG = ids(
    "li link math meta nobr noframes optgroup option p plaintext rtc ruby script select span svg"
)
TABLE, TEMPLATE, TEXTAREA, TITLE, XMP, ANNOTATION_XML = ids("table template textarea title xmp annotation-xml")
_MATH_OWN: Final = frozenset(ids("mglyph malignmark"))
_STARTS_BODY: Final = frozenset(ids("area br embed img image input keygen wbr hr"))
_IGNORED: Final = frozenset(ids("area col frame"))
_OBJECTS: Final = frozenset(ids("pre listing applet marquee object"))
_TABLE_PARTS: Final = frozenset(ids("caption colgroup tbody thead tfoot tr td th"))
_TABLE_ENDS: Final = _TABLE_PARTS | {TABLE}
_RUBY: Final = frozenset(ids("rb rtc rp rt"))
_RUBY_KEEP: Final = frozenset(ids("rp rt"))
_RAWTEXT: Final = frozenset(ids("style noframes noembed"))


class Page(PageMeta):
    """The whole page pass."""

    def run(self) -> None:
        """Scan to the end. O(bytes)."""
        step = self.tok.next
        while (kind := step()) != t.EOF:
            if kind == t.TEXT:
                self.data()
            elif kind == t.START:
                self._start()
            elif kind == t.END:
                self._end()
            else:
                self.raw_text()
        self.close_anchor()
        self.text.break_line()

    def _start(self) -> None:
        tag = self.tok.tag
        if self.frames != NO_FRAMES:
            self._frameset_start(tag)
            return
        if self.stack.foreign and not self._html_rules(tag):
            self._foreign_start(tag)
        else:
            self._html_start(tag)
        self.settle()

    def _end(self) -> None:
        tag = self.tok.tag
        if self.frames != NO_FRAMES:
            if tag == FRAMESET and self.frames > 0:
                self.frames -= 1
            return
        if self.stack.foreign and self.stack.items[-1].ns != HTML_NS:
            self._foreign_end(tag)
        else:
            self._html_end(tag)
        self.settle()

    def _frameset_start(self, tag: int) -> None:
        if tag == NOFRAMES:
            self._raw(t.RAWTEXT, FOLLOW_NOTHING)
        elif tag == HTML:
            self.html_attrs()
        elif self.frames > 0 and tag == FRAMESET:
            self.frames += 1
        elif self.frames > 0 and tag == FRAME:
            self._source(KIND_FRAME)

    def _html_rules(self, tag: int) -> bool:
        """Do the HTML rules apply to this start tag although svg or math is open?"""
        top = self.stack.items[-1]
        return (
            top.ns == HTML_NS
            or (top.point == MATH_TEXT and tag not in _MATH_OWN)
            or (top.ns == MATH_NS and top.tag == ANNOTATION_XML and tag == SVG)
            or top.point == HTML_POINT
        )

    def _foreign_start(self, tag: int) -> None:
        attr = self.tok.attr
        if CATS[tag] & C_BREAKOUT or (
            tag == FONT and any(attr(name) is not None for name in (b"color", b"face", b"size"))
        ):
            self._leave_foreign()
            self._html_start(tag)
            return
        ns = self.stack.items[-1].ns
        if tag == A:
            self._anchor_start()
        if not self.tok.self_closing:
            self._push_foreign(tag, ns)
            return
        self.stack.insert()
        if tag == A:
            self.close_anchor()

    def _leave_foreign(self) -> None:
        items = self.stack.items
        while items and items[-1].ns != HTML_NS and not items[-1].point:
            self.stack.pop()

    def _push_foreign(self, tag: int, ns: int) -> None:
        encoded_html = False
        if tag == ANNOTATION_XML:
            encoding = entities.decode(self.tok.attr(b"encoding") or b"", True, True).lower()
            encoded_html = encoding in (b"text/html", b"application/xhtml+xml")
        self.stack.push_foreign(tag, self.tok.name, ns, encoded_html)

    def _foreign_end(self, tag: int) -> None:
        if tag in (P, BR):
            self._leave_foreign()
            self._html_end(tag)
            return
        if tag == A:
            self.close_anchor()
        items = self.stack.items
        name = self.tok.name
        for at in range(len(items) - 1, -1, -1):
            element = items[at]
            if element.ns == HTML_NS:
                break
            if element.name == name:
                self.stack.pop_to(at)
                return
        # An HTML element below: its own rules decide, whatever foreign elements lie above it.
        self._html_end(tag)

    def _raw(self, kind: int, follow: int) -> None:
        """Switch to a raw text state for the element just opened (it is never pushed)."""
        self.tok.raw = kind
        self.tok.raw_name = self.tok.name
        self.follow = follow

    def _open(self, tag: int) -> None:
        cat = CATS[tag]
        if cat & C_BLOCK:
            self._break_line()
        stack = self.stack
        if not cat & C_BLOCK or stack.flags() & F_HIDDEN:
            stack.push(tag, self.tok.name, 0)
            return
        box = self.boxes.open(stack.box(), tag, self.tok.attrs)
        stack.push(tag, self.tok.name, F_COMMENT if self.boxes.items[box].own & COMMENT else 0)
        if stack.items:
            # Where the stack is full this is the element that the text really stands in.
            stack.items[-1].box = box

    def _html_start(self, tag: int) -> None:
        if tag == 0 or tag == SPAN:
            self.stack.push(tag, self.tok.name, 0)
        elif tag == HTML:
            self.html_attrs()
        elif tag == HEAD:
            pass
        elif tag == BODY:
            self.frameset_ok &= self.in_template()
        elif tag in (BASE, LINK, META):
            self.head_tag(tag)
        elif tag == TITLE:
            first = self.title is None and not self.in_template()
            if first:
                self.title = b""
            self._raw(t.RCDATA, FOLLOW_TITLE if first else FOLLOW_NOTHING)
        elif tag == SCRIPT:
            self._raw(t.SCRIPT, FOLLOW_JSON_LD if self.is_json_ld() else FOLLOW_NOTHING)
        elif tag in _RAWTEXT:
            self._raw(t.RAWTEXT, FOLLOW_NOTHING)
        elif tag == TEXTAREA:
            self.frameset_ok = False
            self._raw(t.RCDATA, FOLLOW_NOTHING)
        elif tag == IFRAME:
            self.frameset_ok = False
            self._source(KIND_IFRAME)
            self._raw(t.RAWTEXT, FOLLOW_NOTHING)
        elif tag in (XMP, PLAINTEXT):
            self.stack.close_p()
            self._break_line()
            self.settle()
            self.frameset_ok = False
            self._raw(t.RAWTEXT if tag == XMP else t.PLAINTEXT, FOLLOW_VISIBLE)
        elif tag == FRAMESET:
            if self.frameset_ok and not self.stack.counts[TEMPLATE]:
                self.drop_body()
                self.frames = 1
        elif CATS[tag] & C_VOID:
            self._void(tag)
        else:
            self._element(tag, CATS[tag])

    def _void(self, tag: int) -> None:
        if tag == AREA:
            self._area()
        elif tag == BR:
            self._break_line()
        elif tag == HR:
            self.stack.close_p()
            if self.stack.in_scope(SELECT, C_SCOPE) >= 0:
                self.stack.implied_end_tags(0)
            self._break_line()
        elif tag == INPUT:
            self.stack.close_scoped(SELECT, C_SCOPE)
            if (self.tok.attr(b"type") or b"").lower() == b"hidden":
                return
        elif tag == COL:
            self.stack.open_table_part(COL)
        if tag not in _IGNORED:
            self.stack.insert()
        if tag in _STARTS_BODY:
            self.frameset_ok = False

    def _element(self, tag: int, cat: int) -> None:
        """Start tags that put an element on the stack."""
        stack = self.stack
        if tag == A:
            stack.close_anchor()
            self._open(A)
            self._anchor_start()
            return
        if tag == NOBR:
            stack.close_formatting(NOBR)
        elif tag == LI:
            self.frameset_ok = False
            stack.close_item((LI,))
        elif tag in (DD, DT):
            self.frameset_ok = False
            stack.close_item((DD, DT))
        elif tag in _OBJECTS:
            self.frameset_ok = False
        elif tag == FORM:
            if stack.counts[FORM] and not stack.counts[TEMPLATE]:
                return
        elif tag == BUTTON:
            self.frameset_ok = False
            stack.close_scoped(BUTTON, C_SCOPE)
        elif tag == TABLE:
            self.frameset_ok = False
            at = stack.table_mode()
            if at >= 0:
                stack.pop_to(at)
        elif tag in _TABLE_PARTS:
            if not stack.open_table_part(tag):
                return
        elif tag == SELECT:
            self.frameset_ok = False
            if stack.close_scoped(SELECT, C_SCOPE):
                return
        elif tag in (OPTION, OPTGROUP):
            if stack.in_scope(SELECT, C_SCOPE) >= 0:
                stack.implied_end_tags(OPTGROUP if tag == OPTION else 0)
            elif stack.top_is(OPTION):
                stack.pop()
        elif tag in _RUBY:
            if stack.in_scope(RUBY, C_SCOPE) >= 0:
                stack.implied_end_tags(RTC if tag in _RUBY_KEEP else 0)
        elif tag in (SVG, MATH):
            if not self.tok.self_closing:
                self._push_foreign(tag, SVG_NS if tag == SVG else MATH_NS)
            return
        if cat & C_CLOSEP:
            stack.close_p()
        if cat & C_HEADING and stack.items and stack.items[-1].cat & C_HEADING and stack.items[-1].ns == HTML_NS:
            stack.pop()
        self._open(tag)

    def _html_end(self, tag: int) -> None:
        stack = self.stack
        cat = CATS[tag]
        if tag == P:
            self._break_line()
            stack.close_p()
        elif tag == BR:
            self._break_line()
        elif tag in (BODY, HTML, HEAD):
            pass
        elif tag == LI:
            stack.close_scoped(LI, C_SCOPE | C_LIST)
        elif tag == FORM:
            stack.close_form()
        elif tag == TEMPLATE:
            # Nothing bounds the search: the innermost template goes, with all above it.
            stack.close_scoped(TEMPLATE, 0)
        elif tag in _TABLE_ENDS:
            stack.close_scoped(tag, C_TABLE)
        elif tag in (DD, DT):
            stack.close_scoped(tag, C_SCOPE)
        elif cat & C_FORMAT:
            if tag == A:
                self.close_anchor()
            stack.close_formatting(tag)
        elif cat & C_HEADING:
            stack.close_heading()
        elif cat & C_SCOPED:
            stack.close_scoped(tag, C_SCOPE)
        else:
            stack.close_other(tag, self.tok.name)

    def _break_line(self) -> None:
        """A block begins or ends here; below a hidden element that is not to be seen."""
        if not self.stack.flags() & F_HIDDEN:
            self.text.break_line()

    def _source(self, kind: int) -> None:
        source = None if self.in_template() else self.tok.attr(b"src")
        if source is not None:
            self.link(source, kind, False)

    def _area(self) -> None:
        href = None if self.in_template() else self.tok.attr(b"href")
        if href is not None:
            self.link(href, KIND_AREA, self.nofollow())

    def _anchor_start(self) -> None:
        self.close_anchor()
        href = None if self.in_template() else self.tok.attr(b"href")
        if href is not None:
            self.open_anchor(self.link(href, KIND_A, self.nofollow()))
