//! MD5 of one message, and of many short messages at once.
//!
//! One MD5 is a chain of 64 dependent steps, so a single message leaves most of the core idle; a page's hundred URLs do
//! not depend on each other. With AVX2 eight messages go side by side, a message to each lane; elsewhere one goes after
//! the other. The lanes are written by hand: rustc 1.95 made 512 scalar rotations of loops over arrays of eight.

#[cfg(target_arch = "x86_64")]
const LANES: usize = 8;
const BLOCK: usize = 64;

const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// floor(2^32 * |sin(i + 1)|), from RFC 1321.
const K: [u32; 64] = [
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501, 0x698098d8,
    0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340,
    0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87,
    0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c,
    0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039,
    0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92,
    0xffeff47d, 0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
    0xeb86d391,
];

const START: [u32; 4] = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];

/// A word of the state: of one message, or of `LANES` side by side.
trait Word: Copy {
    fn of(value: u32) -> Self;
    fn add(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn rotated(self, left: u32) -> Self;
}

impl Word for u32 {
    #[inline(always)]
    fn of(value: u32) -> Self {
        value
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self | other
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }
    #[inline(always)]
    fn rotated(self, left: u32) -> Self {
        self.rotate_left(left)
    }
}

#[inline(always)]
fn step<W: Word, const I: usize>(state: &mut [W; 4], block: &[W; 16]) {
    let (a, b, c, d) = ((64 - I) % 4, (65 - I) % 4, (66 - I) % 4, (67 - I) % 4);
    let word = match I / 16 {
        0 => I,
        1 => (5 * I + 1) % 16,
        2 => (3 * I + 5) % 16,
        _ => (7 * I) % 16,
    };
    let (x, y, z) = (state[b], state[c], state[d]);
    let mixed = match I / 16 {
        0 => z.xor(x.and(y.xor(z))),
        1 => y.xor(z.and(x.xor(y))),
        2 => x.xor(y).xor(z),
        _ => y.xor(x.or(z.xor(W::of(u32::MAX)))),
    };
    let sum = state[a].add(block[word]).add(W::of(K[I])).add(mixed);
    state[a] = x.add(sum.rotated(SHIFTS[I / 16][I % 4]));
}

macro_rules! steps {
    ($word:ident, $state:ident, $block:ident: $($i:literal)*) => { $(step::<$word, $i>($state, $block);)* };
}

/// Add a block to a state.
#[inline(always)]
fn compress<W: Word>(state: &mut [W; 4], block: &[W; 16]) {
    let before = *state;
    steps!(W, state, block: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63);
    for (word, before) in state.iter_mut().zip(before) {
        *word = word.add(before);
    }
}

/// Blocks of the padded message.
#[inline]
fn blocks(message: &[u8]) -> usize {
    (message.len() + 9).div_ceil(BLOCK)
}

/// Block `index` of the padded message, one of its `blocks`.
#[inline]
fn load(message: &[u8], index: usize) -> [u8; BLOCK] {
    let mut block = [0u8; BLOCK];
    let from = index * BLOCK;
    let part = &message[from.min(message.len())..(from + BLOCK).min(message.len())];
    block[..part.len()].copy_from_slice(part);
    if (from..from + BLOCK).contains(&message.len()) {
        block[message.len() - from] = 0x80;
    }
    if index + 1 == blocks(message) {
        block[56..].copy_from_slice(&(message.len() as u64 * 8).to_le_bytes());
    }
    block
}

#[inline(always)]
fn word_of(block: &[u8; BLOCK], word: usize) -> u32 {
    let at = 4 * word;
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

#[inline]
fn bytes_of(state: [u32; 4]) -> [u8; 16] {
    let mut out = [0u8; 16];
    for (place, word) in out.chunks_exact_mut(4).zip(state) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    out
}

/// MD5 of one message. O(n).
pub fn digest(message: &[u8]) -> [u8; 16] {
    let mut state = START;
    for index in 0..blocks(message) {
        let block = load(message, index);
        compress(&mut state, &std::array::from_fn(|word| word_of(&block, word)));
    }
    bytes_of(state)
}

/// MD5 of each of `count` messages, handed to `put` in order. O(total bytes), a message longer than its neighbours
/// making its group of eight as slow as itself.
pub fn digest_all<'m>(count: usize, message: impl Fn(usize) -> &'m [u8], mut put: impl FnMut(usize, [u8; 16])) {
    #[cfg(target_arch = "x86_64")]
    if crate::has_avx2() {
        for first in (0..count).step_by(LANES) {
            let size = LANES.min(count - first);
            if size == 1 {
                put(first, digest(message(first)));
                continue;
            }
            let mut messages: [&[u8]; LANES] = [b""; LANES];
            for (lane, slot) in messages.iter_mut().enumerate().take(size) {
                *slot = message(first + lane);
            }
            // SAFETY: the processor has the instructions.
            let found = unsafe { x86::digest_group(messages) };
            found.into_iter().enumerate().take(size).for_each(|(lane, found)| put(first + lane, found));
        }
        return;
    }
    (0..count).for_each(|at| put(at, digest(message(at))));
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{blocks, bytes_of, compress, load, word_of, Word, BLOCK, LANES, START};

    /// Made and used by code for AVX2 alone.
    #[derive(Clone, Copy)]
    struct Eight(__m256i);

    // SAFETY of all: only `digest_group` uses it, which runs where the processor has AVX2.
    impl Word for Eight {
        #[inline(always)]
        fn of(value: u32) -> Self {
            Eight(unsafe { _mm256_set1_epi32(value as i32) })
        }
        #[inline(always)]
        fn add(self, other: Self) -> Self {
            Eight(unsafe { _mm256_add_epi32(self.0, other.0) })
        }
        #[inline(always)]
        fn and(self, other: Self) -> Self {
            Eight(unsafe { _mm256_and_si256(self.0, other.0) })
        }
        #[inline(always)]
        fn or(self, other: Self) -> Self {
            Eight(unsafe { _mm256_or_si256(self.0, other.0) })
        }
        #[inline(always)]
        fn xor(self, other: Self) -> Self {
            Eight(unsafe { _mm256_xor_si256(self.0, other.0) })
        }
        #[inline(always)]
        fn rotated(self, left: u32) -> Self {
            // The counts are constants once this is inlined.
            unsafe {
                let up = _mm256_sll_epi32(self.0, _mm_cvtsi32_si128(left as i32));
                let down = _mm256_srl_epi32(self.0, _mm_cvtsi32_si128(32 - left as i32));
                Eight(_mm256_or_si256(up, down))
            }
        }
    }

    impl Eight {
        #[inline(always)]
        fn lanes(values: [u32; LANES]) -> Self {
            // SAFETY: 32 bytes.
            Eight(unsafe { _mm256_loadu_si256(values.as_ptr().cast()) })
        }

        #[inline(always)]
        fn values(self) -> [u32; LANES] {
            let mut values = [0; LANES];
            // SAFETY: 32 bytes.
            unsafe { _mm256_storeu_si256(values.as_mut_ptr().cast(), self.0) };
            values
        }
    }

    #[target_feature(enable = "avx2")]
    pub unsafe fn digest_group(messages: [&[u8]; LANES]) -> [[u8; 16]; LANES] {
        let counts = messages.map(blocks);
        let mut state = START.map(Eight::of);
        let mut found = [[0u8; 16]; LANES];
        let mut bytes = [[0u8; BLOCK]; LANES];
        for index in 0..counts.into_iter().max().unwrap_or(0) {
            for lane in 0..LANES {
                // A message that has ended is done with: whatever its lane computes then is not read.
                if index < counts[lane] {
                    bytes[lane] = load(messages[lane], index);
                }
            }
            let block =
                std::array::from_fn(|word| Eight::lanes(std::array::from_fn(|lane| word_of(&bytes[lane], word))));
            compress(&mut state, &block);
            if counts.contains(&(index + 1)) {
                let words = state.map(Eight::values);
                for lane in (0..LANES).filter(|lane| counts[*lane] == index + 1) {
                    found[lane] = bytes_of(words.map(|word| word[lane]));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{digest, digest_all};

    fn hex(sum: [u8; 16]) -> String {
        sum.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn sums_of_rfc_1321() {
        assert_eq!(hex(digest(b"")), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex(digest(b"message digest")), "f96b697d7cb7938d525a2f31aaf161d0");
        let long = b"12345678901234567890123456789012345678901234567890123456789012345678901234567890";
        assert_eq!(hex(digest(long)), "57edf4a22be3c955ac49da2e2107b67a");
    }

    #[test]
    fn many_messages_have_the_sums_of_each() {
        let text: Vec<u8> = (0..=255).collect();
        // All lengths around the ends of blocks, neighbours of very different length, all sizes of the last group.
        for count in 0..40 {
            let message = |at: usize| &text[..(at * 61 + count) % 200];
            let mut seen = 0;
            digest_all(count, message, |at, sum| {
                assert_eq!(sum, digest(message(at)));
                assert_eq!(at, seen);
                seen += 1;
            });
            assert_eq!(seen, count);
        }
    }
}
