//! Lines that an article has beside its text and that their words tell: dates, authors and categories, lines to share, to
//! subscribe and to comment, what to read as well, credits of pictures, captions.
//!
//! The model takes many of them, because they stand within the text and are built like it. The words are those of
//! terms.txt, in 24 languages. Only pages of prose are looked at: a catalogue consists of such lines.

use crate::tags::{FIGCAPTION, F_CELL, F_HEADING, F_ITEM, F_PRE, H1};
use crate::text::Line;
use crate::words::{each_term, TERM_T_ALSO, TERM_T_MORE, TERM_T_PHOTO};

use super::Subject;

/// Bytes of a line of prose, and how many percent of the text lines of prose are.
const PROSE: u32 = 80;
const LEAST_PROSE: u64 = 60;
/// Bytes of a line of terms, and of a credit or a line of what to read.
const LONGEST: u32 = 100;
const LONGEST_CREDIT: u32 = 160;
/// Bytes before the colon of a credit or of what to read, and of the name of a source.
const LABEL: usize = 32;
const SOURCE: usize = 60;
/// Words that begin a line of what to read.
const OPENING: usize = 3;

/// Leave such lines out. O(lines + bytes of short lines).
pub fn leave_out(kept: &mut Vec<u32>, text: &[u8], lines: &[Line], subject: Subject) {
    if subject == Subject::Thread || !is_prose(kept, lines) {
        return;
    }
    // The lines before this one are links to what to read.
    let mut to_read = false;
    kept.retain(|at| {
        let line = &lines[*at as usize];
        if line.flags & (F_PRE | F_CELL) != 0 || line.tag as u8 == H1 {
            to_read = false;
            return true;
        }
        let words = &text[line.start as usize..(line.start + line.len) as usize];
        let of = Terms::of(words, line);
        let goes = line.tag as u8 == FIGCAPTION || of.is_credit || of.is_to_read || of.is_furniture(words, line, subject);
        let is_link = 10 * line.link >= 9 * line.len;
        to_read = of.is_to_read || to_read && is_link;
        !(goes || to_read)
    });
}

/// Whether most of the text is lines of prose. O(lines).
pub fn is_prose(kept: &[u32], lines: &[Line]) -> bool {
    let bytes = |least: u32| -> u64 {
        kept.iter().map(|at| lines[*at as usize].len).filter(|size| *size >= least).map(u64::from).sum()
    };
    100 * bytes(PROSE) >= LEAST_PROSE * bytes(0)
}

/// What the words of a short line tell.
#[derive(Default)]
struct Terms {
    words: usize,
    terms: usize,
    is_credit: bool,
    is_to_read: bool,
}

impl Terms {
    fn of(text: &[u8], line: &Line) -> Self {
        let mut terms = Terms::default();
        if line.len > LONGEST_CREDIT {
            return terms;
        }
        let (mut opening, mut photo) = (0, false);
        each_term(text, |groups| {
            photo |= terms.words == 0 && groups & TERM_T_PHOTO != 0;
            opening += usize::from(terms.words < OPENING && groups & (TERM_T_ALSO | TERM_T_MORE) != 0);
            terms.words += 1;
            terms.terms += usize::from(groups != 0);
        });
        let label = &text[..text.len().min(LABEL)];
        let is_label = label.contains(&b':');
        terms.is_credit = text.starts_with("©".as_bytes()) || photo && is_label || is_credited(text);
        terms.is_to_read = opening > 1 && terms.words > 2 && (is_label || 2 * line.link >= line.len);
        terms
    }

    /// Whether half of the words are terms; of a sentence without a link, more than half. Headings and items of other pages
    /// than articles name parts of their subject.
    fn is_furniture(&self, text: &[u8], line: &Line, subject: Subject) -> bool {
        let is_named = line.flags & (F_HEADING | F_ITEM) != 0 && subject != Subject::Article;
        let is_sentence = line.link == 0 && text.last().is_some_and(|last| matches!(last, b'.' | b'!' | b'?'));
        line.len <= LONGEST && self.words > 0 && 2 * self.terms >= self.words + usize::from(is_sentence) && !is_named
    }
}

/// Whether a line ends with the source of a picture: behind a sign of copyright, or in brackets behind a word for it.
fn is_credited(text: &[u8]) -> bool {
    let end = &text[text.len().saturating_sub(SOURCE)..];
    if memchr::memmem::find(end, "©".as_bytes()).is_some() {
        return true;
    }
    let Some(at) = memchr::memrchr(b'(', end).filter(|_| end.ends_with(b")")) else { return false };
    let (mut first, mut photo) = (true, false);
    each_term(&end[at..], |groups| {
        photo |= first && groups & TERM_T_PHOTO != 0;
        first = false;
    });
    photo
}
