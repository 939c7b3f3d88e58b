//! What stands below the last sentence of a text: headings of parts that are left out, links to read on, questions to
//! the reader, labels.
//!
//! The model takes them because the text above them is near. Only declared articles of prose are looked at, from their
//! end: a manual ends with such lines.

use crate::tags::{F_CELL, F_HEADING, F_ITEM, F_PRE, H1};
use crate::text::Line;

use super::furniture::is_prose;

/// Bytes of a line without the end of a sentence, and of a link.
const LONGEST: u32 = 80;
const LONGEST_LINK: u32 = 160;
/// Lines that stay.
const LEAST_STAYS: usize = 2;
const STOPS: [&str; 10] = [".", "!", "\"", ")", "”", "»", "…", "。", "！", "।"];

/// Leave such lines out of an article. O(lines).
pub fn leave_out(kept: &mut Vec<u32>, text: &[u8], lines: &[Line]) {
    if !is_prose(kept, lines) {
        return;
    }
    while kept.len() > LEAST_STAYS {
        let Some(line) = kept.last().map(|at| &lines[*at as usize]) else { return };
        let words = &text[line.start as usize..(line.start + line.len) as usize];
        if line.flags & (F_PRE | F_CELL) != 0 || line.tag as u8 == H1 || !goes(line, words) {
            return;
        }
        kept.pop();
    }
}

fn goes(line: &Line, words: &[u8]) -> bool {
    let is_link = 10 * line.link >= 9 * line.len && line.len < LONGEST_LINK;
    let is_sentence = STOPS.iter().any(|stop| words.ends_with(stop.as_bytes()));
    line.flags & F_HEADING != 0 || is_link || line.len < LONGEST && line.flags & F_ITEM == 0 && !is_sentence
}
