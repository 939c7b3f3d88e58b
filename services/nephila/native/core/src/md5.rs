//! MD5 of many short messages at once: eight lanes side by side, which the compiler turns into vector code.
//!
//! One MD5 is a chain of 64 dependent steps, so a single message leaves most of the core idle; a page's hundred URLs do
//! not depend on each other. Plain Rust, no intrinsics: the same code is SSE2, AVX2 or NEON.

use nephila_wide::Work;

const LANES: usize = 8;

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

type Lanes<const N: usize> = [u32; N];

#[inline(always)]
fn step<const N: usize, const I: usize>(state: &mut [Lanes<N>; 4], block: &[Lanes<N>; 16]) {
    let (a, b, c, d) = ((64 - I) % 4, (65 - I) % 4, (66 - I) % 4, (67 - I) % 4);
    let word = match I / 16 {
        0 => I,
        1 => (5 * I + 1) % 16,
        2 => (3 * I + 5) % 16,
        _ => (7 * I) % 16,
    };
    for lane in 0..N {
        let (x, y, z) = (state[b][lane], state[c][lane], state[d][lane]);
        let mixed = match I / 16 {
            0 => z ^ (x & (y ^ z)),
            1 => y ^ (z & (x ^ y)),
            2 => x ^ y ^ z,
            _ => y ^ (x | !z),
        };
        let sum = state[a][lane].wrapping_add(mixed).wrapping_add(block[word][lane]).wrapping_add(K[I]);
        state[a][lane] = x.wrapping_add(sum.rotate_left(SHIFTS[I / 16][I % 4]));
    }
}

macro_rules! steps {
    ($n:ident, $state:ident, $block:ident: $($i:literal)*) => { $(step::<$n, $i>($state, $block);)* };
}

#[inline(always)]
fn compress<const N: usize>(state: &mut [Lanes<N>; 4], block: &[Lanes<N>; 16]) {
    steps!(N, state, block: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63);
}

/// Block `index` of the padded message, or None behind its end.
#[inline]
fn load(message: &[u8], index: usize, blocks: usize) -> Option<[u8; 64]> {
    if index >= blocks {
        return None;
    }
    let mut block = [0u8; 64];
    let from = index * 64;
    let part = &message[from.min(message.len())..(from + 64).min(message.len())];
    block[..part.len()].copy_from_slice(part);
    if (from..from + 64).contains(&message.len()) {
        block[message.len() - from] = 0x80;
    }
    if index + 1 == blocks {
        block[56..].copy_from_slice(&(message.len() as u64 * 8).to_le_bytes());
    }
    Some(block)
}

struct Group<'m, const N: usize>([&'m [u8]; N]);

impl<const N: usize> Work for Group<'_, N> {
    type Found = [[u8; 16]; N];

    #[inline(always)]
    fn run(self) -> Self::Found {
        group(self.0)
    }
}

#[inline(always)]
fn group<const N: usize>(messages: [&[u8]; N]) -> [[u8; 16]; N] {
    let mut state = [[0u32; N]; 4];
    for (word, start) in state.iter_mut().zip(START) {
        *word = [start; N];
    }
    let mut counts = [0usize; N];
    let mut most = 0;
    for lane in 0..N {
        counts[lane] = (messages[lane].len() + 9).div_ceil(64);
        most = most.max(counts[lane]);
    }
    for index in 0..most {
        let before = state;
        let mut block = [[0u32; N]; 16];
        let mut live = [false; N];
        for lane in 0..N {
            if let Some(bytes) = load(messages[lane], index, counts[lane]) {
                live[lane] = true;
                for (word, four) in bytes.chunks_exact(4).enumerate() {
                    block[word][lane] = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
                }
            }
        }
        compress(&mut state, &block);
        for word in 0..4 {
            for lane in 0..N {
                // A lane whose message has ended keeps what it had.
                state[word][lane] =
                    if live[lane] { state[word][lane].wrapping_add(before[word][lane]) } else { before[word][lane] };
            }
        }
    }
    let mut out = [[0u8; 16]; N];
    for lane in 0..N {
        for word in 0..4 {
            out[lane][word * 4..word * 4 + 4].copy_from_slice(&state[word][lane].to_le_bytes());
        }
    }
    out
}

/// MD5 of one message. O(n).
pub fn digest(message: &[u8]) -> [u8; 16] {
    group::<1>([message])[0]
}

/// MD5 of each of `count` messages, handed to `put` in order. O(total bytes), a message longer than its neighbours
/// making its group of eight as slow as itself.
pub fn digest_all<'m>(count: usize, message: impl Fn(usize) -> &'m [u8], mut put: impl FnMut(usize, [u8; 16])) {
    let mut first = 0;
    while first < count {
        let size = LANES.min(count - first);
        if size == 1 {
            put(first, digest(message(first)));
        } else {
            let mut messages: [&[u8]; LANES] = [b""; LANES];
            for (lane, slot) in messages.iter_mut().enumerate().take(size) {
                *slot = message(first + lane);
            }
            for (lane, found) in nephila_wide::widest(Group(messages)).into_iter().enumerate().take(size) {
                put(first + lane, found);
            }
        }
        first += size;
    }
}
