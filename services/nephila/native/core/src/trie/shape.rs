//! A region as a whole: walked in key order, built from sorted keys, copied without its holes, checked.

use super::arena::{self, Arena};
use super::leaf::{self, Key, Leaf};
use super::node::{self, Node, NODE};
use super::region::{add_leaf, Region};

/// Keys a leaf gets at most when it is built: some room to grow.
const BUILT: usize = 48;

impl Region {
    /// Call `take` with the sorted keys of each leaf that may hold keys from `first` to `last`, in key order, while it
    /// returns true. O(leaves in the range).
    fn leaves(&self, first: Key, last: Key, take: &mut impl FnMut(&[Key]) -> bool) -> bool {
        self.walk(self.root(), first, last, take)
    }

    fn walk(&self, node: Node, first: Key, last: Key, take: &mut impl FnMut(&[Key]) -> bool) -> bool {
        for (reference, path) in node.children(&self.arena, first, last) {
            if reference & NODE != 0 {
                if !self.walk(Node::at(&self.arena, reference), first, last, take) {
                    return false;
                }
                continue;
            }
            let block = self.arena.block(reference);
            let leaf = Leaf::read(block);
            let mut keys = leaf.keys(block, path);
            keys[..leaf.count].sort_unstable();
            if !take(&keys[..leaf.count]) {
                return false;
            }
        }
        true
    }

    /// Append the keys from `first` to `last` in order, and stop at `limit` keys in `out`.
    pub fn collect(&self, first: Key, last: Key, limit: usize, out: &mut Vec<Key>) {
        self.leaves(first, last, &mut |keys| {
            out.extend(keys.iter().filter(|key| (first..=last).contains(*key)));
            out.len() < limit
        });
        out.truncate(limit);
    }

    pub fn keys(&self) -> Vec<Key> {
        let mut out = Vec::with_capacity(self.count);
        self.collect(0, Key::MAX, usize::MAX, &mut out);
        out
    }

    /// A region of sorted, distinct keys that all have its prefix. O(n).
    pub fn build(depth: u32, prefix: Key, keys: &[Key]) -> Self {
        let mut region = Region::new(depth, prefix);
        region.refill(keys);
        region
    }

    /// Other keys in place of those in memory, sorted and distinct. O(n).
    pub fn refill(&mut self, keys: &[Key]) {
        let mut arena = Arena::expecting(15 * keys.len());
        let root = build_node(&mut arena, self.depth, self.prefix, keys);
        self.plant(arena, root);
        self.count = keys.len();
    }

    /// Remove the keys from `first` to `last`; returns how many there were. O(keys in the range), at worst O(n).
    pub fn remove_range(&mut self, first: Key, last: Key) -> usize {
        let mut gone = Vec::new();
        self.collect(first, last, usize::MAX, &mut gone);
        if gone.len() == self.count {
            self.clear();
        } else {
            for key in &gone {
                self.remove(*key);
            }
            self.tidy();
        }
        gone.len()
    }

    pub fn rebuild(&mut self) {
        self.refill(&self.keys());
    }

    /// Copy what lives to an arena without holes. O(bytes).
    pub fn compact(&mut self) {
        let (mut arena, root) = (Arena::expecting(self.arena.live()), self.root());
        let next = Node::new(&mut arena, root.depth, root.bits, root.prefix);
        self.copy_slots(root, 0, next, &mut arena);
        self.plant(arena, next);
    }

    /// The two regions one bit deeper, copied as they are. None where a block is in both, a directory would be too
    /// empty, or a sixteenth of the entries are nodes: clustered keys grow chains of small nodes, and rebuilding them
    /// makes wide ones of those. O(bytes).
    pub fn halves(&self) -> Option<[Region; 2]> {
        let root = self.root();
        let middle = 1usize << root.bits.checked_sub(1)?;
        let (below, above) = (root.slot(&self.arena, middle - 1), root.slot(&self.arena, middle));
        let nodes = root.children(&self.arena, 0, Key::MAX).filter(|(reference, _)| reference & NODE != 0).count();
        if below != 0 && below == above || nodes > root.entries(&self.arena) as usize / 16 {
            return None;
        }
        Some([self.half(0)?, self.half(middle)?])
    }

    /// The region of the root's slots from `first` on.
    fn half(&self, first: usize) -> Option<Region> {
        let (mut arena, root) = (Arena::expecting(self.arena.live() / 2), self.root());
        let next = Node::new(&mut arena, root.depth + 1, root.bits - 1, root.path(first));
        let count = self.copy_slots(root, first, next, &mut arena);
        let full = node::dense(next.bits, next.entries(&arena));
        let mut region = Region::new(next.depth, next.prefix);
        region.plant(arena, next);
        region.count = count;
        full.then_some(region)
    }

    /// Copy the slots of `node` from `first` on to all of `next`; returns how many keys.
    fn copy_slots(&self, node: Node, first: usize, next: Node, target: &mut Arena) -> usize {
        let (mut before, mut copied, mut count) = (0, 0, 0);
        for index in 0..1 << next.bits {
            let reference = node.slot(&self.arena, first + index);
            if reference != before {
                before = reference;
                copied = self.copy_below(reference, target, &mut count);
                next.add_entries(target, i32::from(reference != 0));
            }
            next.put(target, index, copied);
        }
        count
    }

    fn copy_below(&self, reference: u32, target: &mut Arena, count: &mut usize) -> u32 {
        if reference == 0 {
            return 0;
        }
        if reference & NODE != 0 {
            let node = Node::at(&self.arena, reference);
            let next = Node::new(target, node.depth, node.bits, node.prefix);
            *count += self.copy_slots(node, 0, next, target);
            return next.reference();
        }
        let block = self.arena.block(reference);
        let leaf = Leaf::read(block);
        *count += leaf.count;
        let next = leaf.with_room(leaf.count);
        let at = target.allocate(next.size());
        leaf.copy(block, &next, target.block_mut(at));
        at
    }

    /// All invariants; the first one that does not hold. O(n).
    pub fn check(&self) -> Result<(), String> {
        let (mut count, mut live) = (0, 0);
        self.check_node(self.root(), self.depth, self.prefix, &mut count, &mut live)?;
        let keys = self.keys();
        ensure(count == self.count && keys.len() == count, || format!("{count} keys, {} said", self.count))?;
        ensure(keys.windows(2).all(|pair| pair[0] < pair[1]), || "keys out of order".into())?;
        ensure(keys.iter().all(|key| self.contains(*key)), || "a key that is walked is not found".into())?;
        ensure(live == self.arena.live(), || format!("{live} bytes reached, {} allocated", self.arena.live()))
    }

    fn check_node(&self, node: Node, depth: u32, path: Key, count: &mut usize, live: &mut usize) -> Result<(), String> {
        *live += arena::round(node.size());
        ensure(node.depth >= depth && node::prefix_of(node.prefix, depth) == node::prefix_of(path, depth), || {
            format!("a node of depth {} under depth {depth}", node.depth)
        })?;
        ensure(node::prefix_of(node.prefix, node.depth) == node.prefix, || "a prefix with a tail".into())?;
        let children: Vec<_> = node.children(&self.arena, 0, Key::MAX).collect();
        ensure(children.len() == node.entries(&self.arena) as usize, || {
            format!("{} entries, {} said", children.len(), node.entries(&self.arena))
        })?;
        for (reference, path) in children {
            if reference & NODE != 0 {
                self.check_node(Node::at(&self.arena, reference), node.depth, path, count, live)?;
                continue;
            }
            let leaf = Leaf::read(self.arena.block(reference));
            *live += arena::round(leaf.size());
            *count += leaf.count;
            ensure(1 <= leaf.count && leaf.count <= leaf.room && leaf.room <= leaf::MOST, || "a leaf's count".into())?;
            ensure(node.depth <= leaf.depth && leaf.depth <= node.reach(), || "a leaf's depth".into())?;
            ensure(node::prefix_of(path, leaf.depth) == path, || "a leaf's first slot".into())?;
            let slots = (0..1usize << node.bits).filter(|index| node.slot(&self.arena, *index) == reference).count();
            ensure(slots == 1 << (node.reach() - leaf.depth), || "a leaf's slots".into())?;
        }
        Ok(())
    }
}

pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(what())
    }
}

fn build_node(arena: &mut Arena, depth: u32, prefix: Key, keys: &[Key]) -> Node {
    let node = Node::new(arena, depth, directory_bits(depth, keys), prefix);
    fill(arena, node, depth, prefix, keys);
    node
}

/// Bits of a directory over sorted keys: one slot for about 48 keys, fewer where they crowd in few slots.
fn directory_bits(depth: u32, keys: &[Key]) -> u32 {
    let wanted = (keys.len().div_ceil(BUILT).next_power_of_two().ilog2()).min(128 - depth);
    // How many pairs of neighbours part at each bit: the sum up to a bit is the number of slots in use, less one.
    let mut parts = [0u32; 129];
    for pair in keys.windows(2) {
        parts[(pair[0] ^ pair[1]).leading_zeros() as usize] += 1;
    }
    let used = |bits: u32| 1 + parts[depth as usize..(depth + bits) as usize].iter().sum::<u32>();
    (0..=wanted).rev().find(|bits| node::dense(*bits, used(*bits) / 2)).unwrap_or(0)
}

/// Put the keys that share the first `depth` bits of `path` below their slots of `node`.
fn fill(arena: &mut Arena, node: Node, depth: u32, path: Key, keys: &[Key]) {
    let last = depth == node.reach();
    if keys.is_empty() {
        return;
    }
    if keys.len() <= BUILT || last && keys.len() <= leaf::MOST {
        let at = add_leaf(arena, depth, keys);
        node.put_all(arena, path, depth, at);
    } else if last {
        let common = (keys[0] ^ keys[keys.len() - 1]).leading_zeros();
        let child = build_node(arena, common, node::prefix_of(keys[0], common), keys);
        node.put_all(arena, path, depth, child.reference());
    } else {
        let bit = 1 << (127 - depth);
        let middle = keys.partition_point(|key| key & bit == 0);
        fill(arena, node, depth + 1, path, &keys[..middle]);
        fill(arena, node, depth + 1, path | bit, &keys[middle..]);
        return;
    }
    node.add_entries(arena, 1);
}
