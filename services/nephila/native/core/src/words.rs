//! Words of class, id and role as bits of groups (words.txt), words of lines in 24 languages (terms.txt), and class words
//! with learnt scores (class_words.txt); the tables are generated.

use nephila_wide::{sixteen, Sixteen};

include!(concat!(env!("OUT_DIR"), "/words.rs"));

/// The longest word of any table.
const MAX_WORD: usize = 16;

const SMALL: u128 = 0x2020_2020_2020_2020_2020_2020_2020_2020;

/// For each size the bits of a word of so many bytes.
static MASKS: [u128; MAX_WORD + 1] = {
    let mut masks = [0; MAX_WORD + 1];
    let mut size = 1;
    while size <= MAX_WORD {
        masks[size] = u128::MAX >> (128 - 8 * size);
        size += 1;
    }
    masks
};

/// Calls `found` with every word of `text` that could be in a table: in small letters, packed little-endian. `wanted`
/// is asked first, by the first two letters of the word and its size. With `WIDE` bytes that are not ASCII are letters,
/// and a longer word counts as its first `MAX_WORD` bytes; without, it is in no table. O(bytes).
///
/// Sixty-four bytes at a time: where words begin and end is arithmetic on sets of bits, without a branch per byte.
#[inline(always)]
fn each<const WIDE: bool>(text: &[u8], wanted: impl Fn(u16, usize) -> bool, mut found: impl FnMut(u128)) {
    // The word that goes on from the block before; whether its last letter is small.
    let (mut open, mut small_before) = (None, 0);
    // Behind the end are NULs, which end the last word.
    for at in (0..=text.len()).step_by(64) {
        let (mut small, mut capital, mut other) = (0, 0, 0);
        for part in (0..text.len().min(at + 64) - at).step_by(16) {
            let bytes = Sixteen::at(text, at + part);
            small |= u64::from(bytes.within(b'a', b'z')) << part;
            capital |= u64::from(bytes.within(b'A', b'Z')) << part;
            if WIDE {
                other |= u64::from(bytes.high()) << part;
            }
        }
        let letter = small | capital | other;
        let before = letter << 1 | u64::from(open.is_some());
        let cut = capital & (small << 1 | small_before);
        let mut begins = letter & (!before | cut);
        let mut ends = before & (!letter | cut);
        small_before = small >> 63;
        while ends != 0 {
            let start = open.take().unwrap_or_else(|| {
                let first = at + begins.trailing_zeros() as usize;
                begins &= begins - 1;
                first
            });
            let whole = at + ends.trailing_zeros() as usize - start;
            let size = if WIDE { whole.min(MAX_WORD) } else { whole };
            ends &= ends - 1;
            let Some(head) = text.get(start..).and_then(|rest| rest.first_chunk::<2>()) else { continue };
            if size > 1 && size <= MAX_WORD && wanted(u16::from_le_bytes(*head) | SMALL as u16, size) {
                found((sixteen(text, start) | SMALL) & MASKS[size]);
            }
        }
        if begins != 0 {
            open = Some(at + begins.trailing_zeros() as usize);
        }
    }
}

#[inline(always)]
fn lookup(word: u128) -> u32 {
    let slot = ((word as u64 ^ (word >> 64) as u64).wrapping_mul(WORD_MULTIPLIER) >> WORD_SHIFT) as usize;
    if WORD_TAKEN[slot / 64] >> (slot % 64) & 1 == 0 {
        return 0;
    }
    let at = WORD_SLOTS[slot] as usize;
    if WORD_KEYS[at] == word {
        WORD_GROUPS[at]
    } else {
        0
    }
}

/// What the words of attributes tell of a box: their groups, and the least and the greatest of their scores (0 without
/// words that have one).
#[derive(Clone, Copy, Default)]
pub struct Said {
    pub groups: u32,
    pub least: i16,
    pub most: i16,
    /// A word has a score.
    scored: bool,
}

impl Said {
    /// Add what another attribute of the box tells.
    pub fn add(&mut self, other: Said) {
        self.groups |= other.groups;
        if other.scored {
            self.add_score(other.least);
            self.add_score(other.most);
        }
    }

    #[inline]
    fn add_score(&mut self, score: i16) {
        (self.least, self.most) =
            if self.scored { (self.least.min(score), self.most.max(score)) } else { (score, score) };
        self.scored = true;
    }
}

/// The learnt score of a class word (class_words.txt): positive where its boxes hold more main text than their pages.
#[inline(always)]
fn score(word: u128) -> Option<i16> {
    let mut slot = ((word as u64 ^ (word >> 64) as u64).wrapping_mul(PROBE_MULTIPLIER) >> SCORE_SHIFT) as usize;
    loop {
        match SCORE_SLOTS[slot] as usize {
            0 => return None,
            at if SCORE_KEYS[at] == word => return Some(SCORES[at]),
            _ => slot = (slot + 1) % SCORE_SLOTS.len(),
        }
    }
}

/// What a class, id, role or itemprop tells. O(bytes).
pub fn of_attribute(value: &[u8]) -> Said {
    let (mut groups, mut said) = (0, Said::default());
    let any = |_, _| true;
    each::<false>(value, any, |word| {
        groups |= lookup(word);
        if let Some(score) = score(word) {
            said.add_score(score);
        }
    });
    said.groups = groups;
    said
}

/// The groups of each word of `text`, 0 for one that is no term. O(bytes).
pub fn each_term(text: &[u8], mut found: impl FnMut(u16)) {
    each::<true>(text, |_, _| true, |word| found(term(word)));
}

/// The groups of a word of a line (terms.txt), as bits.
#[inline(always)]
fn term(word: u128) -> u16 {
    let mut slot = ((word as u64 ^ (word >> 64) as u64).wrapping_mul(PROBE_MULTIPLIER) >> TERM_SHIFT) as usize;
    loop {
        match TERM_SLOTS[slot] as usize {
            0 => return 0,
            at if TERM_KEYS[at] == word => return TERM_GROUPS[at],
            _ => slot = (slot + 1) % TERM_SLOTS.len(),
        }
    }
}

/// Whether a word with this head and size may have a text group: few words of a text have, and most of the others are
/// told by a kilobyte.
#[inline(always)]
fn may_be_of_text(head: u16, size: usize) -> bool {
    let slot = (u32::from(head) | (size as u32) << 16).wrapping_mul(HEAD_MULTIPLIER) >> HEAD_SHIFT;
    TEXT_HEADS[slot as usize / 64] >> (slot % 64) & 1 != 0
}

/// How many words of each group of terms `text` has, and how many that are of any. O(bytes).
pub fn of_text(text: &[u8]) -> ([u16; TEXT_GROUPS], u16) {
    let (mut counts, mut terms) = ([0; TEXT_GROUPS], 0);
    each::<true>(text, may_be_of_text, |word| {
        let mut bits = term(word);
        terms += u16::from(bits != 0);
        while bits != 0 {
            counts[bits.trailing_zeros() as usize] += 1;
            bits &= bits - 1;
        }
    });
    (counts, terms)
}
