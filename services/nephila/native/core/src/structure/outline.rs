//! A page as a flat list of events in document order: elements that open and close, and text. No tree is built.
//!
//! The events are written while the page pass runs: text is a range of its text, and elements are written by its stack.
//! Formatting elements that a block closes are opened again, as in a tree. Invariants: hidden content has no
//! events; at most 512 elements are open; every `Open` has a `Close`, not always in reverse order. O(bytes).

use std::borrow::Cow;

use super::event::{Attributes, Event, DISPLAY};
use super::notes::is_note;
use super::room::Room;
use crate::encoding::Queries;
use crate::entities;
use crate::page::{Follow, Frames, Page};
use crate::tags::*;
use crate::tokenizer::{Attr, Raw, Span, Token};

pub struct Outline<'a> {
    input: &'a [u8],
    pub events: Vec<Event>,
    pub attrs: Vec<Attr>,
    /// Whether a table was opened.
    pub has_tables: bool,
    /// The encoding of the queries of links.
    pub queries: Queries,
    /// The other vectors that the structure needs.
    pub room: Room,
}

impl<'a> Outline<'a> {
    /// Run the page pass and write its events.
    pub fn run(page: &mut Page<'a>, queries: Queries) -> Self {
        let mut room = Room::take();
        page.stack.events = std::mem::take(&mut room.events);
        page.stack.noting = true;
        let mut walk = Walk { attrs: std::mem::take(&mut room.attrs), has_tables: false, page };
        walk.run();
        let Walk { attrs, has_tables, .. } = walk;
        let events = std::mem::take(&mut page.stack.events);
        Outline { input: page.tok.input, events, attrs, has_tables, queries, room }
    }

    /// The class as it is written; "" without one.
    pub fn class(&self, attrs: Attributes) -> &'a str {
        std::str::from_utf8(self.raw(attrs, b"class").unwrap_or_default()).unwrap_or_default()
    }

    /// The value of an attribute as it is written. Inlined: the comparison with a constant name is a few instructions.
    #[inline(always)]
    pub fn raw(&self, attrs: Attributes, name: &[u8]) -> Option<&'a [u8]> {
        let slice = |span: Span| &self.input[span.0 as usize..span.1 as usize];
        let all = &self.attrs[attrs.0 as usize..attrs.1 as usize];
        let size = name.len() as u32;
        let mut same = all.iter().filter(|attr| attr.name.1 - attr.name.0 == size);
        same.find(|attr| slice(attr.name).eq_ignore_ascii_case(name)).map(|attr| slice(attr.value))
    }

    /// The value of an attribute, references decoded.
    #[inline]
    pub fn attr(&self, attrs: Attributes, name: &str) -> Option<Cow<'a, str>> {
        self.raw(attrs, name.as_bytes()).map(|value| utf8(entities::decode(value, true, true)))
    }
}

/// The input is valid UTF-8, and spans begin and end at ASCII bytes.
fn utf8(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        // `from_utf8` passes over ASCII in words, `from_utf8_lossy` byte by byte.
        Cow::Borrowed(bytes) => {
            std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
        }
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Cow::Owned(text),
            Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        },
    }
}

struct Walk<'p, 'a> {
    page: &'p mut Page<'a>,
    attrs: Vec<Attr>,
    has_tables: bool,
}

impl Walk<'_, '_> {
    fn run(&mut self) {
        loop {
            match self.page.tok.next() {
                Token::Text(span) => self.data(span),
                Token::RawText(span, kind) => self.raw_text(span, kind),
                Token::Start => self.start(),
                Token::End => self.end(),
                Token::Eof => break,
            }
        }
        self.page.finish();
        self.take_back();
        self.page.stack.pop_to(0);
    }

    fn add(&mut self, event: Event) {
        self.page.stack.events.push(event);
    }

    fn is_visible(&self) -> bool {
        self.page.frames == Frames::No && self.page.stack.flags() & F_HIDDEN == 0
    }

    fn data(&mut self, span: Span) {
        let before = self.page.text.text.len();
        self.page.data(span);
        self.text(before);
    }

    fn raw_text(&mut self, span: Span, kind: Raw) {
        let tag = match self.page.follow {
            Follow::Visible if kind != Raw::Cdata => XMP,
            _ => 0,
        };
        let before = self.page.text.text.len();
        self.page.raw_text(span, kind);
        match self.page.formula.take() {
            Some(display) => self.formula(before, display),
            None => self.text_in(tag, before, (0, 0)),
        }
    }

    /// The formula that was written since the text had `before` bytes.
    fn formula(&mut self, before: usize, display: bool) {
        self.text_in(MATH, before, if display { DISPLAY } else { (0, 0) });
    }

    /// Text of an element that is on no stack: <xmp>, <plaintext>, a formula; 0 for none.
    fn text_in(&mut self, tag: u8, before: usize, attrs: Attributes) {
        if tag != 0 && self.page.text.text.len() > before {
            self.add(Event::Open { tag, id: 0, attrs });
            self.text(before);
            self.add(Event::Close(0));
        } else {
            self.text(before);
        }
    }

    /// The text that the page pass has added since it had `before` bytes.
    fn text(&mut self, before: usize) {
        let sink = &self.page.text;
        if sink.text.len() > before {
            let (end, line) = (sink.text.len() as u32, sink.lines.len() as u32 - 1);
            self.add(Event::Text(before as u32, end, line));
        }
    }

    /// The lines of the document of a frame: paragraphs.
    fn lines_since(&mut self, before: usize) {
        for at in before..self.page.text.lines.len() {
            let line = self.page.text.lines[at];
            self.add(Event::Open { tag: P, id: 0, attrs: (0, 0) });
            self.add(Event::Text(line.start, line.start + line.len, at as u32));
            self.add(Event::Close(0));
        }
    }

    /// Text that the page pass has taken back has no events.
    fn take_back(&mut self) {
        let end = self.page.text.text.len() as u32;
        for event in self.page.stack.events.iter_mut().rev() {
            if let Event::Text(from, to, _) = event {
                if *to <= end {
                    break;
                }
                (*from, *to) = ((*from).min(end), end);
            }
        }
    }

    fn start(&mut self) {
        let tag = self.page.tok.tag;
        self.has_tables |= tag == TABLE;
        let length = self.page.text.text.len();
        let (before, lines) = (self.page.stack.events.len(), self.page.text.lines.len());
        self.page.start_tag();
        if self.page.text.text.len() < length {
            self.take_back();
        }
        if self.page.frames != Frames::No {
            // A frameset takes the place of the body.
            self.page.stack.events.clear();
            return;
        }
        let attrs = self.keep_attributes(tag, before);
        if tag == IFRAME {
            self.lines_since(lines);
        } else if tag != SCRIPT {
            if let Some(display) = self.page.formula.take() {
                self.formula(length, display);
            }
        }
        let is_void = matches!(tag, BR | IMG | IMAGE | INPUT | HR);
        if is_void && self.is_visible() && self.page.hiding(tag) & F_HIDDEN == 0 {
            match tag {
                IMG if self.page.text.is_parted() => {
                    self.add(Event::Space);
                    self.add(Event::Void { tag, attrs });
                }
                BR | IMG | INPUT | HR => self.add(Event::Void { tag, attrs }),
                IMAGE => self.add(Event::Void { tag: IMG, attrs }),
                _ => {}
            }
        }
    }

    fn end(&mut self) {
        let tag = self.page.tok.tag;
        let length = self.page.text.text.len();
        let before = self.page.stack.events.len();
        self.page.end_tag();
        if self.page.text.text.len() < length {
            self.take_back();
        }
        if self.is_visible() {
            match tag {
                BR => self.add(Event::Void { tag, attrs: (0, 0) }),
                // It makes an empty paragraph where none is open.
                P if self.page.stack.events.len() == before => self.add(Event::Void { tag: 0, attrs: (0, 0) }),
                _ => {}
            }
        }
    }

    /// The attributes of the current tag, if the structure may depend on them: of the element that the events since
    /// `before` open by it, too. Implied elements have none.
    fn keep_attributes(&mut self, tag: u8, before: usize) -> Attributes {
        let tok = &self.page.tok;
        if tok.attrs.is_empty() || !(has_attributes(tag) || tag == SPAN && self.tells_span()) {
            return (0, 0);
        }
        let from = self.attrs.len() as u32;
        self.attrs.extend_from_slice(&tok.attrs);
        let kept = (from, self.attrs.len() as u32);
        for event in &mut self.page.stack.events[before..] {
            match event {
                Event::Open { tag: opened, attrs, .. } if *opened == tag || (*opened, tag) == (PRE, CODE) => *attrs = kept,
                _ => {}
            }
        }
        kept
    }

    /// Whether the attributes of a span are read: in code it may be a number, elsewhere a formula.
    fn tells_span(&self) -> bool {
        let tok = &self.page.tok;
        self.page.stack.flags() & F_PRE != 0
            || tok.attr(b"class").is_some_and(|class| class.starts_with(b"math") || class == b"arithmatex")
            || tok.attr(b"id").is_some_and(is_note)
    }
}

/// Whether the structure may depend on the attributes of such an element.
fn has_attributes(tag: u8) -> bool {
    matches!(
        tag,
        A | IMG | IMAGE | INPUT | OL | LI | DT | TD | TH | PRE | LISTING | DIV | CODE | FIGURE | SECTION | ASIDE | P
    )
}
