//! Words of class, id, role and of short lines as bits of groups; the tables are generated from words.txt.

include!(concat!(env!("OUT_DIR"), "/words.rs"));

/// The longest word of any table.
const MAX_WORD: usize = 16;

/// Calls `found` with every word of `text`: letters in small, packed little-endian, and their number. O(bytes).
#[inline(always)]
fn each(text: &[u8], mut found: impl FnMut(u64, u64, usize)) {
    let mut p = 0;
    while p < text.len() {
        if !text[p].is_ascii_alphabetic() {
            p += 1;
            continue;
        }
        let start = p;
        let (mut low, mut high, mut small) = (0u64, 0u64, false);
        while p < text.len() && text[p].is_ascii_alphabetic() && !(small && text[p].is_ascii_uppercase()) {
            small = text[p].is_ascii_lowercase();
            let (letter, at) = (u64::from(text[p] | 0x20), p - start);
            match at {
                0..=7 => low |= letter << (8 * at),
                8..=15 => high |= letter << (8 * (at - 8)),
                _ => {}
            }
            p += 1;
        }
        if (2..=MAX_WORD).contains(&(p - start)) {
            found(low, high, p - start);
        }
    }
}

#[inline(always)]
fn lookup(low: u64, high: u64) -> u64 {
    let slot = ((low ^ high).wrapping_mul(WORD_MULTIPLIER) >> WORD_SHIFT) as usize;
    let at = WORD_SLOTS[slot] as usize;
    if WORD_KEYS[at] == (u128::from(high) << 64 | u128::from(low)) {
        WORD_GROUPS[at]
    } else {
        0
    }
}

/// Groups that a class, id, role or itemprop speaks of. O(bytes).
pub fn of_attribute(value: &[u8]) -> u32 {
    let mut groups = 0;
    each(value, |low, high, _| groups |= lookup(low, high));
    (groups & ((1 << FIRST_TEXT_GROUP) - 1)) as u32
}

/// How many words of each text group stand in `text`. O(bytes).
pub fn of_text(text: &[u8]) -> [u16; TEXT_GROUPS] {
    let mut counts = [0; TEXT_GROUPS];
    each(text, |low, high, _| {
        let mut bits = lookup(low, high) >> FIRST_TEXT_GROUP;
        while bits != 0 {
            counts[bits.trailing_zeros() as usize] += 1;
            bits &= bits - 1;
        }
    });
    counts
}
