//! The page pass: tokens in, title, meta, text lines and raw links out. The effect of each tag is in tree.rs.
//!
//! One loop, no recursion, no tree: memory is the output plus a stack of at most 1,024 small elements.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::boilerplate;
use crate::boxes::Boxes;
use crate::entities;
use crate::json_ld::JsonLd;
use crate::microdata::Microdata;
use crate::values::MAX_VALUE;
use crate::spelling::spelled;
use crate::stack::Stack;
use crate::tags::*;
use crate::text::{is_blank, Context, TextSink};
use crate::tokenizer::{is_space, Raw, Span, Token, Tokenizer};

/// A link as written in the page; its href is resolved when the base is known.
pub struct RawLink<'a> {
    pub href: Href<'a>,
    pub kind: u8,
    pub nofollow: bool,
    /// Inside nav, header, footer or aside on every occurrence; false where places are not wanted.
    pub in_chrome: bool,
    /// Range of the text inside it; empty if none.
    pub anchor: Span,
}

/// One occurrence of a link: where in the text it begins.
pub struct Spot {
    pub link: u32,
    pub at: u32,
}

pub enum Href<'a> {
    /// An attribute value, references not decoded.
    Attribute(&'a [u8]),
    /// Decoded text (meta refresh).
    Text(String),
}

impl Href<'_> {
    fn attribute(&self) -> &[u8] {
        match self {
            Href::Attribute(raw) => raw,
            Href::Text(_) => b"",
        }
    }
}

pub const KIND_A: u8 = 0;
pub const KIND_AREA: u8 = 1;
pub const KIND_IFRAME: u8 = 2;
pub const KIND_FRAME: u8 = 3;
pub const KIND_REFRESH: u8 = 5;

/// Documents of `srcdoc` within each other.
const MAX_FRAME_DEPTH: u32 = 3;
/// At most this many metas are kept.
pub const MAX_META: usize = 100;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Frames {
    No,
    Inside(u32),
    After,
}

#[derive(Default)]
pub struct Head<'a> {
    pub title: Option<Vec<u8>>,
    pub lang: Option<String>,
    pub base: Option<&'a [u8]>,
    pub canonical: Option<&'a [u8]>,
    /// `LANGUAGE URL` of each version of the page in another language, a line each, as written.
    pub hreflang: String,
    pub robots: String,
    pub description: Option<String>,
    pub meta: Vec<(String, String)>,
    pub refresh: Option<String>,
    /// The page calls itself an article, by og:type or in JSON-LD; a thread of posts, in JSON-LD.
    pub says_article: bool,
    pub says_thread: bool,
    /// Products and lists that JSON-LD names; og:type counts as a product.
    pub products: u32,
    pub lists: u32,
    pub json_ld: JsonLd,
    /// Of the first <time> that is not of a change.
    pub time: Option<String>,
}

/// The raw text that follows a start tag: where it goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    Nothing,
    Title,
    Visible,
    JsonLd,
    /// TeX.
    Formula,
}

pub struct Page<'a> {
    pub tok: Tokenizer<'a>,
    pub stack: Stack,
    pub text: TextSink,
    pub boxes: Boxes,
    pub head: Head<'a>,
    pub microdata: Microdata,
    pub links: Vec<RawLink<'a>>,
    pub max_raw: usize,
    /// Hrefs beyond `max_raw`, each as often as it occurs.
    pub left_out: u32,
    pub frames: Frames,
    /// The formula that the last tag has written, if it has: whether it has a line of its own.
    pub formula: Option<bool>,
    /// Number of the element that shows formulas in lines of their own; 0 for none.
    pub display: u32,
    /// Text that the page hides by attributes is text.
    pub keeps_hidden: bool,
    pub frameset_ok: bool,
    pub follow: Follow,
    /// Name under which robots directives are meant for this crawler.
    pub agent: &'a [u8],
    /// The open `<a href>`: its link (None beyond the limit), where its text starts, markers open when it began.
    pub anchor: Option<(Option<u32>, u32, u16)>,
    /// Number of the element that the last shadow root belongs to.
    pub shadow_host: u32,
    /// A <body> tag has come.
    pub in_body: bool,
    /// Frames around this document.
    frame_depth: u32,
    /// The open link leads to its own page: it may be the sign of a heading.
    pub permalink: bool,
    /// The open link is a tool: its text goes.
    pub link_tool: bool,
    /// Occurrences in the order of the page, at most `max_spots`; what comes after those is in no main text.
    pub spots: Vec<Spot>,
    max_spots: usize,
    /// Links by their hrefs.
    seen: HashTable<u32>,
    hasher: RandomState,
}

impl<'a> Page<'a> {
    pub fn new(input: &'a [u8], max_links: usize, max_text: usize, boxes: bool, agent: &'a [u8]) -> Self {
        Page {
            tok: Tokenizer::new(input),
            stack: Stack::new(),
            // A fifth of a page is text, as a rule.
            text: TextSink::new(max_text, input.len() / 5),
            boxes: Boxes::new(boxes),
            head: Head::default(),
            microdata: Microdata::new(input),
            links: Vec::with_capacity(256),
            // Different hrefs may come to the same URL; beyond this many distinct ones a page is hostile.
            max_raw: max_links.saturating_mul(4),
            left_out: 0,
            frames: Frames::No,
            formula: None,
            display: 0,
            keeps_hidden: false,
            frameset_ok: true,
            follow: Follow::Nothing,
            agent,
            anchor: None,
            shadow_host: 0,
            in_body: false,
            frame_depth: 0,
            permalink: false,
            link_tool: false,
            spots: Vec::with_capacity(if boxes { 256 } else { 0 }),
            max_spots: if boxes { max_links.saturating_mul(4) } else { 0 },
            seen: HashTable::with_capacity(256),
            hasher: RandomState::default(),
        }
    }

    /// Scan to the end. O(bytes).
    pub fn run(&mut self) {
        loop {
            match self.tok.next() {
                Token::Text(span) => self.data(span),
                Token::Start => self.start_tag(),
                Token::End => self.end_tag(),
                Token::RawText(span, kind) => self.raw_text(span, kind),
                Token::Eof => break,
            }
        }
        self.finish();
    }

    /// The end of the input.
    pub fn finish(&mut self) {
        self.close_anchor();
        self.text.break_line();
    }

    /// After a tag: line breaks and closed anchors that its pops brought, and the tokenizer's view of the tree.
    #[inline(always)]
    pub fn settle(&mut self) {
        if self.stack.broke {
            self.stack.broke = false;
            self.text.break_line();
        }
        if let Some((_, _, markers)) = self.anchor {
            if self.stack.markers < markers {
                self.close_anchor();
            }
        }
        self.tok.foreign = self.stack.foreign > 0 && self.stack.items.last().is_some_and(|e| e.ns != 0);
    }

    fn context(&self) -> Context {
        let flags = self.stack.flags();
        Context {
            tag: self.stack.block(),
            flags,
            pre: flags & F_PRE != 0,
            in_link: self.anchor.is_some(),
            place: self.stack.place(),
            inner: self.stack.items.last().map_or(0, |e| e.tag),
        }
    }

    #[inline]
    pub fn data(&mut self, span: Span) {
        let part = self.tok.slice(span);
        if self.frames != Frames::No {
            return;
        }
        // Between two tags there is mostly whitespace.
        let blank = is_blank(part);
        if !blank && self.stack.flags() & F_HIDDEN == 0 {
            self.stack.reopen();
        }
        let flags = self.stack.flags();
        self.stack.text(part.len());
        if blank {
            if flags & (F_HIDDEN | F_TMPL) == 0 {
                if flags & F_PRE != 0 {
                    let context = self.context();
                    self.text.add(part, context);
                } else {
                    self.text.add_space();
                }
            }
            return;
        }
        self.stack.foster(part.len());
        if flags & F_TMPL == 0 && self.frameset_ok {
            self.frameset_ok = part.iter().all(|b| is_space(*b) || *b == 0);
        }
        if flags & F_HIDDEN == 0 {
            self.visible(part, true);
        }
    }

    /// Add text with references to be decoded; NULs are dropped as the tree drops them.
    pub fn visible(&mut self, part: &[u8], references: bool) {
        let context = self.context();
        self.text.begin_token();
        let mut rest = part;
        let mut buffer = [0u8; 4];
        loop {
            let special = if references { memchr::memchr2(b'&', 0, rest) } else { memchr::memchr(0, rest) };
            let Some(at) = special else { return self.text.add(rest, context) };
            self.text.add(&rest[..at], context);
            if rest[at] == 0 {
                rest = &rest[at + 1..];
                continue;
            }
            match entities::reference(&rest[at..], false) {
                Some(found) => {
                    let decoded = found.bytes(&mut buffer);
                    if decoded != b"\0" {
                        self.text.add(decoded, context);
                    }
                    rest = &rest[at + found.len..];
                }
                None => {
                    self.text.add(b"&", context);
                    rest = &rest[at + 1..];
                }
            }
        }
    }

    /// Add the LaTeX of a formula. `display`: in a line of its own.
    pub fn write_formula(&mut self, tex: &[u8], references: bool, display: bool) {
        let tex = tex.trim_ascii();
        if tex.is_empty() {
            return;
        }
        if display {
            self.text.break_line();
        }
        self.visible(tex, references);
        if display {
            self.text.break_line();
        }
        self.formula = Some(display);
    }

    pub fn raw_text(&mut self, span: Span, kind: Raw) {
        let part = self.tok.slice(span);
        let follow = std::mem::replace(&mut self.follow, Follow::Nothing);
        match kind {
            Raw::Cdata => {
                if self.stack.flags() & F_HIDDEN == 0 {
                    self.visible(part, false);
                }
            }
            _ if follow == Follow::Title => {
                let title = self.head.title.get_or_insert_with(Vec::new);
                let decoded = entities::decode(part, true, false);
                crate::text::collapse_into(&spelled(&decoded), MAX_VALUE, title);
            }
            _ if follow == Follow::Visible => {
                let flags = self.stack.flags();
                if flags & F_HIDDEN == 0 && self.frames == Frames::No {
                    let mut context = self.context();
                    context.tag = if kind == Raw::Plaintext { PLAINTEXT } else { XMP };
                    context.inner = context.tag;
                    context.flags |= F_PRE;
                    context.pre = true;
                    self.text.begin_token();
                    for piece in part.split(|b| *b == 0) {
                        self.text.add(piece, context);
                    }
                    self.text.break_line();
                }
            }
            _ if follow == Follow::Formula => {
                let display = self.formula.take().unwrap_or(false);
                if self.stack.flags() & F_HIDDEN == 0 && self.frames == Frames::No {
                    self.write_formula(part, false, display);
                }
            }
            _ if follow == Follow::JsonLd => self.head.read_json_ld(part),
            _ => {}
        }
    }

    /// Note a link; its first occurrence counts, `nofollow` and the place around it count only if every occurrence has
    /// them.
    pub fn link(&mut self, href: &'a [u8], kind: u8, nofollow: bool) -> Option<u32> {
        let in_chrome = self.max_spots > 0 && self.stack.flags() & F_CHROME != 0;
        let hash = self.hasher.hash_one(href);
        let links = &mut self.links;
        let at = match self.seen.find(hash, |at| links[*at as usize].href.attribute() == href) {
            Some(at) => {
                let link = &mut links[*at as usize];
                link.nofollow &= nofollow;
                link.in_chrome &= in_chrome;
                *at
            }
            None if links.len() >= self.max_raw => {
                self.left_out = self.left_out.saturating_add(1);
                return None;
            }
            None => {
                let at = links.len() as u32;
                links.push(RawLink { href: Href::Attribute(href), kind, nofollow, in_chrome, anchor: (0, 0) });
                let hasher = &self.hasher;
                self.seen.insert_unique(hash, at, |at| hasher.hash_one(links[*at as usize].href.attribute()));
                at
            }
        };
        if self.spots.len() < self.max_spots {
            self.spots.push(Spot { link: at, at: self.text.text.len() as u32 });
        }
        Some(at)
    }

    /// Read the document of an `<iframe srcdoc>`: its lines and links are a part of the page, its head is not. O(bytes).
    pub fn frame_document(&mut self, document: &[u8]) {
        let flags = self.stack.flags();
        if flags & (F_HIDDEN | F_TMPL) != 0 || self.frames != Frames::No || self.frame_depth >= MAX_FRAME_DEPTH {
            return;
        }
        self.text.break_line();
        let input = entities::decode(document, true, true);
        let mut inner = Page::new(&input, 0, 0, false, b"");
        inner.max_raw = self.max_raw - self.links.len().min(self.max_raw);
        inner.max_spots = self.max_spots - self.spots.len().min(self.max_spots);
        inner.frame_depth = self.frame_depth + 1;
        inner.stack.outer = self.stack.place();
        std::mem::swap(&mut inner.text, &mut self.text);
        std::mem::swap(&mut inner.boxes, &mut self.boxes);
        inner.run();
        std::mem::swap(&mut inner.text, &mut self.text);
        std::mem::swap(&mut inner.boxes, &mut self.boxes);
        let (before, chrome) = (self.links.len() as u32, flags & F_CHROME != 0 && self.max_spots > 0);
        for link in inner.links {
            let href = match link.href {
                Href::Text(text) => text,
                Href::Attribute(raw) => String::from_utf8_lossy(&entities::decode(raw, true, true)).into_owned(),
            };
            self.links.push(RawLink { href: Href::Text(href), in_chrome: link.in_chrome || chrome, ..link });
        }
        self.spots.extend(inner.spots.iter().map(|spot| Spot { link: spot.link + before, ..*spot }));
        self.left_out = self.left_out.saturating_add(inner.left_out);
        let depth = inner.stack.depth();
        self.tok.crowded |= inner.tok.crowded || depth == u32::MAX;
        self.stack.deepest = self.stack.deepest.max(depth);
    }

    pub fn refresh_link(&mut self, target: String) {
        if self.links.len() < self.max_raw {
            let (href, kind, anchor) = (Href::Text(target), KIND_REFRESH, (0, 0));
            self.links.push(RawLink { href, kind, nofollow: false, in_chrome: false, anchor });
        }
    }

    pub fn open_anchor(&mut self, link: Option<u32>) {
        self.close_anchor();
        self.anchor = Some((link, self.text.text.len() as u32, self.stack.markers));
        let class = self.tok.attr(b"class").filter(|class| boilerplate::may_name_link(class));
        self.permalink = self.tok.attr(b"href").is_some_and(|href| href.starts_with(b"#"))
            || class.is_some_and(boilerplate::names_permalink);
        self.link_tool = class.is_some_and(boilerplate::names_link_tool);
    }

    pub fn close_anchor(&mut self) {
        let Some((link, start, _)) = self.anchor.take() else { return };
        let is_sign = std::mem::take(&mut self.permalink) && boilerplate::is_sign(&self.text.text[start as usize..]);
        if is_sign || std::mem::take(&mut self.link_tool) {
            self.text.take_back(start as usize);
        }
        let (Some(link), end) = (link, self.text.text.len() as u32) else { return };
        let known = &mut self.links[link as usize].anchor;
        if known.0 == known.1 && start < end {
            *known = (start, end);
        }
    }

    /// A frameset takes the place of the body: what the body held is no longer in the tree.
    pub fn drop_body(&mut self) {
        self.anchor = None;
        self.links.retain(|link| link.kind == KIND_REFRESH);
        self.seen.clear();
        self.spots.clear();
        if self.frame_depth == 0 {
            self.text.clear();
        }
        self.stack.pop_to(0);
    }
}
