//! A page as a flat list of events in document order: elements that open and close, and text. No tree is built.
//!
//! The events are written while the page pass runs: text is a range of its text, and elements are the steps of its
//! stack. Formatting elements that a block closes are opened again, as in a tree. Invariants: hidden content has no
//! events; at most 512 elements are open; every `Open` has a `Close`, not always in reverse order. O(bytes).

use std::borrow::Cow;
use std::collections::HashMap;

use crate::entities;
use crate::page::{Follow, Frames, Page};
use crate::stack::Step;
use crate::tags::*;
use crate::text::is_blank;
use crate::tokenizer::{Attr, Raw, Span, Token};

/// Attributes of an element: a range in `Outline::attrs`.
pub type Attributes = (u32, u32);

#[derive(Clone, Copy)]
pub enum Event {
    /// A range of the text of the page pass, and the number of its last line.
    Text(u32, u32, u32),
    Open {
        tag: u8,
        id: u32,
        attrs: Attributes,
    },
    Close(u32),
    /// White space before a picture: that before text is part of the text.
    Space,
    /// An element without content: br, img; 0 for anything that only ends a line.
    Void {
        tag: u8,
        attrs: Attributes,
    },
}

pub struct Outline<'a> {
    input: &'a [u8],
    pub events: Vec<Event>,
    attrs: Vec<Attr>,
}

impl<'a> Outline<'a> {
    /// Run the page pass and write its events.
    pub fn run(page: &mut Page<'a>) -> Self {
        let mut walk = Walk {
            out: Outline { input: page.tok.input, events: Vec::with_capacity(1024), attrs: Vec::with_capacity(256) },
            page,
            links: HashMap::default(),
        };
        walk.page.stack.steps = Some(Vec::new());
        walk.run();
        walk.out
    }

    /// The value of an attribute, references decoded.
    pub fn attr(&self, attrs: Attributes, name: &str) -> Option<Cow<'a, str>> {
        let slice = |span: Span| &self.input[span.0 as usize..span.1 as usize];
        let all = &self.attrs[attrs.0 as usize..attrs.1 as usize];
        let found = all.iter().find(|attr| slice(attr.name).eq_ignore_ascii_case(name.as_bytes()))?;
        Some(utf8(entities::decode(slice(found.value), true, true)))
    }
}

/// The input is valid UTF-8, and spans begin and end at ASCII bytes.
fn utf8(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Cow::Owned(text),
            Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        },
    }
}

struct Walk<'p, 'a> {
    page: &'p mut Page<'a>,
    out: Outline<'a>,
    /// Attributes of links by the numbers of their elements, which may be opened again.
    links: HashMap<u32, Attributes, foldhash::fast::RandomState>,
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
        self.steps(0, (0, 0));
    }

    fn is_visible(&self) -> bool {
        self.page.frames == Frames::No && self.page.stack.flags() & F_HIDDEN == 0
    }

    fn data(&mut self, span: Span) {
        if self.is_visible() && !is_blank(self.page.tok.slice(span)) {
            self.reopen();
        }
        let before = self.page.text.text.len();
        self.page.data(span);
        self.text(before);
    }

    fn raw_text(&mut self, span: Span, kind: Raw) {
        let tag = match self.page.follow {
            Follow::Visible if kind != Raw::Cdata => XMP,
            Follow::Formula => MATH,
            _ => 0,
        };
        let before = self.page.text.text.len();
        self.page.raw_text(span, kind);
        self.text_in(tag, before);
    }

    /// Text of an element that is on no stack: <xmp>, <plaintext>, a formula; 0 for none.
    fn text_in(&mut self, tag: u8, before: usize) {
        if tag != 0 && self.page.text.text.len() > before {
            self.out.events.push(Event::Open { tag, id: 0, attrs: (0, 0) });
            self.text(before);
            self.out.events.push(Event::Close(0));
        } else {
            self.text(before);
        }
    }

    /// The text that the page pass has added since it had `before` bytes.
    fn text(&mut self, before: usize) {
        let sink = &self.page.text;
        if sink.text.len() > before {
            self.out.events.push(Event::Text(before as u32, sink.text.len() as u32, sink.lines.len() as u32 - 1));
        }
    }

    /// Text that the page pass has taken back has no events.
    fn take_back(&mut self) {
        let end = self.page.text.text.len() as u32;
        for event in self.out.events.iter_mut().rev() {
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
        let inline = CATS[tag as usize] & C_SPECIAL == 0 || matches!(tag, IMG | BR | OBJECT | SELECT | XMP);
        if inline && tag != A && self.is_visible() {
            self.reopen();
        }
        let length = self.page.text.text.len();
        self.page.start_tag();
        if self.page.text.text.len() < length {
            self.take_back();
        }
        if self.page.frames != Frames::No {
            // A frameset takes the place of the body.
            self.out.events.clear();
            self.page.stack.steps = Some(Vec::new());
            return;
        }
        let attrs = self.keep_attributes(tag);
        self.steps(tag, attrs);
        if tag == MATH && self.page.text.text.len() > length {
            self.text_in(MATH, length);
        }
        if self.is_visible() {
            match tag {
                IMG if self.page.text.is_parted() => self.out.events.extend([Event::Space, Event::Void { tag, attrs }]),
                BR | IMG | INPUT => self.out.events.push(Event::Void { tag, attrs }),
                IMAGE => self.out.events.push(Event::Void { tag: IMG, attrs }),
                HR => self.out.events.push(Event::Void { tag: 0, attrs }),
                _ => {}
            }
        }
    }

    fn end(&mut self) {
        let tag = self.page.tok.tag;
        let length = self.page.text.text.len();
        self.page.end_tag();
        if self.page.text.text.len() < length {
            self.take_back();
        }
        let before = self.out.events.len();
        self.steps(0, (0, 0));
        if self.is_visible() {
            match tag {
                BR => self.out.events.push(Event::Void { tag, attrs: (0, 0) }),
                // It makes an empty paragraph where none is open.
                P if self.out.events.len() == before => self.out.events.push(Event::Void { tag: 0, attrs: (0, 0) }),
                _ => {}
            }
        }
    }

    /// The attributes of the current tag, if the structure may depend on them.
    fn keep_attributes(&mut self, tag: u8) -> Attributes {
        let from = self.out.attrs.len() as u32;
        if matches!(
            tag,
            A | IMG
                | IMAGE
                | INPUT
                | OL
                | LI
                | DT
                | TD
                | TH
                | PRE
                | LISTING
                | SPAN
                | DIV
                | CODE
                | FIGURE
                | SECTION
                | ASIDE
                | P
        ) {
            self.out.attrs.extend_from_slice(&self.page.tok.attrs);
        }
        (from, self.out.attrs.len() as u32)
    }

    fn reopen(&mut self) {
        self.page.stack.reopen();
        self.steps(0, (0, 0));
    }

    /// Steps become events; `attrs` are those of the element `tag`. Implied elements have none.
    fn steps(&mut self, tag: u8, attrs: Attributes) {
        let Some(mut steps) = self.page.stack.steps.take() else { return };
        for step in steps.drain(..) {
            let event = match step {
                Step::Close(id) => Event::Close(id),
                Step::Open(opened, id) => {
                    let attrs = if opened == tag { attrs } else { (0, 0) };
                    if opened == A {
                        self.links.insert(id, attrs);
                    }
                    Event::Open { tag: opened, id, attrs }
                }
                Step::Again(tag, id, of) => {
                    let attrs = self.links.remove(&of).unwrap_or_default();
                    if tag == A {
                        self.links.insert(id, attrs);
                    }
                    Event::Open { tag, id, attrs }
                }
            };
            self.out.events.push(event);
        }
        self.page.stack.steps = Some(steps);
    }
}
