//! Simhash of a text: 64 bits that differ in few places for texts that differ in few words (Charikar 2002).
//!
//! Definition 1, frozen: docs/adr/0089. native/fallback/near_copies.py is the same in Python.

/// Tokens of one shingle.
const SHINGLE: usize = 3;
/// Texts with fewer tokens have no simhash: one changed word moves too many of their bits.
const LEAST_TOKENS: usize = 16;

const K1: u64 = 0x9E37_79B9_7F4A_7C15;
const K2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const K3: u64 = 0x1656_67B1_9E37_79F9;

/// Class of an ASCII byte: its lower-case form, or 0 for a separator.
const fn lower_case() -> [u8; 128] {
    let mut table = [0u8; 128];
    let mut byte = 0;
    while byte < 128 {
        let one = byte as u8;
        table[byte] = match one {
            b'0'..=b'9' | b'a'..=b'z' => one,
            b'A'..=b'Z' => one + 32,
            _ => 0,
        };
        byte += 1;
    }
    table
}
static LOWER: [u8; 128] = lower_case();

#[derive(PartialEq)]
enum Kind {
    Separator,
    Word,
    /// A script without gaps between words: each character is a token.
    Single,
}

fn kind_of(code: u32) -> Kind {
    match code {
        0x80..=0xBF | 0x2000..=0x2BFF | 0x3000..=0x303F | 0xFE00..=0xFE6F | 0xFF00..=0xFF0F | 0xFF1A..=0xFF20 => {
            Kind::Separator
        }
        0xFFF0..=0xFFFF | 0xFEFF | 0xE000..=0xF8FF => Kind::Separator,
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF => Kind::Single,
        0x2E80..=0x2FFF | 0x3040..=0xA4CF | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x1B000..=0x1B2FF => Kind::Single,
        0x20000..=0x3FFFF => Kind::Single,
        _ => Kind::Word,
    }
}

/// The last bits of a hash: each bit of the input moves half of the bits.
fn mixed(mut hash: u64) -> u64 {
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(K1);
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(K2);
    hash ^ (hash >> 32)
}

/// Number of set bits at each of 64 positions, as bit planes. The lowest three planes take eight words at once
/// (carry-save adders): some 5 operations a word.
struct Counts {
    planes: [u64; 32],
    waiting: [u64; 8],
    held: usize,
    total: u64,
}

fn add3(a: u64, b: u64, c: u64) -> (u64, u64) {
    let half = a ^ b;
    (half ^ c, (a & b) | (half & c))
}

impl Counts {
    fn new() -> Counts {
        Counts { planes: [0; 32], waiting: [0; 8], held: 0, total: 0 }
    }

    #[inline]
    fn add(&mut self, word: u64) {
        self.waiting[self.held] = word;
        self.held += 1;
        if self.held == 8 {
            self.fold();
        }
    }

    fn fold(&mut self) {
        let w = self.waiting;
        let (one, twos_a) = add3(self.planes[0], w[0], w[1]);
        let (one, twos_b) = add3(one, w[2], w[3]);
        let (one, twos_c) = add3(one, w[4], w[5]);
        let (one, twos_d) = add3(one, w[6], w[7]);
        let (two, fours_a) = add3(self.planes[1], twos_a, twos_b);
        let (two, fours_b) = add3(two, twos_c, twos_d);
        let (four, mut carry) = add3(self.planes[2], fours_a, fours_b);
        (self.planes[0], self.planes[1], self.planes[2]) = (one, two, four);
        let mut plane = 3;
        while carry != 0 {
            let next = self.planes[plane] & carry;
            self.planes[plane] ^= carry;
            carry = next;
            plane += 1;
        }
        self.total += self.held as u64;
        self.waiting = [0; 8];
        self.held = 0;
    }

    /// The positions whose bit is set in more than half of the words.
    fn majority(mut self) -> u64 {
        self.fold();
        let mut found = 0;
        for bit in 0..64 {
            let count: u64 = (0..32).map(|plane| ((self.planes[plane] >> bit) & 1) << plane).sum();
            found |= u64::from(count * 2 > self.total) << bit;
        }
        found
    }
}

struct Shingles {
    counts: Counts,
    before: [u64; 2],
    tokens: usize,
}

impl Shingles {
    #[inline]
    fn token(&mut self, hash: u64) {
        self.tokens += 1;
        if self.tokens >= SHINGLE {
            let [first, second] = self.before;
            self.counts.add(mixed(first.wrapping_mul(K3) ^ second.rotate_left(23) ^ hash));
        }
        self.before = [self.before[1], hash];
    }
}

/// Up to 8 bytes of a token, the first one highest, appended to its hash.
#[inline]
fn chained(hash: u64, part: u64) -> u64 {
    (hash ^ part).wrapping_mul(K1).rotate_left(31)
}

/// Simhash of UTF-8 text; 0 for a text with fewer than 16 tokens. Invalid bytes separate tokens. O(n).
pub fn simhash(text: &[u8]) -> u64 {
    let mut shingles = Shingles { counts: Counts::new(), before: [0; 2], tokens: 0 };
    let (mut hash, mut part, mut length) = (0u64, 0u64, 0usize);
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        if byte < 0x80 {
            let lower = LOWER[byte as usize];
            at += 1;
            if lower != 0 {
                part = part << 8 | u64::from(lower);
                length += 1;
                if length & 7 == 0 {
                    hash = chained(hash, part);
                    part = 0;
                }
                continue;
            }
        } else {
            let (code, size) = decoded(&text[at..]);
            let character = &text[at..at + size];
            at += size;
            match kind_of(code) {
                Kind::Word => {
                    for &byte in character {
                        part = part << 8 | u64::from(byte);
                        length += 1;
                        if length & 7 == 0 {
                            hash = chained(hash, part);
                            part = 0;
                        }
                    }
                    continue;
                }
                Kind::Single => {
                    if length > 0 {
                        shingles.token(chained(chained(hash, part), length as u64));
                        (hash, part, length) = (0, 0, 0);
                    }
                    shingles.token(chained(0, u64::from(code) << 32));
                    continue;
                }
                Kind::Separator => {}
            }
        }
        if length > 0 {
            shingles.token(chained(chained(hash, part), length as u64));
            (hash, part, length) = (0, 0, 0);
        }
    }
    if length > 0 {
        shingles.token(chained(chained(hash, part), length as u64));
    }
    if shingles.tokens < LEAST_TOKENS {
        return 0;
    }
    shingles.counts.majority()
}

/// The first character and its length; an invalid byte is U+FFFD of length 1.
#[inline]
fn decoded(text: &[u8]) -> (u32, usize) {
    let follow =
        |index: usize| text.get(index).filter(|&&byte| byte & 0xC0 == 0x80).map(|&byte| u32::from(byte & 0x3F));
    let first = u32::from(text[0]);
    let found = match first {
        0xC2..=0xDF => follow(1).map(|a| ((first & 0x1F) << 6 | a, 2)),
        0xE0..=0xEF => follow(1).zip(follow(2)).map(|(a, b)| ((first & 0x0F) << 12 | a << 6 | b, 3)),
        0xF0..=0xF4 => {
            follow(1).zip(follow(2)).zip(follow(3)).map(|((a, b), c)| ((first & 0x07) << 18 | a << 12 | b << 6 | c, 4))
        }
        _ => None,
    };
    found.unwrap_or((0xFFFD, 1))
}
