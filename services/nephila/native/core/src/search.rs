//! Searches of the tokenizer: where a comment, a raw element, a script or an attribute value ends.
//!
//! Each is linear in what it steps over.

use memchr::{memchr, memchr2};
use nephila_wide::Sixteen;

use crate::tokenizer::{ATTR_END, CLASS, NAME_END};

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

#[inline(always)]
fn word_at(input: &[u8], at: usize) -> Option<u64> {
    let bytes = input.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().unwrap()))
}

/// High bits of the bytes that are ASCII letters or digits, in a word already or-ed with 0x20 in each byte.
#[inline(always)]
fn alphanumeric(lower: u64) -> u64 {
    let low = lower & !HIGHS;
    let from = |byte: u8| low + ONES * (0x80 - byte as u64);
    let letters = from(b'a') & !from(b'z' + 1);
    let digits = from(b'0') & !from(b'9' + 1);
    (letters | digits) & !lower & HIGHS
}

/// End of the tag name at `start`, and its first 16 bytes, lower-cased, little-endian, in two words.
#[inline(always)]
pub fn read_name(input: &[u8], start: usize) -> (usize, u64, u64) {
    if let Some(word) = word_at(input, start) {
        let lower = word | (ONES * 0x20);
        // Bytes below 0x20 would pass for others once or-ed: only those that were 0x30 and up before count.
        let others = !(alphanumeric(lower) & ((word & !HIGHS) + ONES * 0x50)) & HIGHS;
        let bits = others.trailing_zeros() & !7;
        if bits < 64 {
            let end = start + (bits / 8) as usize;
            if CLASS[input[end] as usize] & NAME_END != 0 {
                return (end, lower & ((1u64 << bits) - 1), 0);
            }
        }
    }
    read_any_name(input, start)
}

fn read_any_name(input: &[u8], start: usize) -> (usize, u64, u64) {
    let mut words = [0u64; 2];
    let mut p = start;
    while p < input.len() && CLASS[input[p] as usize] & NAME_END == 0 {
        let at = p - start;
        if at < 16 {
            words[at / 8] |= u64::from(input[p].to_ascii_lowercase()) << (8 * (at % 8));
        }
        p += 1;
    }
    (p, words[0], words[1])
}

/// End of the attribute name that goes on at `from`.
#[inline(always)]
pub fn attribute_name_end(input: &[u8], from: usize) -> usize {
    let mut p = from;
    while p < input.len() {
        let bytes = Sixteen::at(input, p);
        // Anything up to a space may be one of the five that end a name.
        let ends = bytes.within(0, b' ') | bytes.is(b'=') | bytes.is(b'>') | bytes.is(b'/');
        if ends == 0 {
            p += 16;
            continue;
        }
        p += ends.trailing_zeros() as usize;
        if p >= input.len() || CLASS[input[p] as usize] & ATTR_END != 0 {
            break;
        }
        p += 1;
    }
    p.min(input.len())
}

/// Short distances first: most attribute values end within 32 bytes, less than a call of memchr costs.
#[inline(always)]
pub fn find_near(hay: &[u8], byte: u8) -> Option<usize> {
    let mut at = 0;
    while at < 48 {
        let Some(chunk) = hay.get(at..).and_then(|rest| rest.first_chunk::<16>()) else { break };
        let hit = Sixteen::of(chunk).is(byte);
        if hit != 0 {
            return Some(at + hit.trailing_zeros() as usize);
        }
        at += 16;
    }
    memchr(byte, &hay[at..]).map(|offset| at + offset)
}

/// The first byte from `at` on that may end a run of words: a control, or a space before a space, a control or the end;
/// the length of the text without one. `high` is not 0 behind it if a byte before that is not ASCII.
#[inline(always)]
pub fn odd_byte(text: &[u8], mut at: usize, high: &mut u32) -> usize {
    while at < text.len() {
        let (bytes, next) = (Sixteen::at(text, at), Sixteen::at(text, at + 1));
        *high |= bytes.high();
        let odd = bytes.within(0, 0x1F) | (bytes.is(b' ') & next.within(0, b' '));
        if odd != 0 {
            // NULs behind the end are controls.
            return (at + odd.trailing_zeros() as usize).min(text.len());
        }
        at += 16;
    }
    text.len()
}

/// False if no word of a class begins with three letters of these sets: most classes are not searched for names. O(bytes).
#[inline(always)]
pub fn may_begin<const A: usize, const B: usize, const C: usize>(
    class: &[u8],
    first: &[u8; A],
    second: &[u8; B],
    third: &[u8; C],
) -> bool {
    let (mut at, mut begins) = (0, 1);
    while at < class.len() {
        let bytes = Sixteen::at(class, at);
        begins |= bytes.within(0, b' ') << 1;
        // What the next sixteen begin with counts as any letter.
        let followed = (any_of(bytes, second) >> 1 | 1 << 15) & (any_of(bytes, third) >> 2 | 3 << 14);
        if begins & any_of(bytes, first) & followed != 0 {
            return true;
        }
        begins >>= 16;
        at += 16;
    }
    false
}

#[inline(always)]
fn any_of<const N: usize>(bytes: Sixteen, letters: &[u8; N]) -> u32 {
    let mut set = 0;
    let mut at = 0;
    while at < N {
        set |= bytes.is(letters[at]);
        at += 1;
    }
    set
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
    while let Some(offset) = memchr(b'-', &input[p..]) {
        p += offset + 1;
        if input.get(p) != Some(&b'-') {
            continue;
        }
        p += 1;
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

#[cfg(test)]
mod tests {
    use super::may_begin;

    #[test]
    fn a_class_with_a_word_of_the_letters_is_never_left_out() {
        let is_found = |class: &str| may_begin(class.as_bytes(), b"kM", b"a", b"t");
        for size in 0..40 {
            for space in [' ', '\n', '\t', '\u{c}', '\r', '\u{1c}'] {
                assert!(is_found(&format!("{}{space}katex", "x".repeat(size))), "{size}");
            }
            assert!(is_found(&format!("MathJax{}", " x".repeat(size))));
            assert!(!is_found(&"x ".repeat(size)) && !is_found(&format!("{}katex", "x-".repeat(size % 8 + 1))));
        }
        assert!(is_found("kat") && !is_found("") && !is_found("k") && !is_found("card tak"));
    }
}
