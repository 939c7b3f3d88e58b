//! The block elements around lines, each with its parent and the meaning of its attributes: the part of the tree that
//! the main-text model uses.
//!
//! Invariant: a parent's number is smaller than its children's; box 0 is the document. At most `MAX_BOXES`; elements
//! beyond that count as part of their parent.

use std::cell::Cell;

use crate::boilerplate::names_tool;
use crate::tags::*;
use crate::tokenizer::Tokenizer;
use crate::words::{self, Said};

pub const MAX_BOXES: usize = 1 << 17;
/// So many bytes of a class identify a template.
const KEY_BYTES: usize = 24;
pub const HIDDEN: u32 = 1 << words::GROUP_HIDDEN;
pub const COMMENT: u32 = 1 << words::GROUP_COMMENT;
const K: u64 = 0x9E37_79B9_7F4A_7C15;

/// Bits of `Box::context`, in the order of the features.
pub const CONTEXTS: [u8; 15] =
    [NAV, HEADER, FOOTER, ASIDE, FORM, ARTICLE, MAIN, TABLE, UL, FIGURE, BLOCKQUOTE, NOSCRIPT, DIALOG, DETAILS, BODY];
/// The body of an article is hardly ever called anything but article-body, entry-content, post-text or articleBody.
const ENTRY: u32 = 1 << words::GROUP_ARTICLE | 1 << words::GROUP_POST;
const CONTENT: u32 = 1 << words::GROUP_CONTENT;
pub const IN_BODY: u16 = 1 << 14;

const CONTEXT_OF: [u16; COUNT] = {
    let mut bits = [0; COUNT];
    let mut at = 0;
    while at < CONTEXTS.len() {
        bits[CONTEXTS[at] as usize] = 1 << at;
        at += 1;
    }
    bits[BODY as usize] = 0;
    let list = bits[UL as usize];
    bits[OL as usize] = list;
    bits[DL as usize] = list;
    bits[MENU as usize] = list;
    bits[DIR as usize] = list;
    bits
};

/// One block element; `every` and `context` include those of its ancestors, `one` and `two` are the groups of the two
/// boxes above that say something.
#[derive(Clone, Copy, Default)]
pub struct Box {
    pub parent: u32,
    pub tag: u8,
    pub context: u16,
    pub depth: u16,
    pub own: u32,
    pub one: u32,
    pub two: u32,
    pub every: u32,
    pub key: u64,
    /// Scores of its class words: the least and the greatest.
    pub own_scores: [i16; 2],
    /// The least and the greatest with those of its ancestors, and the sum of both over all of them.
    pub path_scores: [i16; 3],
}

impl Box {
    #[inline]
    pub fn near(&self) -> u32 {
        self.own | self.one | self.two
    }
}

/// Grows by one with every block element, where boxes are asked for.
pub struct Boxes {
    pub items: Vec<Box>,
    wanted: bool,
    /// Opened so far, noted or not.
    count: usize,
    memo: Memo,
    /// The attributes with class words of every box, where the model is trained.
    pub noted: Option<Vec<Vec<u8>>>,
}

impl Boxes {
    pub fn new(wanted: bool) -> Self {
        let mut items = Vec::with_capacity(if wanted { 1024 } else { 1 });
        items.push(Box::default());
        Boxes { items, wanted, count: 1, memo: Memo::take(), noted: None }
    }

    /// The number of a new box (the parent's if there are too many, or none is wanted) with the attributes of the
    /// current tag, and the flags that these give: comment, tool.
    #[inline]
    pub fn open(&mut self, parent: u32, tag: u8, tok: &Tokenizer<'_>) -> (u32, u16) {
        if self.count >= MAX_BOXES {
            return (parent, 0);
        }
        self.count += 1;
        let (said, name, tool) = if tok.attrs.is_empty() { Default::default() } else { self.says(tok) };
        let own = said.groups;
        let flags = if own & COMMENT != 0 { F_COMMENT } else { 0 } | if tool { F_TOOL } else { 0 };
        if !self.wanted {
            return (parent, flags);
        }
        if let Some(noted) = &mut self.noted {
            noted.push(class_words(tok));
        }
        let above = self.items[parent as usize];
        let [least, most, sum] = above.path_scores;
        let (one, two) = if above.own != 0 { (above.own, above.one) } else { (above.one, above.two) };
        self.items.push(Box {
            parent,
            tag,
            context: above.context
                | CONTEXT_OF[tag as usize]
                | if own & ENTRY != 0 && own & CONTENT != 0 { IN_BODY } else { 0 },
            depth: above.depth.saturating_add(1),
            own,
            one,
            two,
            every: above.every | own,
            key: mix(above.key, tag, name),
            own_scores: [said.least, said.most],
            path_scores: [
                least.min(said.least),
                most.max(said.most),
                sum.saturating_add(said.least).saturating_add(said.most),
            ],
        });
        (self.items.len() as u32 - 1, flags)
    }

    /// Groups of class, id, role and itemprop, `HIDDEN` where it is not shown, and a key of this class.
    fn says<'a>(&mut self, tok: &Tokenizer<'a>) -> (Said, &'a [u8], bool) {
        let (mut own, mut key, mut tool) = (Said::default(), &[][..], false);
        for attr in &tok.attrs {
            let name = tok.slice(attr.name);
            // By length first: most attributes are none of these.
            match name.len() {
                5 if name.eq_ignore_ascii_case(b"class") => {
                    let value = tok.slice(attr.value);
                    let (said, is_tool) = self.memo.said(value);
                    own.add(said);
                    tool = is_tool;
                    key = &value[..value.len().min(KEY_BYTES)];
                }
                5 if name.eq_ignore_ascii_case(b"style") && unseen(tok.slice(attr.value)) => own.groups |= HIDDEN,
                2 if name.eq_ignore_ascii_case(b"id") => own.add(words::of_attribute(tok.slice(attr.value))),
                4 if name.eq_ignore_ascii_case(b"role") => own.add(self.memo.said(tok.slice(attr.value)).0),
                8 if name.eq_ignore_ascii_case(b"itemprop") => own.add(self.memo.said(tok.slice(attr.value)).0),
                6 if name.eq_ignore_ascii_case(b"hidden") => own.groups |= HIDDEN,
                11 if name.eq_ignore_ascii_case(b"aria-hidden") && tok.slice(attr.value) == b"true" => {
                    own.groups |= HIDDEN
                }
                _ => {}
            }
        }
        (own, key, tool)
    }
}

/// The attributes whose words have groups and scores, a space apart.
fn class_words(tok: &Tokenizer<'_>) -> Vec<u8> {
    let names: [&[u8]; 4] = [b"class", b"id", b"role", b"itemprop"];
    let read = tok.attrs.iter().filter(|attr| names.iter().any(|name| tok.slice(attr.name).eq_ignore_ascii_case(name)));
    read.map(|attr| tok.slice(attr.value)).collect::<Vec<_>>().join(&b' ')
}

fn unseen(style: &[u8]) -> bool {
    memchr::memchr_iter(b':', style).any(|at| {
        let value = &style[at + 1..];
        style[..at].ends_with(b"display") && value.strip_prefix(b" ").unwrap_or(value).starts_with(b"none")
    })
}

/// Equal for boxes of one template: the same tags and classes from the root on.
#[inline]
fn mix(above: u64, tag: u8, name: &[u8]) -> u64 {
    let mut value = (above ^ u64::from(tag)).wrapping_mul(K);
    for part in name.chunks(8) {
        let mut word = [0u8; 8];
        word[..part.len()].copy_from_slice(part);
        value = (value.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(K);
    }
    value
}

/// A class, what its words tell, and whether it is a tool's.
#[derive(Clone, Default)]
struct Known {
    class: Vec<u8>,
    said: Said,
    tool: bool,
}

/// Classes that were read: a page has few different ones, each many times, and the next page of its site has the same.
#[derive(Default)]
struct Memo {
    slots: Vec<Known>,
}

thread_local! {
    static MEMO: Cell<Memo> = Cell::default();
}

impl Memo {
    const SLOTS: usize = 512;
    const LONGEST: usize = 256;

    /// That of this thread; a new one while another page holds it.
    fn take() -> Self {
        let mut memo = MEMO.take();
        memo.slots.resize_with(Self::SLOTS, Known::default);
        memo
    }

    #[inline]
    fn said(&mut self, class: &[u8]) -> (Said, bool) {
        if class.len() > Self::LONGEST {
            return (words::of_attribute(class), names_tool(class));
        }
        let ends = match (class.first_chunk::<8>(), class.last_chunk::<8>()) {
            (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(23),
            _ => class.iter().fold(0, |word, b| word << 8 | u64::from(*b)),
        };
        let slot = (ends ^ class.len() as u64).wrapping_mul(K) >> (64 - Self::SLOTS.ilog2());
        let known = &mut self.slots[slot as usize];
        if known.class != class {
            (known.said, known.tool) = (words::of_attribute(class), names_tool(class));
            known.class.clear();
            known.class.extend_from_slice(class);
        }
        (known.said, known.tool)
    }
}

impl Drop for Boxes {
    fn drop(&mut self) {
        MEMO.set(std::mem::take(&mut self.memo));
    }
}
