//! A leaf of the trie: up to 64 keys that share a prefix, packed in one block.
//!
//! Layout: count, room, skip and depth in a byte each; `room` tags, the last byte of each key; `room` rests, the bytes
//! skip..15 of each key, last one first. What the path says (the first `skip` bytes) is not stored. Tags are compared
//! eight at a time in a 64-bit word, with no code of any one processor. Keys are in no order; all 64 with one tag cost 64
//! comparisons, and that is the worst an attacker can do to a leaf.

use super::arena::{put, round, u128_at, u32_at, u64_at};

/// A fingerprint as a number, so that the order of numbers is that of the bytes.
pub type Key = u128;

/// Keys in a leaf; one more splits it.
pub const MOST: usize = 64;
/// A leaf grows by this many keys.
const STEP: usize = 8;
const HEAD: usize = 4;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

#[derive(Clone, Copy)]
pub struct Leaf {
    pub count: usize,
    pub room: usize,
    skip: usize,
    /// Leading bits that all keys of the leaf share because of where it hangs.
    pub depth: u32,
}

/// Room for `count` keys.
pub fn room_for(count: usize) -> usize {
    count.next_multiple_of(STEP).clamp(STEP, MOST)
}

/// Bytes of the path that a leaf at `depth` bits leaves out.
fn skip_at(depth: u32) -> usize {
    (depth as usize / 8).min(14)
}

impl Leaf {
    /// An empty leaf.
    pub fn new(count: usize, depth: u32) -> Self {
        Leaf { count: 0, room: room_for(count), skip: skip_at(depth), depth }
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
        round(HEAD + self.room * (16 - self.skip))
    }

    #[inline(always)]
    fn rest_at(&self, index: usize) -> usize {
        HEAD + self.room + index * (15 - self.skip)
    }

    /// Index of the first key at `from` or behind that has the tag of `key`; `count` or more where none has.
    #[inline(always)]
    pub fn alike(&self, block: &[u8], key: Key, from: usize) -> usize {
        let tag = ONES * u64::from(key as u8);
        let (mut start, mut mask) = (from & !7, HIGHS << (8 * (from & 7)));
        while start < self.count {
            let word = u64_at(block, HEAD + start) ^ tag;
            // The high bit of each byte that is zero, and of no other.
            let hits = !((word & !HIGHS) + !HIGHS | word) & mask;
            if hits != 0 {
                return start + (hits.trailing_zeros() / 8) as usize;
            }
            (start, mask) = (start + 8, HIGHS);
        }
        self.count
    }

    /// A byte of the rest at `index`.
    #[inline(always)]
    pub fn touch(&self, block: &[u8], index: usize) -> u8 {
        block[self.rest_at(index)]
    }

    /// Index of the key, if it is here at `from` or behind.
    #[inline(always)]
    pub fn find(&self, block: &[u8], key: Key, from: usize) -> Option<usize> {
        let mut index = self.alike(block, key, from);
        while index < self.count {
            if (u128_at(block, self.rest_at(index)) ^ key >> 8) << (8 * (1 + self.skip)) == 0 {
                return Some(index);
            }
            index = self.alike(block, key, index + 1);
        }
        None
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

    /// The same keys with room for `room` in another block.
    pub fn copy(&self, from: &[u8], room: usize, to: &mut [u8]) -> Self {
        let next = Leaf { room, ..*self };
        next.write_head(to);
        put(to, HEAD, &from[HEAD..HEAD + self.count]);
        let first = self.rest_at(0);
        put(to, next.rest_at(0), &from[first..first + self.count * (15 - self.skip)]);
        next
    }

    /// The same keys with other room: what `size` and `copy` need to know beforehand.
    pub fn with_room(&self, count: usize) -> Self {
        Leaf { room: room_for(count), ..*self }
    }
}
