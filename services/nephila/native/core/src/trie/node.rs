//! An inner node of the trie: a directory of 2^bits slots over the bits behind its prefix, in one block of an arena.
//!
//! Layout: depth, bits (a byte each, then two of nothing), entries (u32), prefix (16 bytes), 2^bits slots of 4 bytes.
//! A slot is 0 (nothing there), the reference of a leaf, or that of a node with the high bit set. A leaf that is not
//! as deep as the directory is in all slots of its prefix, which are adjacent (extendible hashing, Fagin et al.
//! 1979, on the key itself). A node may be deeper than its slot (the path is compressed): a descent
//! compares its prefix. Invariant: 2^bits <= 8 * entries + 4, so directories are a small part of the whole for any
//! keys.

use super::arena::{put, u128_at, u32_at, Arena};
use super::leaf::Key;

pub const NODE: u32 = 1 << 31;
const HEAD: usize = 24;

#[derive(Clone, Copy)]
pub struct Node {
    pub at: u32,
    pub depth: u32,
    pub bits: u32,
    pub prefix: Key,
}

/// Bytes of a node with 2^bits slots.
pub fn size(bits: u32) -> usize {
    HEAD + (4 << bits)
}

/// May a directory of `entries` leaves and nodes have 2^bits slots?
pub fn dense(bits: u32, entries: u32) -> bool {
    1u64 << bits <= 8 * u64::from(entries) + 4
}

/// The first `depth` bits of a key, the others 0.
#[inline(always)]
pub fn prefix_of(key: Key, depth: u32) -> Key {
    if depth == 0 {
        0
    } else {
        key & (Key::MAX << (128 - depth))
    }
}

/// The last key that begins with the first `depth` bits of `key`.
pub fn last_of(key: Key, depth: u32) -> Key {
    if depth == 128 {
        key
    } else {
        key | Key::MAX >> depth
    }
}

impl Node {
    /// The node that a reference leads to.
    #[inline(always)]
    pub fn at(arena: &Arena, reference: u32) -> Self {
        let at = reference & !NODE;
        let block = arena.block(at);
        Node { at, depth: u32::from(block[0]), bits: u32::from(block[1]), prefix: u128_at(block, 8) }
    }

    /// A new node without entries.
    pub fn new(arena: &mut Arena, depth: u32, bits: u32, prefix: Key) -> Self {
        let at = arena.allocate(size(bits));
        let block = &mut arena.block_mut(at)[..size(bits)];
        block.fill(0);
        put(block, 0, &[depth as u8, bits as u8]);
        put(block, 8, &prefix.to_le_bytes());
        Node { at, depth, bits, prefix }
    }

    /// The value of its parent's slots.
    pub fn reference(&self) -> u32 {
        self.at | NODE
    }

    pub fn size(&self) -> usize {
        size(self.bits)
    }

    /// Depth of a single slot.
    pub fn reach(&self) -> u32 {
        self.depth + self.bits
    }

    /// Does the key begin with the node's prefix?
    #[inline(always)]
    pub fn covers(&self, key: Key) -> bool {
        prefix_of(key ^ self.prefix, self.depth) == 0
    }

    /// The slot for a key that the node covers.
    #[inline(always)]
    pub fn index(&self, key: Key) -> usize {
        slot_index(key, self.depth, self.bits)
    }

    #[inline(always)]
    pub fn slot(&self, arena: &Arena, index: usize) -> u32 {
        u32_at(arena.block(self.at), HEAD + 4 * index)
    }

    pub fn put(&self, arena: &mut Arena, index: usize, reference: u32) {
        put(arena.block_mut(self.at), HEAD + 4 * index, &reference.to_le_bytes());
    }

    /// Put a reference in all slots of the first `depth` bits of `key`.
    pub fn put_all(&self, arena: &mut Arena, key: Key, depth: u32, reference: u32) {
        let width = 1 << (self.reach() - depth);
        let first = self.index(key) & !(width - 1);
        for index in first..first + width {
            self.put(arena, index, reference);
        }
    }

    pub fn entries(&self, arena: &Arena) -> u32 {
        u32_at(arena.block(self.at), 4)
    }

    pub fn add_entries(&self, arena: &mut Arena, more: i32) {
        let entries = self.entries(arena).wrapping_add_signed(more);
        put(arena.block_mut(self.at), 4, &entries.to_le_bytes());
    }

    /// The first key below a slot.
    pub fn path(&self, index: usize) -> Key {
        if self.bits == 0 {
            self.prefix
        } else {
            self.prefix | (index as Key) << (128 - self.reach())
        }
    }

    /// The distinct references of the slots that may hold keys from `first` to `last`, each with the first key below
    /// it.
    pub fn children(self, arena: &Arena, first: Key, last: Key) -> impl Iterator<Item = (u32, Key)> + '_ {
        let (first, last) = (first.max(self.prefix), last.min(last_of(self.prefix, self.depth)));
        let range = if first <= last { self.index(first)..self.index(last) + 1 } else { 0..0 };
        let mut before = 0;
        range.filter_map(move |index| {
            let reference = self.slot(arena, index);
            let fresh = reference != 0 && reference != std::mem::replace(&mut before, reference);
            fresh.then(|| (reference, self.path(index)))
        })
    }
}

/// The `bits` bits of a key behind the first `depth`.
#[inline(always)]
pub fn slot_index(key: Key, depth: u32, bits: u32) -> usize {
    ((((key << depth) >> 64) as u64 >> 1) >> (63 - bits)) as usize
}
