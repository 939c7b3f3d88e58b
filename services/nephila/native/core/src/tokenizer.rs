//! The WHATWG tokenizer over valid UTF-8, without building tokens: ranges into the input.
//!
//! Invariant: `pos` only grows, every byte is looked at a bounded number of times. Comments and doctypes are stepped
//! over. The caller sets what the tree decides (raw text states, CDATA) between two tokens.

use memchr::{memchr, memmem};

use crate::search::{attribute_name_end, comment_end, find_near, raw_end, read_name, script_end};
use crate::tags;

/// A range of the input.
pub type Span = (u32, u32);

/// One attribute as written in the input: not lower-cased, references not decoded.
#[derive(Clone, Copy, Debug)]
pub struct Attr {
    pub name: Span,
    pub value: Span,
}

/// What the text after the last start tag is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Raw {
    Data,
    /// References are decoded (title, textarea).
    Rcdata,
    Rawtext,
    Script,
    Plaintext,
    /// A CDATA section as initial state (tests only).
    Cdata,
}

/// The next thing in the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Token {
    /// Text in the data state (references to be decoded, NULs still in).
    Text(Span),
    /// Text of a raw element, RCDATA, plaintext or CDATA section.
    RawText(Span, Raw),
    Start,
    End,
    Eof,
}

/// The scanner; after `Start` and `End` its public fields describe the tag.
pub struct Tokenizer<'a> {
    pub input: &'a [u8],
    pub pos: usize,
    /// Where the text before a tag ended: a `<` that needs no second look.
    tag_next: usize,
    pub raw: Raw,
    /// Name whose end tag leaves the raw state, as in the input of its start tag.
    pub raw_name: &'a [u8],
    /// The adjusted current node is not in the HTML namespace: `<![CDATA[` is a section.
    pub foreign: bool,
    pub name: Span,
    pub tag: u8,
    /// Tells unknown names apart; 0 for known ones.
    pub hash: u32,
    pub self_closing: bool,
    pub attrs: Vec<Attr>,
    /// A bit for each name of them, as `bit_of` has it: most questions for an attribute end here.
    names: u64,
    /// Keep the attributes of every tag, not only of those the page pass reads.
    pub all_attrs: bool,
    /// Some element has more than `CROWD` attributes.
    pub crowded: bool,
    /// Attributes of all `<html>` and `<body>` tags: a tree gathers them in one element of each name.
    root_attrs: u32,
}

/// More attributes than this in one element: no page has them, and trees compare each with all before it.
const CROWD: u32 = 1000;

#[inline(always)]
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0C)
}

pub const NAME_END: u8 = 1;
pub const ATTR_END: u8 = 2;
const UNQUOTED_END: u8 = 4;
const SPACE: u8 = 8;

pub static CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut i = 0;
    let spaces = [b' ', b'\n', b'\t', b'\r', 0x0C];
    while i < 5 {
        table[spaces[i] as usize] = NAME_END | ATTR_END | UNQUOTED_END | SPACE;
        i += 1;
    }
    table[b'/' as usize] = NAME_END | ATTR_END;
    table[b'>' as usize] = NAME_END | ATTR_END | UNQUOTED_END;
    table[b'=' as usize] = ATTR_END;
    table
};

impl<'a> Tokenizer<'a> {
    pub fn new(input: &'a [u8]) -> Self {
        Tokenizer {
            input,
            pos: 0,
            tag_next: usize::MAX,
            raw: Raw::Data,
            raw_name: b"",
            foreign: false,
            name: (0, 0),
            tag: 0,
            hash: 0,
            self_closing: false,
            attrs: Vec::with_capacity(32),
            names: 0,
            all_attrs: false,
            crowded: false,
            root_attrs: 0,
        }
    }

    #[inline]
    pub fn slice(&self, span: Span) -> &'a [u8] {
        &self.input[span.0 as usize..span.1 as usize]
    }

    #[inline(always)]
    fn at(&self, index: usize) -> u8 {
        // A NUL past the end: callers that care compare the index first.
        self.input.get(index).copied().unwrap_or(0)
    }

    /// The next token; `Eof` for ever at the end. Amortised O(bytes consumed).
    #[inline]
    pub fn next(&mut self) -> Token {
        if self.raw != Raw::Data {
            if let Some(token) = self.raw_text() {
                return token;
            }
        }
        loop {
            let start = self.pos;
            if start >= self.input.len() {
                return Token::Eof;
            }
            if start != self.tag_next && (self.input[start] != b'<' || !self.is_markup(start)) {
                return self.text_from(start);
            }
            if let Some(token) = self.markup(start) {
                return token;
            }
        }
    }

    /// Does the `<` at `lt` begin a tag, a comment or the like?
    #[inline(always)]
    fn is_markup(&self, lt: usize) -> bool {
        let c = self.at(lt + 1);
        c.is_ascii_alphabetic() || c == b'!' || c == b'?' || (c == b'/' && lt + 2 < self.input.len())
    }

    #[inline]
    fn text_from(&mut self, start: usize) -> Token {
        let len = self.input.len();
        let mut from = start;
        while let Some(offset) = find_near(&self.input[from..], b'<') {
            let lt = from + offset;
            if self.is_markup(lt) {
                self.pos = lt;
                self.tag_next = lt;
                return Token::Text((start as u32, lt as u32));
            }
            from = lt + 1;
        }
        self.pos = len;
        Token::Text((start as u32, len as u32))
    }

    /// Handle the `<` at `lt`; None if nothing came of it (comment, doctype, `</>`).
    #[inline]
    fn markup(&mut self, lt: usize) -> Option<Token> {
        let c = self.at(lt + 1);
        if c.is_ascii_alphabetic() {
            return Some(if self.tag_at(lt + 1) { Token::Start } else { self.eof() });
        }
        match c {
            b'/' => {
                let d = self.at(lt + 2);
                if d.is_ascii_alphabetic() {
                    return Some(if self.tag_at(lt + 2) { Token::End } else { self.eof() });
                }
                if d == b'>' {
                    self.pos = lt + 3;
                } else {
                    self.skip_past(lt + 2, b'>');
                }
                None
            }
            b'!' => self.declaration(lt),
            _ => {
                self.skip_past(lt + 1, b'>');
                None
            }
        }
    }

    #[inline(never)]
    fn declaration(&mut self, lt: usize) -> Option<Token> {
        let rest = &self.input[lt + 2..];
        if rest.starts_with(b"--") {
            self.pos = comment_end(self.input, lt + 4);
            return None;
        }
        if self.foreign && rest.starts_with(b"[CDATA[") {
            let from = lt + 9;
            let (end, next) = match memmem::find(&self.input[from..], b"]]>") {
                Some(offset) => (from + offset, from + offset + 3),
                None => (self.input.len(), self.input.len()),
            };
            self.pos = next;
            return Some(Token::RawText((from as u32, end as u32), Raw::Cdata));
        }
        self.skip_past(lt + 2, b'>');
        None
    }

    fn skip_past(&mut self, from: usize, byte: u8) {
        self.pos = match memchr(byte, &self.input[from..]) {
            Some(offset) => from + offset + 1,
            None => self.input.len(),
        };
    }

    fn eof(&mut self) -> Token {
        self.pos = self.input.len();
        Token::Eof
    }

    /// Read the tag whose name starts at `start`; false at the end of input inside it.
    #[inline]
    fn tag_at(&mut self, start: usize) -> bool {
        let input = self.input;
        let (p, low, high) = read_name(input, start);
        self.name = (start as u32, p as u32);
        self.tag = if p - start <= 16 { tags::id_of(low, high, p - start) } else { 0 };
        self.hash = if self.tag == 0 { name_hash(&input[start..p]) } else { 0 };
        self.attrs.clear();
        self.names = 0;
        if input.get(p) == Some(&b'>') {
            self.self_closing = false;
            self.pos = p + 1;
            return true;
        }
        let keep = self.all_attrs || tags::CATS[self.tag as usize] & tags::C_ATTRS != 0;
        self.attributes(p, keep)
    }

    #[inline]
    fn attributes(&mut self, mut p: usize, keep: bool) -> bool {
        let input = self.input;
        let len = input.len();
        self.self_closing = false;
        let root = matches!(self.tag, tags::HTML | tags::BODY);
        let mut count = if root { self.root_attrs } else { 0 };
        loop {
            while p < len && CLASS[input[p] as usize] & SPACE != 0 {
                p += 1;
            }
            if p >= len {
                return false;
            }
            match input[p] {
                b'>' => {
                    self.pos = p + 1;
                    return true;
                }
                b'/' => {
                    p += 1;
                    if p < len && input[p] == b'>' {
                        self.self_closing = true;
                        self.pos = p + 1;
                        return true;
                    }
                    continue;
                }
                _ => {}
            }
            count += 1;
            self.crowded |= count > CROWD;
            if root {
                self.root_attrs = count;
            }
            let name_start = p;
            p = attribute_name_end(input, p + 1);
            let name = (name_start as u32, p as u32);
            while p < len && CLASS[input[p] as usize] & SPACE != 0 {
                p += 1;
            }
            let mut value = (p as u32, p as u32);
            if p < len && input[p] == b'=' {
                p += 1;
                while p < len && CLASS[input[p] as usize] & SPACE != 0 {
                    p += 1;
                }
                if p >= len {
                    return false;
                }
                let quote = input[p];
                if quote == b'"' || quote == b'\'' {
                    let Some(offset) = find_near(&input[p + 1..], quote) else { return false };
                    value = ((p + 1) as u32, (p + 1 + offset) as u32);
                    p += offset + 2;
                } else if quote != b'>' {
                    let value_start = p;
                    while p < len && CLASS[input[p] as usize] & UNQUOTED_END == 0 {
                        p += 1;
                    }
                    value = (value_start as u32, p as u32);
                }
            }
            if keep {
                self.names |= bit_of(input[name_start], name.1 - name.0);
                self.attrs.push(Attr { name, value });
            }
        }
    }

    /// The text of the current raw state up to its end tag; None if that is empty.
    #[inline(never)]
    fn raw_text(&mut self) -> Option<Token> {
        let start = self.pos;
        let kind = self.raw;
        let end = match kind {
            Raw::Plaintext => self.input.len(),
            Raw::Cdata => {
                let found = memmem::find(&self.input[start..], b"]]>").map(|offset| start + offset);
                self.raw = Raw::Data;
                let end = found.unwrap_or(self.input.len());
                self.pos = found.map_or(end, |end| end + 3);
                return (start < end).then_some(Token::RawText((start as u32, end as u32), kind));
            }
            Raw::Script => script_end(self.input, start, self.raw_name),
            _ => raw_end(self.input, start, self.raw_name),
        };
        if kind != Raw::Plaintext || end == self.input.len() {
            self.raw = Raw::Data;
        }
        self.pos = end;
        (start < end).then_some(Token::RawText((start as u32, end as u32), kind))
    }

    /// The raw value of an attribute (first of that name), if there.
    #[inline(always)]
    pub fn attr(&self, name: &[u8]) -> Option<&'a [u8]> {
        if !self.may_have(&[name]) {
            return None;
        }
        self.attrs.iter().find(|a| self.slice(a.name).eq_ignore_ascii_case(name)).map(|a| self.slice(a.value))
    }

    /// False if the tag has none of these attributes. Inlined: the bits of constant names are one constant.
    #[inline(always)]
    pub fn may_have(&self, names: &[&[u8]]) -> bool {
        self.names & names.iter().fold(0, |bits, name| bits | bit_of(name[0], name.len() as u32)) != 0
    }
}

/// The bit of a name by its first letter, small or capital, and its length. The factor parts the names that are asked for
/// from those that pages have most.
#[inline(always)]
fn bit_of(first: u8, size: u32) -> u64 {
    1 << ((u32::from(first & 0x1F) + 9 * size) & 63)
}

/// FNV-1a of the lower-cased name, never 0.
pub fn name_hash(name: &[u8]) -> u32 {
    name.iter().fold(0x811C_9DC5, |hash: u32, b| (hash ^ u32::from(b.to_ascii_lowercase())).wrapping_mul(0x0100_0193))
        | 1
}
