//! Dates and the author of the page in microdata: `<time itemprop=datePublished datetime=…>`, `<span itemprop=author>`.
//!
//! A page without the word `itemprop` costs two searches. Of other pages a tag is looked at only if its bytes hold the
//! word. The text of an element is read from the input behind its tag, `MAX_BYTES` at most. React writes `itemProp`.

use memchr::memmem;

use crate::entities;
use crate::tags::*;
use crate::tokenizer::{is_space, Token, Tokenizer};
use crate::values::{spelled_value, value};

const WORDS: [&[u8]; 2] = [b"itemprop", b"itemProp"];
const NAMES: [&str; 4] = ["datepublished", "datecreated", "datemodified", "author"];
const AUTHOR: usize = 3;
/// Bytes behind a tag that are searched for the end of its element.
const MAX_BYTES: usize = 1024;
/// Bytes of a text that is a date or a name.
const MAX_TEXT: usize = 100;
/// Tags with the word that are looked at: an article states its dates and its author before its comments.
const MAX_TAGS: u32 = 256;

/// The first value of each name.
pub struct Microdata {
    /// Where each spelling of the word comes next; the length of the input or more if it does not.
    next: [usize; 2],
    values: [Option<String>; 4],
    tags: u32,
}

impl Microdata {
    pub fn new(input: &[u8]) -> Self {
        let next = WORDS.map(|word| memmem::find(input, word).unwrap_or(usize::MAX));
        Microdata { next, values: Default::default(), tags: 0 }
    }

    /// Is the word before this position of the input?
    #[inline(always)]
    pub fn is_before(&self, pos: usize) -> bool {
        self.next[0] < pos || self.next[1] < pos
    }

    /// Step to the words at or behind a position. Amortised O(bytes).
    fn step(&mut self, input: &[u8], from: usize) {
        for (next, word) in self.next.iter_mut().zip(WORDS) {
            if *next < from {
                *next = memmem::find(&input[from..], word).map_or(usize::MAX, |at| from + at);
            }
        }
    }

    /// Note a start tag that ends here, if it has the word. `is_other`: what it states is not of the page.
    #[cold]
    pub fn note(&mut self, input: &[u8], start: usize, end: usize, is_other: bool) {
        self.step(input, start);
        if !self.is_before(end) {
            return;
        }
        self.step(input, end);
        self.tags += 1;
        if self.tags >= MAX_TAGS {
            self.next = [usize::MAX; 2];
        }
        if is_other {
            return;
        }
        let Some(tag) = tag_of(&input[start..end]) else { return };
        let words = words_of(&tag);
        for (at, name) in NAMES.into_iter().enumerate() {
            if self.values[at].is_none() && words.iter().any(|word| word == name) {
                self.values[at] = if at == AUTHOR { author(input, end, &tag) } else { date(input, end, &tag) };
            }
        }
    }

    /// (name, value) as of a `<meta>`.
    pub fn entries(self) -> impl Iterator<Item = (String, String)> {
        NAMES.into_iter().zip(self.values).filter_map(|(name, value)| Some((name.to_owned(), value?)))
    }
}

/// The tag in these bytes, with all attributes.
fn tag_of(bytes: &[u8]) -> Option<Tokenizer<'_>> {
    let mut tag = Tokenizer::new(bytes);
    tag.all_attrs = true;
    (tag.next() == Token::Start).then_some(tag)
}

fn words_of(tag: &Tokenizer<'_>) -> Vec<String> {
    let stated = attribute(tag, b"itemprop").unwrap_or_default().to_ascii_lowercase();
    stated.split(|c| u8::try_from(c).is_ok_and(is_space)).map(str::to_owned).collect()
}

fn attribute(tag: &Tokenizer<'_>, name: &[u8]) -> Option<String> {
    tag.attr(name).map(|raw| spelled_value(value(entities::decode(raw, true, true))))
}

fn date(input: &[u8], end: usize, tag: &Tokenizer<'_>) -> Option<String> {
    let stated = |name: &[u8]| attribute(tag, name).filter(|stated| !stated.is_empty());
    stated(b"datetime").or_else(|| stated(b"content")).or_else(|| text(input, end, tag))
}

/// The name of the person, if the author is an item of its own, else the text.
fn author(input: &[u8], end: usize, tag: &Tokenizer<'_>) -> Option<String> {
    let stated = attribute(tag, b"content").filter(|stated| !stated.is_empty());
    stated.or_else(|| name_below(input, end, tag)).or_else(|| text(input, end, tag))
}

fn name_below(input: &[u8], from: usize, tag: &Tokenizer<'_>) -> Option<String> {
    let mut inner = Inner::new(input, from, tag);
    while let Some(token) = inner.next() {
        if token == Token::Start && words_of(&inner.tok).iter().any(|word| word == "name") {
            let stated = attribute(&inner.tok, b"content").filter(|stated| !stated.is_empty());
            return stated.or_else(|| text(input, from + inner.tok.pos, &inner.tok));
        }
    }
    None
}

/// The text of the element whose start tag ends here; None if it has none, is long, or its end is far.
fn text(input: &[u8], from: usize, tag: &Tokenizer<'_>) -> Option<String> {
    let mut inner = Inner::new(input, from, tag);
    let mut raw = Vec::new();
    while let Some(token) = inner.next() {
        if let Token::Text(span) = token {
            raw.extend_from_slice(&entities::decode(inner.tok.slice(span), true, false));
        } else if CATS[inner.tok.tag as usize] & C_SPECIAL != 0 {
            raw.push(b' ');
        }
    }
    let text = String::from_utf8_lossy(&raw);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    (inner.is_closed && !text.is_empty() && text.len() <= MAX_TEXT).then(|| spelled_value(text))
}

/// The tokens of an element behind its start tag.
struct Inner<'a> {
    tok: Tokenizer<'a>,
    own: (u8, u32),
    depth: u32,
    is_closed: bool,
}

impl<'a> Inner<'a> {
    fn new(input: &'a [u8], from: usize, tag: &Tokenizer<'_>) -> Self {
        let mut tok = Tokenizer::new(&input[from..input.len().min(from + MAX_BYTES)]);
        tok.all_attrs = true;
        Inner { tok, own: (tag.tag, tag.hash), depth: 1, is_closed: false }
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tok.next();
        let is_own = (self.tok.tag, self.tok.hash) == self.own;
        match token {
            Token::Eof => return None,
            Token::Start if is_own => self.depth += 1,
            Token::End if is_own => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.is_closed = true;
                    return None;
                }
            }
            _ => {}
        }
        Some(token)
    }
}
