//! Words of class, id, role and of short lines as bits of groups; the tables are generated from words.txt.

include!(concat!(env!("OUT_DIR"), "/words.rs"));

/// The longest word of any table.
const MAX_WORD: usize = 16;

/// 1 for a small letter, 2 for a capital.
const LETTER: [u8; 256] = {
    let mut class = [0; 256];
    let mut letter = b'a';
    while letter <= b'z' {
        class[letter as usize] = 1;
        class[letter as usize - 32] = 2;
        letter += 1;
    }
    class
};
const SMALL: u128 = 0x2020_2020_2020_2020_2020_2020_2020_2020;

/// Calls `found` with every word of `text` that could be in a table: in small letters, packed little-endian. O(bytes).
#[inline(always)]
fn each(text: &[u8], mut found: impl FnMut(u128)) {
    let class = |at: usize| text.get(at).map_or(0, |b| LETTER[*b as usize]);
    let mut p = 0;
    while p < text.len() {
        let start = p;
        while class(p) == 2 {
            p += 1;
        }
        while class(p) == 1 {
            p += 1;
        }
        let size = p - start;
        if size == 0 {
            p += 1;
        } else if (2..=MAX_WORD).contains(&size) {
            let mut word = [0u8; MAX_WORD];
            match text.get(start..start + MAX_WORD) {
                Some(whole) => word.copy_from_slice(whole),
                None => word[..size].copy_from_slice(&text[start..p]),
            }
            found((u128::from_le_bytes(word) | SMALL) & (u128::MAX >> (128 - 8 * size)));
        }
    }
}

#[inline(always)]
fn lookup(word: u128) -> u64 {
    let slot = ((word as u64 ^ (word >> 64) as u64).wrapping_mul(WORD_MULTIPLIER) >> WORD_SHIFT) as usize;
    let at = WORD_SLOTS[slot] as usize;
    if WORD_KEYS[at] == word {
        WORD_GROUPS[at]
    } else {
        0
    }
}

/// Groups that a class, id, role or itemprop speaks of. O(bytes).
pub fn of_attribute(value: &[u8]) -> u32 {
    let mut groups = 0;
    each(value, |word| groups |= lookup(word));
    (groups & ((1 << FIRST_TEXT_GROUP) - 1)) as u32
}

/// How many words of each text group stand in `text`. O(bytes).
pub fn of_text(text: &[u8]) -> [u16; TEXT_GROUPS] {
    let mut counts = [0; TEXT_GROUPS];
    each(text, |word| {
        let mut bits = lookup(word) >> FIRST_TEXT_GROUP;
        while bits != 0 {
            counts[bits.trailing_zeros() as usize] += 1;
            bits &= bits - 1;
        }
    });
    counts
}
