//! The entries of a catalogue: boxes of one template that have a price each. They look like navigation, so their lines
//! become more probable.

use std::collections::HashMap;

use crate::boxes::Box;
use crate::text::Line;

use super::forest::CHANCES;

/// Entries that a catalogue has at least.
const LEAST: u32 = 4;
/// Bytes of the line of a price.
const LONGEST: u32 = 60;
/// Entries of `CHANCES`: 0.5 in log-odds.
const LIFTED: u8 = 5;
const SIGNS: [&str; 5] = ["$", "€", "£", "¥", "₹"];

/// Lift the lines of the template with the most text. O(bytes + lines + boxes).
pub fn lift(found: &mut [u8], text: &[u8], lines: &[Line], boxes: &[Box]) {
    let (mut priced, mut counts) = (vec![false; boxes.len()], HashMap::<u64, u32>::new());
    for line in prices(text, lines) {
        let mut at = line.place as usize;
        // The boxes around one that is noted are noted.
        while at > 0 && !priced[at] {
            priced[at] = true;
            *counts.entry(boxes[at].key).or_default() += 1;
            at = boxes[at].parent as usize;
        }
    }
    if counts.values().all(|count| *count < LEAST) {
        return;
    }
    // The key of the outermost entry around each box; 0 for none.
    let mut entries = vec![0u64; boxes.len()];
    for at in 1..boxes.len() {
        let (key, outer) = (boxes[at].key, entries[boxes[at].parent as usize]);
        entries[at] = if outer == 0 && priced[at] && counts[&key] >= LEAST { key } else { outer };
    }
    let key = |line: &Line| entries[line.place as usize];
    let mut sizes = HashMap::<u64, u64>::new();
    for line in lines.iter().filter(|line| key(line) != 0) {
        *sizes.entry(key(line)).or_default() += u64::from(line.len);
    }
    let Some((_, most)) = sizes.into_iter().map(|(key, size)| (size, key)).max() else { return };
    for (entry, _) in found.iter_mut().zip(lines).filter(|(_, line)| key(line) == most) {
        *entry = (*entry + LIFTED).min(CHANCES.len() as u8 - 1);
    }
}

/// Short lines with a sign of a currency beside a digit, or a space from one.
fn prices<'a>(text: &'a [u8], lines: &'a [Line]) -> impl Iterator<Item = &'a Line> {
    let is_price = |at: &usize| {
        SIGNS.iter().filter(|sign| text[*at..].starts_with(sign.as_bytes())).any(|sign| {
            let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
            let (before, behind) = (&text[..*at], &text[at + sign.len()..]);
            digit(behind.strip_prefix(b" ").unwrap_or(behind).first())
                || digit(before.strip_suffix(b" ").unwrap_or(before).last())
        })
    };
    // The first bytes of the signs.
    memchr::memchr3_iter(b'$', 0xE2, 0xC2, text)
        .filter(is_price)
        .filter_map(|at| lines.get(lines.partition_point(|line| line.start as usize <= at).wrapping_sub(1)))
        .filter(|line| line.len < LONGEST)
}
