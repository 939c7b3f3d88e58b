//! Searches of the tokenizer: where a comment, a raw element, a script or an attribute value ends.
//!
//! Each is linear in what it steps over.

use memchr::{memchr, memchr2, memmem};

use crate::tokenizer::{CLASS, NAME_END};

/// Short distances first: most attribute values end within 16 bytes, less than a call of memchr costs.
#[inline(always)]
pub fn find_near(hay: &[u8], byte: u8) -> Option<usize> {
    let pattern = u64::from(byte) * 0x0101_0101_0101_0101;
    let mut at = 0;
    while at < 16 {
        let Some(chunk) = hay.get(at..at + 8) else { break };
        let word = u64::from_le_bytes(chunk.try_into().unwrap()) ^ pattern;
        let hit = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
        if hit != 0 {
            return Some(at + (hit.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr(byte, &hay[at..]).map(|offset| at + offset)
}

/// Index just past the comment whose text starts at `from` (after `<!--`).
pub fn comment_end(input: &[u8], from: usize) -> usize {
    let rest = &input[from..];
    if rest.starts_with(b">") {
        return from + 1;
    }
    if rest.starts_with(b"->") {
        return from + 2;
    }
    let mut p = from;
    while let Some(offset) = memmem::find(&input[p..], b"--") {
        p += offset + 2;
        while input.get(p) == Some(&b'-') {
            p += 1;
        }
        if input.get(p) == Some(&b'>') {
            return p + 1;
        }
        if input.get(p) == Some(&b'!') && input.get(p + 1) == Some(&b'>') {
            return p + 2;
        }
    }
    input.len()
}

/// Is there `</name` followed by a space, `/` or `>` at `lt`?
fn is_end_tag(input: &[u8], lt: usize, name: &[u8]) -> bool {
    let from = lt + 2;
    !name.is_empty()
        && input.get(lt + 1) == Some(&b'/')
        && input.get(from..from + name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name))
        && input.get(from + name.len()).is_some_and(|b| CLASS[*b as usize] & NAME_END != 0)
}

pub fn raw_end(input: &[u8], start: usize, name: &[u8]) -> usize {
    let mut p = start;
    while let Some(offset) = memchr(b'<', &input[p..]) {
        p += offset;
        if is_end_tag(input, p, name) {
            return p;
        }
        p += 1;
    }
    input.len()
}

/// The end of script data, with its escaped and double escaped states.
pub fn script_end(input: &[u8], start: usize, name: &[u8]) -> usize {
    let mut p = start;
    // 0 = script data, 1 = escaped, 2 = double escaped
    let mut escaped = 0;
    loop {
        let found = if escaped == 0 { memchr(b'<', &input[p..]) } else { memchr2(b'<', b'-', &input[p..]) };
        let Some(offset) = found else { return input.len() };
        p += offset;
        if input[p] == b'-' {
            let dashes = input[p..].iter().take_while(|b| **b == b'-').count();
            p += dashes;
            if dashes >= 2 && input.get(p) == Some(&b'>') {
                escaped = 0;
            }
            continue;
        }
        if escaped == 0 && input[p..].starts_with(b"<!--") {
            escaped = 1;
            // The two dashes may already belong to a closing `-->`.
            p += 2;
            continue;
        }
        if escaped < 2 && is_end_tag(input, p, name) {
            return p;
        }
        if escaped == 1 && is_script_word(input, p + 1) {
            escaped = 2;
        } else if escaped == 2 && input.get(p + 1) == Some(&b'/') && is_script_word(input, p + 2) {
            escaped = 1;
        }
        p += 1;
    }
}

fn is_script_word(input: &[u8], from: usize) -> bool {
    input.get(from..from + 6).is_some_and(|word| word.eq_ignore_ascii_case(b"script"))
        && input.get(from + 6).is_some_and(|b| CLASS[*b as usize] & NAME_END != 0)
}
