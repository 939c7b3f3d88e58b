//! The block elements around lines, each with its parent and the meaning of its attributes: the part of the tree that
//! the main-text model uses.
//!
//! Invariant: a parent's number is smaller than its children's; box 0 is the document. At most `MAX_BOXES`; elements
//! beyond that count as part of their parent.

use crate::boilerplate::names_tool;
use crate::tags::*;
use crate::tokenizer::{Span, Tokenizer};
use crate::words;

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
}

impl Boxes {
    pub fn new(wanted: bool) -> Self {
        let mut items = Vec::with_capacity(if wanted { 1024 } else { 1 });
        items.push(Box::default());
        Boxes { items, wanted, count: 1, memo: Memo::new() }
    }

    /// The number of a new box (the parent's if there are too many, or none is wanted) with the attributes of the
    /// current tag, and the flags that these give: comment, tool.
    #[inline]
    pub fn open(&mut self, parent: u32, tag: u8, tok: &Tokenizer<'_>) -> (u32, u16) {
        if self.count >= MAX_BOXES {
            return (parent, 0);
        }
        self.count += 1;
        let (own, name, tool) = if tok.attrs.is_empty() { (0, &[][..], false) } else { self.says(tok) };
        let flags = if own & COMMENT != 0 { F_COMMENT } else { 0 } | if tool { F_TOOL } else { 0 };
        if !self.wanted {
            return (parent, flags);
        }
        let above = self.items[parent as usize];
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
        });
        (self.items.len() as u32 - 1, flags)
    }

    /// Groups of class, id, role and itemprop, `HIDDEN` where it is not shown, and a key of this class.
    fn says<'a>(&mut self, tok: &Tokenizer<'a>) -> (u32, &'a [u8], bool) {
        let (mut own, mut key, mut tool) = (0, &[][..], false);
        for attr in &tok.attrs {
            let name = tok.slice(attr.name);
            // By length first: most attributes are none of these.
            match name.len() {
                5 if name.eq_ignore_ascii_case(b"class") => {
                    let value = tok.slice(attr.value);
                    let (groups, is_tool) = self.memo.groups(attr.value, tok);
                    (own, tool) = (own | groups, is_tool);
                    key = &value[..value.len().min(KEY_BYTES)];
                }
                5 if name.eq_ignore_ascii_case(b"style") && unseen(tok.slice(attr.value)) => own |= HIDDEN,
                2 if name.eq_ignore_ascii_case(b"id") => own |= words::of_attribute(tok.slice(attr.value)),
                4 if name.eq_ignore_ascii_case(b"role") => own |= words::of_attribute(tok.slice(attr.value)),
                8 if name.eq_ignore_ascii_case(b"itemprop") => own |= words::of_attribute(tok.slice(attr.value)),
                6 if name.eq_ignore_ascii_case(b"hidden") => own |= HIDDEN,
                11 if name.eq_ignore_ascii_case(b"aria-hidden") && tok.slice(attr.value) == b"true" => own |= HIDDEN,
                _ => {}
            }
        }
        (own, key, tool)
    }
}

fn unseen(style: &[u8]) -> bool {
    memchr::memmem::find(style, b"display:none").is_some() || memchr::memmem::find(style, b"display: none").is_some()
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

/// The last place, the groups of a class and whether it is a tool's: a page has few different ones, each many times.
struct Memo {
    slots: [(Span, u32, bool); Self::SLOTS],
}

impl Memo {
    const SLOTS: usize = 256;
    const LONGEST: usize = 128;

    fn new() -> Self {
        Memo { slots: [((0, 0), 0, false); Self::SLOTS] }
    }

    #[inline]
    fn groups(&mut self, span: Span, tok: &Tokenizer<'_>) -> (u32, bool) {
        let value = tok.slice(span);
        if value.len() > Self::LONGEST {
            return (words::of_attribute(value), names_tool(value));
        }
        let ends = match (value.first_chunk::<8>(), value.last_chunk::<8>()) {
            (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(23),
            _ => value.iter().fold(0, |word, b| word << 8 | u64::from(*b)),
        };
        let slot = &mut self.slots[((ends ^ value.len() as u64).wrapping_mul(K) >> 56) as usize];
        if tok.slice(slot.0) != value {
            *slot = (span, words::of_attribute(value), names_tool(value));
        }
        (slot.1, slot.2)
    }
}
