//! A leaf of the trie: up to 60 keys that share a prefix, packed in one block.
//!
//! Layout: count, room, skip and depth in a byte each; `room` tags, the last byte of each key; `room` rests, the bytes
//! skip..15 of each key, last one first. The path (the first `skip` bytes) is not stored. Head and tags are the
//! first cache line of the block, whatever the room, and a block is whole lines: a key that is not here costs one line,
//! one that is here two. All tags are compared at once in 64-bit words, with no code of any one processor. Keys are in
//! no order; all 60 with one tag cost 60 comparisons, and that is the worst an attacker can do to a leaf.

use super::arena::{put, u128_at, u32_at, u64_at, LINE};

/// A fingerprint as a number, so that the order of numbers is that of the bytes.
pub type Key = u128;

const HEAD: usize = 4;
/// Keys in a leaf; one more splits it.
pub const MOST: usize = LINE - HEAD;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
/// For each count: the bits of the tags that are in use.
const USED: [u64; MOST + 1] = used();

/// Bit 8 * (place % 8) + place / 8 belongs to the byte at a place of the first line.
const fn bit_of(place: usize) -> u32 {
    (8 * (place % 8) + place / 8) as u32
}

const fn used() -> [u64; MOST + 1] {
    let mut all = [0; MOST + 1];
    let mut count = 0;
    while count < MOST {
        all[count + 1] = all[count] | 1 << bit_of(HEAD + count);
        count += 1;
    }
    all
}

/// Some keys of a leaf, one bit each.
#[derive(Clone, Copy, Default)]
pub struct Marks(u64);

impl Marks {
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Iterator for Marks {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        (bit < 64).then(|| (bit % 8 * 8 + bit / 8).wrapping_sub(HEAD))
    }
}

#[derive(Clone, Copy)]
pub struct Leaf {
    pub count: usize,
    pub room: usize,
    skip: usize,
    /// Leading bits that all keys of the leaf share by its position.
    pub depth: u32,
}

/// Room for `count` keys: what the lines that they need can hold. Some sizes are left out: the leaf is copied less
/// often while it grows, which is most of the cost of adding; to leave out more costs more memory than there is.
fn room_for(count: usize, skip: usize) -> usize {
    let (stride, lines) = (16 - skip, (HEAD + count * (16 - skip)).div_ceil(LINE));
    let lines = lines + usize::from(matches!(lines, 4 | 7 | 13));
    ((LINE * lines - HEAD) / stride).min(MOST)
}

/// Bytes of the path that a leaf at `depth` bits leaves out.
fn skip_at(depth: u32) -> usize {
    (depth as usize / 8).min(14)
}

impl Leaf {
    /// An empty leaf.
    pub fn new(count: usize, depth: u32) -> Self {
        let skip = skip_at(depth);
        Leaf { count: 0, room: room_for(count, skip), skip, depth }
    }

    #[inline(always)]
    pub fn read(block: &[u8]) -> Self {
        let head = u32_at(block, 0);
        let byte = |shift: u32| (head >> shift & 0xFF) as usize;
        Leaf { count: byte(0), room: byte(8), skip: byte(16), depth: head >> 24 }
    }

    pub fn write_head(&self, block: &mut [u8]) {
        put(block, 0, &[self.count as u8, self.room as u8, self.skip as u8, self.depth as u8]);
    }

    /// Bytes of its block.
    pub fn size(&self) -> usize {
        HEAD + self.room * (16 - self.skip)
    }

    #[inline(always)]
    fn rest_at(&self, index: usize) -> usize {
        HEAD + self.room + index * (15 - self.skip)
    }

    /// The keys that have the tag of `key`.
    #[inline(always)]
    pub fn alike(&self, block: &[u8], key: Key) -> Marks {
        let (tag, line) = (ONES * u64::from(key as u8), &block[..LINE]);
        let mut marks = 0;
        for number in 0..8 {
            let word = u64_at(line, 8 * number) ^ tag;
            // The high bit of each byte that is zero, and of no other.
            let hits = !((word & !HIGHS) + !HIGHS | word) & HIGHS;
            marks |= hits >> (7 - number);
        }
        Marks(marks & USED[self.count.min(MOST)])
    }

    /// A byte of the rest at `index`.
    #[inline(always)]
    pub fn touch(&self, block: &[u8], index: usize) -> u8 {
        block[self.rest_at(index)]
    }

    /// Index of the key, if it is here.
    #[inline(always)]
    pub fn find(&self, block: &[u8], key: Key) -> Option<usize> {
        self.find_among(block, key, self.alike(block, key))
    }

    /// Index of the key, if it is one of those marked.
    #[inline(always)]
    pub fn find_among(&self, block: &[u8], key: Key, mut marks: Marks) -> Option<usize> {
        marks.find(|index| (u128_at(block, self.rest_at(*index)) ^ key >> 8) << (8 * (1 + self.skip)) == 0)
    }

    /// The key at `index`; `path` is any key below the leaf's prefix.
    fn key(&self, block: &[u8], index: usize, path: Key) -> Key {
        let kept = Key::MAX >> (8 * self.skip);
        let rest = u128_at(block, self.rest_at(index)) << 8 | Key::from(block[HEAD + index]);
        path & !kept | rest & kept
    }

    /// The keys, in no order, with zeros behind them.
    pub fn keys(&self, block: &[u8], path: Key) -> [Key; MOST] {
        let mut keys = [0; MOST];
        for (index, place) in keys.iter_mut().enumerate().take(self.count) {
            *place = self.key(block, index, path);
        }
        keys
    }

    /// Add a key that is not here; there must be room.
    pub fn push(&mut self, block: &mut [u8], key: Key) {
        block[HEAD + self.count] = key as u8;
        let (at, stride) = (self.rest_at(self.count), 15 - self.skip);
        if stride >= 8 {
            // Two words that overlap: no call for a length that only this leaf knows.
            put(block, at, &((key >> 8) as u64).to_le_bytes());
            put(block, at + stride - 8, &((key >> (8 * (stride - 7))) as u64).to_le_bytes());
        } else {
            put(block, at, &(key >> 8).to_le_bytes()[..stride]);
        }
        self.count += 1;
        block[0] = self.count as u8;
    }

    /// Remove the key at `index`: the last one takes its place.
    pub fn remove(&mut self, block: &mut [u8], index: usize) {
        let (last, stride) = (self.count - 1, 15 - self.skip);
        block[HEAD + index] = block[HEAD + last];
        block.copy_within(self.rest_at(last)..self.rest_at(last) + stride, self.rest_at(index));
        self.count = last;
        block[0] = self.count as u8;
    }

    /// The same keys in another block, the one of a leaf that `with_room` gave.
    pub fn copy(&self, from: &[u8], next: &Leaf, to: &mut [u8]) {
        next.write_head(to);
        put(to, HEAD, &from[HEAD..HEAD + self.count]);
        let first = self.rest_at(0);
        put(to, next.rest_at(0), &from[first..first + self.count * (15 - self.skip)]);
    }

    /// The same keys with room for `count`.
    pub fn with_room(&self, count: usize) -> Self {
        Leaf { room: room_for(count, self.skip), ..*self }
    }
}
