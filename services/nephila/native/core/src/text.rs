//! Visible text as lines: one line per block, whitespace collapsed, with the facts that the main-text model uses.
//!
//! Invariant: the text is its lines joined by "\n"; no line is empty or ends in whitespace. It is spelled as spelling.rs
//! has it.

use std::borrow::Cow;

use nephila_wide::Sixteen;

use crate::search::odd_byte;
use crate::spelling::{may_join, spelled, spelled_letters};
use crate::tokenizer::is_space;

/// Characters before a mark that may be joined with it.
const MAX_JOINED: usize = 16;

/// One line: 16 bytes when packed as `<IIIHH`, without what only the main-text model reads.
#[derive(Clone, Copy, Default, Debug)]
pub struct Line {
    pub start: u32,
    pub len: u32,
    /// Bytes of it inside links.
    pub link: u32,
    pub tag: u16,
    pub flags: u16,
    /// The box around it.
    pub place: u32,
    /// Innermost element where it begins.
    pub inner: u8,
    /// Empty lines of the preformatted text before it, at most 255.
    pub blank: u8,
}

impl Line {
    /// As `<IIIHH`.
    pub fn packed(&self) -> [u8; 16] {
        let words = [self.start, self.len, self.link, u32::from(self.tag) | u32::from(self.flags) << 16];
        words.iter().rev().fold(0, |all: u128, word| all << 32 | u128::from(*word)).to_le_bytes()
    }
}

/// What surrounds the text being added.
#[derive(Clone, Copy)]
pub struct Context {
    /// Innermost block element: the line takes it over when it begins.
    pub tag: u8,
    pub flags: u16,
    pub pre: bool,
    pub in_link: bool,
    pub place: u32,
    pub inner: u8,
}

/// Collects lines up to a number of bytes.
#[derive(Default)]
pub struct TextSink {
    pub text: Vec<u8>,
    pub lines: Vec<Line>,
    open: bool,
    space: bool,
    /// Whitespace of a preformatted line not yet known to be followed by anything.
    pending: Vec<u8>,
    /// Empty lines of preformatted text since the last line.
    blank: u8,
    full: bool,
    /// The last run was inside a link.
    linked: bool,
    /// Where the current token begins: a mark joins no letter of another element.
    token: usize,
    limit: usize,
}

impl TextSink {
    pub fn new(limit: usize, expected: usize) -> Self {
        let text = Vec::with_capacity(expected.min(limit));
        TextSink { text, lines: Vec::with_capacity(256), limit, ..Default::default() }
    }

    pub fn clear(&mut self) {
        *self = TextSink::new(self.limit, 0);
    }

    /// End the current line; nothing happens between lines.
    #[inline(always)]
    pub fn break_line(&mut self) {
        if self.open {
            self.close();
        }
        self.space = false;
        self.blank = 0;
        self.pending.clear();
    }

    /// Take back what was added to the open line since the text had `start` bytes. O(bytes taken back).
    pub fn take_back(&mut self, start: usize) {
        let Some(line) = self.lines.last_mut().filter(|_| self.open) else { return };
        if start > line.start as usize {
            line.link = line.link.saturating_sub((self.text.len() - start) as u32);
            self.text.truncate(start);
            self.space = true;
        } else {
            // The line began in it.
            let end = (line.start as usize).saturating_sub(1);
            self.lines.pop();
            self.text.truncate(end);
            self.open = false;
        }
        self.linked = false;
    }

    /// A token of text begins.
    #[inline(always)]
    pub fn begin_token(&mut self) {
        self.token = self.text.len();
    }

    /// Whether white space parts what comes next from the text of the open line.
    pub fn is_parted(&self) -> bool {
        self.open && self.space
    }

    /// Whitespace outside preformatted text.
    #[inline(always)]
    pub fn add_space(&mut self) {
        self.space = self.open;
    }

    fn close(&mut self) {
        if let Some(line) = self.lines.last_mut() {
            line.len = self.text.len() as u32 - line.start;
        }
        self.open = false;
    }

    /// Add text whose references are decoded already. O(n).
    #[inline]
    pub fn add(&mut self, part: &[u8], context: Context) {
        if self.full {
            return;
        }
        if context.pre {
            return self.add_preformatted(&spelled(part), &context);
        }
        self.add_runs::<false>(part, &context);
    }

    /// As `add`, of text in the one form.
    fn add_spelled(&mut self, part: &[u8], context: &Context) {
        self.add_runs::<true>(part, context);
    }

    #[inline(always)]
    fn add_runs<const SPELLED: bool>(&mut self, part: &[u8], context: &Context) {
        let mut is_spelled = SPELLED;
        let len = part.len();
        let mut p = 0;
        loop {
            let from = p;
            while p < len && is_space(part[p]) {
                p += 1;
            }
            if p > from && self.open {
                self.space = true;
            }
            if p >= len {
                return;
            }
            let (end, is_ascii) = run_end(part, p);
            if !is_ascii && !is_spelled {
                is_spelled = true;
                // Nothing behind white space joins with what is before it.
                if let Cow::Owned(form) = spelled_letters(&part[p..]) {
                    return self.add_spelled(&form, context);
                }
            }
            self.put(&part[p..end], context);
            p = end;
        }
    }

    fn add_preformatted(&mut self, part: &[u8], context: &Context) {
        let mut p = 0;
        while p < part.len() {
            let b = part[p];
            if b == b'\n' || b == b'\r' {
                let blank = if self.open { 0 } else { self.blank.saturating_add(1) };
                self.break_line();
                self.blank = blank;
                p += if part[p..].starts_with(b"\r\n") { 2 } else { 1 };
            } else if is_space(b) {
                self.pending.push(b);
                p += 1;
            } else {
                let run = part[p..].iter().position(|b| is_space(*b)).unwrap_or(part.len() - p);
                self.put(&part[p..p + run], context);
                p += run;
            }
        }
    }

    /// Append a run that neither starts nor ends with whitespace, after what separates it from the text before.
    fn put(&mut self, run: &[u8], context: &Context) {
        if self.full {
            return;
        }
        let joined;
        let mut run = run;
        if may_join(run) {
            joined = self.joined(run);
            run = &joined;
        }
        let gap: &[u8] = if !self.pending.is_empty() {
            &self.pending
        } else if self.space {
            b" "
        } else {
            b""
        };
        let gap_len = gap.len();
        let newline = usize::from(!self.open && !self.text.is_empty());
        let used = self.text.len() + newline + gap.len();
        if used + run.len() > self.limit {
            self.full = true;
            let mut room = self.limit.saturating_sub(used);
            while room > 0 && run[room] & 0xC0 == 0x80 {
                room -= 1;
            }
            while room > 0 && is_space(run[room - 1]) {
                room -= 1;
            }
            if room == 0 {
                return;
            }
            run = &run[..room];
        }
        if !self.open {
            if newline == 1 {
                self.text.push(b'\n');
            }
            let start = self.text.len() as u32;
            let flags = context.flags & 0xFF;
            let (place, inner, blank) = (context.place, context.inner, self.blank);
            self.lines.push(Line { start, len: 0, link: 0, tag: u16::from(context.tag), flags, place, inner, blank });
            self.open = true;
            self.linked = false;
        }
        self.text.extend_from_slice(gap);
        self.text.extend_from_slice(run);
        if context.in_link {
            // The gap belongs to the link if there is link on both sides of it.
            let inside = if self.linked { gap_len } else { 0 };
            if let Some(line) = self.lines.last_mut() {
                line.link += (run.len() + inside) as u32;
            }
        }
        self.linked = context.in_link;
        self.space = false;
        self.pending.clear();
    }
}

impl TextSink {
    /// A run that begins with a mark: with the letter before it where both are of one token and nothing parts them.
    fn joined(&mut self, run: &[u8]) -> Vec<u8> {
        if !self.open || self.space || !self.pending.is_empty() || self.token >= self.text.len() {
            return run.to_vec();
        }
        let mut at = self.text.len();
        for _ in 0..MAX_JOINED {
            at -= 1;
            while self.text[at] & 0xC0 == 0x80 {
                at -= 1;
            }
            if at <= self.token || !may_join(&self.text[at..]) {
                break;
            }
        }
        let mut both = self.text.split_off(at);
        if self.linked {
            if let Some(line) = self.lines.last_mut() {
                line.link -= both.len() as u32;
            }
        }
        both.extend_from_slice(run);
        spelled(&both).into_owned()
    }
}

/// Nothing but whitespace? Between two tags there is mostly a line end and an indentation.
#[inline]
pub fn is_blank(part: &[u8]) -> bool {
    (0..part.len()).step_by(16).all(|at| {
        let bytes = Sixteen::at(part, at);
        let blank = bytes.is(b' ') | (bytes.within(b'\t', b'\r') & !bytes.is(0x0B));
        let size = (part.len() - at).min(16);
        (!blank).trailing_zeros() as usize >= size
    })
}

/// The end of the longest run from `p` whose whitespace is single spaces between words, and whether it is ASCII.
#[inline(always)]
fn run_end(part: &[u8], p: usize) -> (usize, bool) {
    let (mut end, mut high) = (p, 0);
    loop {
        let ends = |at: usize| {
            let b = part[at];
            is_space(b) && !(b == b' ' && part.get(at + 1).is_some_and(|next| !is_space(*next)))
        };
        end = odd_byte(part, end, &mut high);
        if end == part.len() || ends(end) {
            return (end, high == 0);
        }
        // A control that is no white space, or a space before one.
        end += 1;
    }
}

/// Whitespace collapsed and trimmed, cut to `limit` bytes at a character, appended to `out`. O(n).
pub fn collapse_into(text: &[u8], limit: usize, out: &mut Vec<u8>) {
    let from = out.len();
    // Text of lines is collapsed already unless it has line ends or comes from preformatted text.
    if text.len() <= limit && text.first() != Some(&b' ') && odd_byte(text, 0, &mut 0) == text.len() {
        out.extend_from_slice(text);
        return;
    }
    for word in text.split(|b| is_space(*b)).filter(|word| !word.is_empty()) {
        if out.len() > from {
            out.push(b' ');
        }
        out.extend_from_slice(word);
        if out.len() - from > limit {
            break;
        }
    }
    if out.len() - from > limit {
        let mut end = from + limit;
        while end > from && out[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        while end > from && is_space(out[end - 1]) {
            end -= 1;
        }
        out.truncate(end);
    }
}
