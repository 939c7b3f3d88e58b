//! A page as a flat list of events in document order: elements that open and close, and text. No tree is built.
//!
//! The steps are those of the page pass (stack.rs), so that lines are cut where the page pass cuts them. Formatting
//! elements that a block closes are opened again, as in a tree. Invariants: hidden content has no events; at most 512
//! elements are open; every `Open` has a `Close`, not always in reverse order. O(bytes).

use std::borrow::Cow;
use std::collections::HashMap;

use super::chars::push_readable;
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
    /// A range of `Outline::text`.
    Text(u32, u32),
    Open {
        tag: u8,
        id: u32,
        attrs: Attributes,
    },
    Close(u32),
    /// An element without content: br, img; 0 for anything that only ends a line.
    Void {
        tag: u8,
        attrs: Attributes,
    },
}

pub struct Outline<'a> {
    input: &'a [u8],
    /// References decoded, without control characters that are no white space.
    pub text: String,
    pub events: Vec<Event>,
    attrs: Vec<Attr>,
}

impl<'a> Outline<'a> {
    pub fn new(input: &'a [u8]) -> Self {
        let mut walk = Walk {
            page: Page::new(input, 0, 0, false, b""),
            out: Outline { input, text: String::new(), events: Vec::new(), attrs: Vec::new() },
            links: HashMap::default(),
            after_tag: true,
        };
        walk.page.tok.all_attrs = true;
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

struct Walk<'a> {
    page: Page<'a>,
    out: Outline<'a>,
    /// Attributes of links by the numbers of their elements, which may be opened again.
    links: HashMap<u32, Attributes, foldhash::fast::RandomState>,
    /// The last token was a tag: text continues the text before if the tag had no effect.
    after_tag: bool,
}

impl<'a> Walk<'a> {
    fn run(&mut self) {
        loop {
            let token = self.page.tok.next();
            match token {
                Token::Text(span) => self.data(span),
                Token::RawText(span, kind) => self.raw_text(span, kind),
                Token::Start => self.start(),
                Token::End => self.end(),
                Token::Eof => break,
            }
            self.after_tag = matches!(token, Token::Start | Token::End);
        }
        self.page.stack.pop_to(0);
        self.steps(0, (0, 0));
    }

    fn is_visible(&self) -> bool {
        self.page.frames == Frames::No && self.page.stack.flags() & F_HIDDEN == 0
    }

    fn data(&mut self, span: Span) {
        let part = self.page.tok.slice(span);
        if self.is_visible() {
            if !is_blank(part) {
                self.reopen();
            }
            self.text(part, true);
        }
        self.page.data(span);
    }

    fn raw_text(&mut self, span: Span, kind: Raw) {
        let part = self.page.tok.slice(span);
        let shown = self.page.follow == Follow::Visible;
        if self.is_visible() {
            if kind == Raw::Cdata {
                self.text(part, false);
            } else if shown {
                // <xmp> and <plaintext>, which are on no stack.
                self.out.events.push(Event::Open { tag: XMP, id: 0, attrs: (0, 0) });
                self.text(part, false);
                self.out.events.push(Event::Close(0));
            }
        }
        self.page.raw_text(span, kind);
    }

    fn start(&mut self) {
        let tag = self.page.tok.tag;
        let inline = CATS[tag as usize] & C_SPECIAL == 0 || matches!(tag, IMG | BR | OBJECT | SELECT | XMP);
        if inline && tag != A && self.is_visible() {
            self.reopen();
        }
        self.page.start_tag();
        if self.page.frames != Frames::No {
            // A frameset takes the place of the body.
            self.out.events.clear();
            self.page.stack.steps = Some(Vec::new());
            return;
        }
        let attrs = self.keep_attributes(tag);
        self.steps(tag, attrs);
        if self.is_visible() {
            match tag {
                BR | IMG => self.out.events.push(Event::Void { tag, attrs }),
                IMAGE => self.out.events.push(Event::Void { tag: IMG, attrs }),
                HR => self.out.events.push(Event::Void { tag: 0, attrs }),
                _ => {}
            }
        }
    }

    fn end(&mut self) {
        let tag = self.page.tok.tag;
        self.page.end_tag();
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

    /// The attributes of the current tag, if the Markdown of its element may depend on them.
    fn keep_attributes(&mut self, tag: u8) -> Attributes {
        let from = self.out.attrs.len() as u32;
        if matches!(
            tag,
            A | IMG | IMAGE | OL | LI | DT | TD | TH | PRE | LISTING | SPAN | DIV | CODE | FIGURE | SECTION
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

    fn text(&mut self, part: &[u8], references: bool) {
        let from = self.out.text.len() as u32;
        for piece in part.split(|byte| *byte == 0) {
            let decoded = utf8(entities::decode(piece, references, false));
            push_readable(&decoded, &mut self.out.text);
        }
        let to = self.out.text.len() as u32;
        if from == to {
            return;
        }
        match self.out.events.last_mut() {
            Some(Event::Text(_, end)) if self.after_tag => *end = to,
            _ => self.out.events.push(Event::Text(from, to)),
        }
    }
}
