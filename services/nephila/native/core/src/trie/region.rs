//! A region: the keys below one prefix of at most 16 bits, with an arena of their own.
//!
//! It is the unit of copying, of eviction, of hand-over and of dropping. Invariant: its root is a node at the region's
//! depth; all blocks that live are reached from it once; leaves hold 1 to 60 keys. Depth is bounded by the bits of a
//! key, memory by the directories' density and by leaves that appear one at a time, for any keys.

use super::arena::Arena;
use super::filter::Filter;
use super::leaf::{self, Key, Leaf, Marks};
use super::node::{self, Node, NODE};

/// A new leaf takes at most this many empty slots.
const WIDEST: usize = 64;
/// Bits that a directory may lack: beyond them the path is compressed.
const NEAR: u32 = 6;

pub struct Region {
    pub arena: Arena,
    root: u32,
    pub depth: u32,
    bits: u32,
    pub prefix: Key,
    pub count: usize,
    /// Keys removed since the last copy or build.
    removed: usize,
    /// When it was last asked, in batches; only counted where memory is bounded.
    pub heat: u64,
    /// What of it is on disk.
    pub cold: Option<Box<Cold>>,
}

/// The part of a region that is on disk.
pub struct Cold {
    pub filter: Filter,
    /// Keys that are on disk and not in memory.
    pub count: usize,
    /// Keys that were looked up in files since the region is on disk.
    pub reads: usize,
}

impl Region {
    pub fn new(depth: u32, prefix: Key) -> Self {
        let mut arena = Arena::default();
        let root = Node::new(&mut arena, depth, 0, prefix);
        Region { root: root.at, arena, depth, bits: 0, prefix, count: 0, removed: 0, heat: 0, cold: None }
    }

    pub fn root(&self) -> Node {
        Node { at: self.root, depth: self.depth, bits: self.bits, prefix: self.prefix }
    }

    /// Keys in memory and on disk.
    pub fn len(&self) -> usize {
        self.count + self.cold.as_ref().map_or(0, |cold| cold.count)
    }

    /// Forget the keys in memory.
    pub fn clear(&mut self) {
        let empty = Region::new(self.depth, self.prefix);
        (self.arena, self.root, self.bits, self.count, self.removed) = (empty.arena, empty.root, 0, 0, 0);
    }

    /// Hang another tree of the same keys here.
    pub fn plant(&mut self, arena: Arena, root: Node) {
        (self.arena, self.root, self.bits, self.removed) = (arena, root.at, root.bits, 0);
    }

    /// First step down: the reference that the root holds for a key of this region.
    #[inline(always)]
    pub fn enter(&self, key: Key) -> u32 {
        self.root().slot(&self.arena, node::slot_index(key, self.depth, self.bits))
    }

    /// One step down from a node; 0 where the key cannot be.
    #[inline(always)]
    pub fn descend(&self, reference: u32, key: Key) -> u32 {
        let node = Node::at(&self.arena, reference);
        if node.covers(key) {
            node.slot(&self.arena, node.index(key))
        } else {
            0
        }
    }

    /// Prefetch the block of a reference.
    #[inline(always)]
    pub fn touch(&self, reference: u32) -> u8 {
        self.arena.block(reference & !NODE)[0]
    }

    /// The keys of a leaf that have the tag of `key`, and a byte of the first one's rest, as a prefetch.
    #[inline(always)]
    pub fn sight(&self, reference: u32, key: Key) -> (Marks, u8) {
        let block = self.arena.block(reference);
        let leaf = Leaf::read(block);
        let marks = leaf.alike(block, key);
        (marks, marks.clone().next().map_or(0, |index| leaf.touch(block, index)))
    }

    /// Is the key one of those marked in the leaf that `reference` leads to?
    #[inline(always)]
    pub fn is_among(&self, reference: u32, key: Key, marks: Marks) -> bool {
        let block = self.arena.block(reference);
        Leaf::read(block).find_among(block, key, marks).is_some()
    }

    pub fn contains(&self, key: Key) -> bool {
        let mut reference = self.enter(key);
        while reference & NODE != 0 {
            reference = self.descend(reference, key);
        }
        let block = self.arena.block(reference);
        reference != 0 && Leaf::read(block).find(block, key).is_some()
    }

    /// Add a key to its leaf, if there is room; was it new? O(1).
    #[inline(always)]
    pub fn push(&mut self, reference: u32, key: Key) -> Option<bool> {
        let block = self.arena.block_mut(reference);
        let mut leaf = Leaf::read(block);
        if leaf.find(block, key).is_some() {
            return Some(false);
        }
        if leaf.count == leaf.room {
            return None;
        }
        leaf.push(block, key);
        self.count += 1;
        Some(true)
    }

    /// Add a key of this region; was it new? O(1) on average.
    pub fn insert(&mut self, key: Key) -> bool {
        let mut parent = self.root();
        loop {
            let reference = parent.slot(&self.arena, parent.index(key));
            if reference == 0 {
                self.hang_leaf(parent, key);
                break;
            }
            if reference & NODE != 0 {
                let child = Node::at(&self.arena, reference);
                parent = if child.covers(key) { child } else { self.fork(parent, child, key) };
                continue;
            }
            let block = self.arena.block_mut(reference);
            let mut leaf = Leaf::read(block);
            if leaf.find(block, key).is_some() {
                return false;
            }
            if leaf.count < leaf.room {
                leaf.push(block, key);
                break;
            }
            if leaf.room < leaf::MOST {
                self.grow(parent, reference, key);
                break;
            }
            parent = self.split(parent, reference, key);
        }
        self.count += 1;
        true
    }

    /// A leaf with one key where there was nothing, over the empty slots around it.
    fn hang_leaf(&mut self, parent: Node, key: Key) {
        let (mut depth, mut width) = (parent.reach(), 1);
        while depth > parent.depth && width < WIDEST {
            let first = parent.index(key) & !(2 * width - 1);
            if (first..first + 2 * width).any(|index| parent.slot(&self.arena, index) != 0) {
                break;
            }
            (depth, width) = (depth - 1, 2 * width);
        }
        let at = add_leaf(&mut self.arena, depth, &[key]);
        parent.put_all(&mut self.arena, key, depth, at);
        parent.add_entries(&mut self.arena, 1);
    }

    /// Move a full leaf to a larger block and add a key to it.
    fn grow(&mut self, parent: Node, old: u32, key: Key) {
        let leaf = Leaf::read(self.arena.block(old));
        let mut next = leaf.with_room(leaf.count + 1);
        let at = self.arena.allocate(next.size());
        let (held, block) = self.arena.pair(old, at);
        leaf.copy(held, &next, block);
        next.push(block, key);
        self.arena.release(old, leaf.size());
        parent.put_all(&mut self.arena, key, leaf.depth, at);
    }

    /// Make a full leaf two, or give it a directory of its own; returns the node to go on from.
    fn split(&mut self, parent: Node, old: u32, key: Key) -> Node {
        let block = self.arena.block(old);
        let leaf = Leaf::read(block);
        let keys = leaf.keys(block, node::prefix_of(key, leaf.depth));
        let common = keys.iter().fold(0, |bits, other| bits | other ^ keys[0]).leading_zeros();
        if common < parent.reach() {
            parent.put_all(&mut self.arena, key, leaf.depth, 0);
            self.halve(parent, &keys, common);
            parent.add_entries(&mut self.arena, -1);
            self.arena.release(old, leaf.size());
            return parent;
        }
        if common < parent.reach() + NEAR && node::dense(parent.bits + 1, parent.entries(&self.arena)) {
            return self.double(parent);
        }
        let child = Node::new(&mut self.arena, common, 1, node::prefix_of(keys[0], common));
        self.halve(child, &keys, common);
        parent.put_all(&mut self.arena, key, leaf.depth, child.reference());
        self.arena.release(old, leaf.size());
        parent
    }

    /// Hang two leaves below `parent` with keys that first differ at bit `common`.
    fn halve(&mut self, parent: Node, keys: &[Key], common: u32) {
        let bit = 1 << (127 - common);
        let mut sorted = [0; leaf::MOST];
        let (mut low, mut high) = (0, keys.len());
        for key in keys {
            let place = if key & bit == 0 { &mut low } else { &mut high };
            *place -= usize::from(key & bit != 0);
            sorted[*place] = *key;
            *place += usize::from(key & bit == 0);
        }
        for half in [&sorted[..low], &sorted[low..keys.len()]] {
            let at = add_leaf(&mut self.arena, common + 1, half);
            parent.put_all(&mut self.arena, half[0], common + 1, at);
        }
        parent.add_entries(&mut self.arena, 2);
    }

    /// A directory with one more bit in place of `old`.
    fn double(&mut self, old: Node) -> Node {
        let next = Node::new(&mut self.arena, old.depth, old.bits + 1, old.prefix);
        for index in 0..1 << old.bits {
            let reference = old.slot(&self.arena, index);
            next.put(&mut self.arena, 2 * index, reference);
            next.put(&mut self.arena, 2 * index + 1, reference);
        }
        let entries = old.entries(&self.arena) as i32;
        next.add_entries(&mut self.arena, entries);
        self.replace_node(old, next);
        self.arena.release(old.at, old.size());
        next
    }

    /// Replace the references to the node `old` by `next`.
    fn replace_node(&mut self, old: Node, next: Node) {
        if self.root == old.at {
            (self.root, self.bits) = (next.at, next.bits);
            return;
        }
        let mut parent = self.root();
        loop {
            let reference = parent.slot(&self.arena, parent.index(old.prefix));
            if reference == old.reference() {
                return self.refer(parent, old, next.reference());
            }
            parent = Node::at(&self.arena, reference);
        }
    }

    /// A key that does not belong to `child` came to its slot: leave the child only the slots it needs, or put a node
    /// between the two. Returns the node to go on from.
    fn fork(&mut self, parent: Node, child: Node, key: Key) -> Node {
        let common = (key ^ child.prefix).leading_zeros();
        if common < parent.reach() {
            self.refer(parent, child, 0);
            parent.put_all(&mut self.arena, child.prefix, common + 1, child.reference());
            return parent;
        }
        let between = Node::new(&mut self.arena, common, 1, node::prefix_of(key, common));
        between.put_all(&mut self.arena, child.prefix, common + 1, child.reference());
        between.add_entries(&mut self.arena, 1);
        self.refer(parent, child, between.reference());
        between
    }

    /// Set the slots of `parent` that lead to `child` to `after`: they are adjacent.
    fn refer(&mut self, parent: Node, child: Node, after: u32) {
        let (middle, before) = (parent.index(child.prefix), child.reference());
        let leads = |index: &usize| parent.slot(&self.arena, *index) == before;
        let first = (0..middle).rev().take_while(leads).last().unwrap_or(middle);
        let last = (middle..1 << parent.bits).take_while(leads).last().unwrap_or(middle);
        for index in first..=last {
            parent.put(&mut self.arena, index, after);
        }
    }

    /// Remove a key of this region; was it there? O(1) on average.
    pub fn remove(&mut self, key: Key) -> bool {
        let mut parent = self.root();
        let mut reference = self.enter(key);
        while reference & NODE != 0 {
            parent = Node::at(&self.arena, reference);
            reference = self.descend(reference, key);
        }
        if reference == 0 {
            return false;
        }
        let block = self.arena.block_mut(reference);
        let mut leaf = Leaf::read(block);
        let Some(index) = leaf.find(block, key) else { return false };
        leaf.remove(block, index);
        if leaf.count == 0 {
            parent.put_all(&mut self.arena, key, leaf.depth, 0);
            parent.add_entries(&mut self.arena, -1);
            self.arena.release(reference, leaf.size());
        }
        self.count -= 1;
        self.removed += 1;
        true
    }

    /// Copy or rebuild where there are too many holes or hollow leaves; did it? O(1) unless it does; amortised
    /// O(1).
    pub fn tidy(&mut self) -> bool {
        let (hollow, wasteful) = (self.removed > self.count + leaf::MOST, self.arena.wasteful());
        if hollow {
            self.rebuild();
        } else if wasteful {
            self.compact();
        }
        hollow || wasteful
    }

    pub fn nbytes(&self) -> usize {
        let cold = self.cold.as_ref().map_or(0, |cold| cold.filter.nbytes() + 16);
        self.arena.nbytes() + cold + std::mem::size_of::<Self>()
    }
}

/// A new leaf with these keys.
pub fn add_leaf(arena: &mut Arena, depth: u32, keys: &[Key]) -> u32 {
    let mut leaf = Leaf::new(keys.len(), depth);
    let at = arena.allocate(leaf.size());
    let block = arena.block_mut(at);
    leaf.write_head(block);
    keys.iter().for_each(|key| leaf.push(block, *key));
    at
}
