//! The stack of open elements: what the standard's tree construction does to it, without a tree.
//!
//! It exists because the tree decides which tags count (template, frameset, select, svg/math), how the text after a tag
//! is read, and the context of a line. Not modelled: clones of formatting elements (they have the same href),
//! foster parenting (moves, does not remove), quirks mode. Elements below `DEPTH` are not pushed. The list of active
//! formatting elements and the length of text nodes are kept only as far as they bound the cost of a tree (`depth`).

use crate::structure::event::Event;
use crate::tags::{self, *};

/// Chrome's and lexbor's limit, too.
pub const DEPTH: usize = 512;
const HARD_DEPTH: usize = 1024;

pub const HTML_NS: u8 = 0;
pub const SVG_NS: u8 = 1;
pub const MATH_NS: u8 = 2;

/// Bits of `Element::point`.
pub const MATH_TEXT: u8 = 1;
pub const HTML_POINT: u8 = 2;

#[derive(Clone, Copy, Debug)]
pub struct Element {
    pub tag: u8,
    pub ns: u8,
    pub point: u8,
    pub hash: u32,
    pub cat: u16,
    /// Context flags, those of the ancestors included.
    pub flags: u16,
    /// The box around it.
    pub place: u32,
    /// Number of the element, rising.
    pub id: u32,
}

/// An entry of the list of active formatting elements.
#[derive(Clone, Copy)]
struct Active {
    /// 0 for a marker.
    tag: u8,
    /// Number of its element, or of the last copy of it.
    id: u32,
    /// Its element is on the stack.
    open: bool,
    /// Number of the event that opened its element; `NO_EVENT` where none did.
    event: u32,
}

const NO_EVENT: u32 = u32::MAX;

/// Active formatting elements since the last marker; real pages have up to five.
const REOPENED: usize = 8;
/// Nested blocks from which on the adoption agency leaves an element in the list: it gives up after eight rounds.
const ROUNDS: u32 = 8;
/// Bytes that a tree builder copies because text is appended to a text node, at 2 GB/s; real pages have under 1 MB.
const PILED: u64 = 64 << 20;

/// The flags of an element where `visibility` plays a part: what it hides may be shown again below, other hidden content
/// may not. `above`: of its parent, `all`: with its own, `own`: by its attributes.
#[cold]
fn unveiled(above: u16, all: u16, own: u16) -> u16 {
    let is_veiled = above & F_VEILED != 0;
    let flags = all & !F_SHOWN;
    match own & (F_HIDDEN | F_VEILED) {
        _ if own & F_SHOWN != 0 => {
            if is_veiled {
                flags & !(F_HIDDEN | F_VEILED)
            } else {
                flags
            }
        }
        // It is hidden for good, or what is around it is.
        F_HIDDEN => flags & !F_VEILED,
        _ if above & F_HIDDEN != 0 && !is_veiled => flags & !F_VEILED,
        _ => flags,
    }
}

/// The open elements, innermost last, with counts by tag so that most questions need no search.
pub struct Stack {
    pub items: Vec<Element>,
    counts: [u16; 256],
    /// Open elements that bound the active formatting elements.
    pub markers: u16,
    /// A block element was popped since this was last cleared.
    pub broke: bool,
    /// Open svg and math elements.
    pub foreign: u16,
    /// Elements that were not pushed because too many were open.
    pub refused: u32,
    /// The most elements that were open at once.
    pub deepest: u32,
    /// The list of active formatting elements, which a tree builder reopens in every block.
    formatting: Vec<Active>,
    /// Its elements without markers: now, at most.
    active: u32,
    active_most: u32,
    /// More than `REOPENED` of them were between two markers: a tree may be many times its tags.
    reopens: bool,
    /// Bytes of text since an element was opened or closed: they may be one text node.
    run: u64,
    /// The same of text that a table moves in front of itself.
    fostered: u64,
    piled: u64,
    /// Elements opened so far.
    opened: u32,
    /// What was done to visible HTML elements, as a tree shows it, where `noting`.
    pub events: Vec<Event>,
    pub noting: bool,
    /// The box around the document.
    pub outer: u32,
}

impl Stack {
    pub fn new() -> Self {
        Stack {
            items: Vec::with_capacity(64),
            counts: [0; 256],
            markers: 0,
            broke: false,
            foreign: 0,
            refused: 0,
            deepest: 0,
            formatting: Vec::new(),
            active: 0,
            active_most: 0,
            reopens: false,
            run: 0,
            fostered: 0,
            piled: 0,
            opened: 0,
            events: Vec::new(),
            noting: false,
            outer: 0,
        }
    }

    #[inline(always)]
    pub fn flags(&self) -> u16 {
        self.items.last().map_or(0, |e| e.flags)
    }

    #[inline(always)]
    pub fn has(&self, tag: u8) -> bool {
        self.counts[tag as usize] > 0
    }

    /// The box around the innermost element.
    #[inline(always)]
    pub fn place(&self) -> u32 {
        self.items.last().map_or(self.outer, |e| e.place)
    }

    /// The innermost block element, 0 outside any; <pre> for a <code> that is a block. O(depth), usually a step or two.
    pub fn block(&self) -> u8 {
        let tag = self.items.iter().rev().find(|e| e.cat & C_BLOCK != 0).map_or(0, |e| e.tag);
        if tag == CODE {
            PRE
        } else {
            tag
        }
    }

    #[inline]
    pub fn push(&mut self, tag: u8, hash: u32, extra: u16) {
        let cat = CATS[tag as usize];
        self.run = 0;
        let refused = self.items.len() >= DEPTH && (self.items.len() >= HARD_DEPTH || tag != TEMPLATE);
        let flags = self.flags() | tags::FLAGS[tag as usize] | extra;
        let flags = if flags & (F_VEILED | F_SHOWN) == 0 { flags } else { unveiled(self.flags(), flags, extra) };
        if cat & C_FORMAT != 0 {
            let event = if self.notes(flags) && !refused { self.events.len() as u32 } else { NO_EVENT };
            self.activate(tag, !refused, event);
        }
        if refused {
            self.refused += 1;
            return;
        }
        self.counts[tag as usize] += 1;
        if cat & C_MARKER != 0 {
            self.markers += 1;
            self.formatting.push(Active { tag: 0, id: 0, open: false, event: NO_EVENT });
        }
        self.put(Element { tag, ns: HTML_NS, point: 0, hash, cat, flags, place: self.place(), id: 0 });
        if self.notes(flags) {
            self.events.push(Event::Open { tag, id: self.opened, attrs: (0, 0) });
        }
    }

    /// Push a <template> whose content is a shadow root: a part of the page as its host is.
    pub fn push_shadow_root(&mut self) {
        let flags = self.flags();
        self.push(TEMPLATE, 0, 0);
        if let Some(top) = self.items.last_mut().filter(|top| top.tag == TEMPLATE && top.id == self.opened) {
            top.flags = flags;
            if self.notes(flags) {
                self.events.push(Event::Open { tag: TEMPLATE, id: self.opened, attrs: (0, 0) });
            }
        }
    }

    /// Push a <code> that is a block of preformatted text: a formatting element to the tree, a <pre> to text and events.
    pub fn push_code_block(&mut self, extra: u16, place: u32) {
        self.push(CODE, 0, extra | F_PRE);
        let opened = self.opened;
        if let Some(top) = self.items.last_mut().filter(|top| top.tag == CODE && top.id == opened) {
            (top.cat, top.place) = (top.cat | C_BLOCK, place);
            if let Some(Event::Open { tag, .. }) = self.events.last_mut().filter(|_| self.noting) {
                *tag = PRE;
            }
        }
    }

    /// Whether a step of an element with these flags is noted.
    #[inline(always)]
    fn notes(&self, flags: u16) -> bool {
        self.noting && flags & F_HIDDEN == 0
    }

    fn put(&mut self, element: Element) {
        self.opened += 1;
        self.items.push(Element { id: self.opened, ..element });
        self.deepest = self.deepest.max(self.items.len() as u32);
    }

    /// Open the formatting elements again that blocks have closed, as a tree does before text; a link has its attributes
    /// again. O(REOPENED).
    pub fn reopen(&mut self) {
        let since = self.formatting.iter().rposition(|one| one.tag == 0 || one.open).map_or(0, |at| at + 1);
        for at in since..self.formatting.len() {
            let Active { tag, event, .. } = self.formatting[at];
            if self.items.len() >= DEPTH {
                return;
            }
            self.run = 0;
            self.counts[tag as usize] += 1;
            let (flags, cat, place) = (self.flags() | tags::FLAGS[tag as usize], CATS[tag as usize], self.place());
            self.put(Element { tag, ns: HTML_NS, point: 0, hash: 0, cat, flags, place, id: 0 });
            let event = if self.notes(flags) { self.open_again(tag, event) } else { NO_EVENT };
            self.formatting[at] = Active { tag, id: self.opened, open: true, event };
        }
    }

    /// Note that the innermost element is opened as a copy of that of an event; the number of the new event.
    fn open_again(&mut self, tag: u8, event: u32) -> u32 {
        let attrs = match self.events.get(event as usize) {
            Some(Event::Open { tag: A, attrs, .. }) if tag == A => *attrs,
            _ => (0, 0),
        };
        self.events.push(Event::Open { tag, id: self.opened, attrs });
        self.events.len() as u32 - 1
    }

    /// How deep a tree of this document is nested at most: elements open at one time, and formatting elements reopened
    /// in them. `u32::MAX` = no bound: then building a tree may take a time that grows with the square of the input.
    pub fn depth(&self) -> u32 {
        if self.refused > 0 || self.reopens || self.piled > PILED {
            return u32::MAX;
        }
        self.deepest.saturating_add(self.active_most)
    }

    /// Put a formatting element on the list. O(REOPENED).
    fn activate(&mut self, tag: u8, open: bool, event: u32) {
        if self.formatting.iter().rev().take(REOPENED).take_while(|one| one.tag != 0).count() >= REOPENED {
            self.reopens = true;
            return;
        }
        self.formatting.push(Active { tag, id: self.opened + 1, open, event });
        self.active += 1;
        self.active_most = self.active_most.max(self.active);
    }

    /// Take the last such element off the list, not beyond a marker.
    fn deactivate(&mut self, tag: u8) {
        for at in (0..self.formatting.len()).rev() {
            let known = self.formatting[at].tag;
            if known == tag {
                self.formatting.remove(at);
                self.active -= 1;
                return;
            }
            if known == 0 {
                return;
            }
        }
    }

    /// An element goes in without being opened: text after it is another node's.
    #[inline(always)]
    pub fn insert(&mut self) {
        self.run = 0;
    }

    /// Text of so many bytes: a tree builder copies it when it is appended to the text before.
    #[inline(always)]
    pub fn text(&mut self, len: usize) {
        self.piled += self.run;
        self.run += len as u64;
    }

    /// The same for text that is not blank and directly inside a table.
    #[inline(always)]
    pub fn foster(&mut self, len: usize) {
        if self.items.last().is_some_and(|e| matches!(e.tag, TABLE | TBODY | THEAD | TFOOT | TR) && e.ns == HTML_NS) {
            self.piled += self.fostered;
            self.fostered += len as u64;
        }
    }

    pub fn push_foreign(&mut self, tag: u8, hash: u32, ns: u8, encoded_html: bool) {
        if self.items.len() >= HARD_DEPTH {
            self.refused += 1;
            return;
        }
        let (mut point, mut cat) = (0, 0);
        match (ns, tag) {
            (MATH_NS, MI | MO | MN | MS | MTEXT) => point = MATH_TEXT,
            (MATH_NS, ANNOTATION_XML) => {
                point = if encoded_html { HTML_POINT } else { 0 };
                cat = C_SPECIAL | C_SCOPE;
            }
            (SVG_NS, FOREIGNOBJECT | DESC | TITLE) => point = HTML_POINT,
            _ => {}
        }
        if point != 0 {
            cat = C_SPECIAL | C_SCOPE;
        }
        self.run = 0;
        let own = if matches!(tag, SVG | ANNOTATION | ANNOTATION_XML) { F_HIDDEN } else { 0 };
        let flags = self.flags() | own;
        self.foreign += 1;
        self.put(Element { tag, ns, point, hash, cat, flags, place: self.place(), id: 0 });
    }

    pub fn pop(&mut self) {
        if let Some(e) = self.items.pop() {
            self.forget(e);
        }
    }

    #[inline(always)]
    fn forget(&mut self, e: Element) {
        self.run = 0;
        if e.ns != HTML_NS {
            self.foreign -= 1;
            return;
        }
        if self.notes(e.flags) {
            self.events.push(Event::Close(e.id));
        }
        self.counts[e.tag as usize] -= 1;
        if e.cat & C_FORMAT != 0 {
            if let Some(one) = self.formatting.iter_mut().rev().take(REOPENED).find(|one| one.id == e.id) {
                one.open = false;
            }
        }
        if e.cat & C_MARKER != 0 {
            self.markers -= 1;
            while self.formatting.pop().is_some_and(|one| one.tag != 0) {
                self.active -= 1;
            }
        }
        self.broke |= e.cat & C_BLOCK != 0 && e.flags & F_HIDDEN == 0;
    }

    /// Pop down to and with index `at`.
    #[inline]
    pub fn pop_to(&mut self, at: usize) {
        while self.items.len() > at {
            self.pop();
        }
    }

    /// Is the element an HTML one of this name?
    #[inline(always)]
    fn is(e: &Element, tag: u8, hash: u32) -> bool {
        e.tag == tag && e.ns == HTML_NS && e.hash == hash
    }

    /// Index of the innermost `tag` in the scope bounded by the categories `bound`. O(depth) at worst.
    pub fn in_scope(&self, tag: u8, bound: u16) -> Option<usize> {
        if !self.has(tag) {
            return None;
        }
        for (at, e) in self.items.iter().enumerate().rev() {
            if Self::is(e, tag, 0) {
                return Some(at);
            }
            if e.cat & bound != 0 {
                return None;
            }
        }
        None
    }

    pub fn close_scoped(&mut self, tag: u8, bound: u16) -> bool {
        let found = self.in_scope(tag, bound);
        if let Some(at) = found {
            self.pop_to(at);
        }
        found.is_some()
    }

    #[inline(always)]
    pub fn close_p(&mut self) {
        if self.has(P) {
            self.close_scoped(P, C_SCOPE | C_BUTTON);
        }
    }

    pub fn implied_end_tags(&mut self, except: u8) {
        while self.items.last().is_some_and(|e| e.ns == HTML_NS && e.cat & C_IMPLIED != 0 && e.tag != except) {
            self.pop();
        }
    }

    /// `<li>`, `<dd>`, `<dt>`: close the open one up to a special element other than address, div and p.
    pub fn close_item(&mut self, tags: &[u8]) {
        if !tags.iter().any(|t| self.has(*t)) {
            return;
        }
        for (at, e) in self.items.iter().enumerate().rev() {
            if e.ns == HTML_NS && tags.contains(&e.tag) {
                return self.pop_to(at);
            }
            if e.cat & C_SPECIAL != 0 && !matches!(e.tag, ADDRESS | DIV | P) {
                return;
            }
        }
    }

    pub fn close_heading(&mut self) {
        if !(H1..=H6).any(|h| self.has(h)) {
            return;
        }
        for (at, e) in self.items.iter().enumerate().rev() {
            if e.ns == HTML_NS && e.cat & C_HEADING != 0 {
                return self.pop_to(at);
            }
            if e.cat & C_SCOPE != 0 {
                return;
            }
        }
    }

    /// `<a>` ends the one before it, wherever that is.
    pub fn close_anchor(&mut self) {
        self.close_formatting(A);
        self.deactivate(A);
    }

    /// What the adoption agency leaves of the stack: the element goes, blocks inside it stay.
    pub fn close_formatting(&mut self, tag: u8) {
        if !self.has(tag) {
            // In quirks mode <table> leaves <p> open: the element may be there, out of scope, and then it stays.
            if self.table_mode().is_none() {
                self.deactivate(tag);
            }
            return;
        }
        let mut furthest = None;
        let mut blocks = 0;
        for (at, e) in self.items.iter().enumerate().rev() {
            if Self::is(e, tag, 0) {
                if blocks < ROUNDS {
                    self.deactivate(tag);
                }
                match furthest {
                    None => self.pop_to(at),
                    Some(block) => self.adopt(at, block),
                }
                return;
            }
            if e.cat & C_SCOPE != 0 {
                return;
            }
            if e.cat & C_SPECIAL != 0 {
                furthest = Some(at);
                blocks += 1;
            }
        }
    }

    /// Remove the formatting element at `at` and the plain ones between it and the block.
    fn adopt(&mut self, at: usize, block: usize) {
        let mut kept = at;
        for from in at..self.items.len() {
            let e = self.items[from];
            if from == at || (from < block && e.cat & C_FORMAT == 0) {
                self.forget(e);
            } else {
                self.items[kept] = e;
                kept += 1;
            }
        }
        self.items.truncate(kept);
    }

    /// "Any other end tag": the innermost such element, unless a special one is above it.
    pub fn close_other(&mut self, tag: u8, hash: u32) {
        if !self.has(tag) {
            return;
        }
        for (at, e) in self.items.iter().enumerate().rev() {
            if Self::is(e, tag, hash) {
                return self.pop_to(at);
            }
            if e.cat & C_SPECIAL != 0 {
                return;
            }
        }
    }

    /// `</form>` takes its element out of the middle.
    pub fn close_form(&mut self) {
        let Some(at) = self.in_scope(FORM, C_SCOPE) else { return };
        if self.has(TEMPLATE) {
            return self.pop_to(at);
        }
        self.implied_end_tags(0);
        let e = self.items.remove(at);
        self.forget(e);
    }

    /// The index of the innermost table, or None outside tables.
    pub fn table(&self) -> Option<usize> {
        self.in_scope(TABLE, C_TABLE)
    }

    /// Is the insertion mode one of a table (not of a cell or caption in it)?
    pub fn table_mode(&self) -> Option<usize> {
        let at = self.table()?;
        let inside = self.items[at..].iter().any(|e| e.ns == HTML_NS && matches!(e.tag, TD | TH | CAPTION));
        (!inside).then_some(at)
    }

    /// Make room for a table part: pop to where it belongs and push what the standard implies. False = ignored tag.
    pub fn open_table_part(&mut self, tag: u8) -> bool {
        let Some(table) = self.table() else {
            // In a template's own table modes everything is excluded anyway: keep the nesting only.
            return self.has(TEMPLATE) && self.flags() & F_TMPL != 0;
        };
        let mut section = None;
        let mut row = None;
        for (at, e) in self.items.iter().enumerate().skip(table + 1) {
            match e.tag {
                _ if e.ns != HTML_NS => {}
                TBODY | THEAD | TFOOT => section = section.or(Some(at)),
                TR => row = row.or(Some(at)),
                _ => {}
            }
        }
        match tag {
            TR => {
                self.pop_to(section.unwrap_or(table) + 1);
                if section.is_none() {
                    self.push(TBODY, 0, 0);
                }
            }
            TD | TH => {
                self.pop_to(row.or(section).unwrap_or(table) + 1);
                if row.is_none() {
                    if section.is_none() {
                        self.push(TBODY, 0, 0);
                    }
                    self.push(TR, 0, 0);
                }
            }
            COL => {
                if self.items.last().is_some_and(|e| e.tag == COLGROUP && e.ns == HTML_NS) {
                    return true;
                }
                self.pop_to(table + 1);
                self.push(COLGROUP, 0, 0);
            }
            _ => self.pop_to(table + 1),
        }
        true
    }
}
