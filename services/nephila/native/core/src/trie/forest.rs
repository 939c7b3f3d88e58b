//! The trie in memory: a directory over the first 16 bits of the key, at most, whose slots lead to regions.
//!
//! Invariant: each region is in all slots of its prefix and in no other; a slot may be empty; two regions share no
//! key. A region that grows beyond 262,144 keys is halved until its prefix has 16 bits: a host is never in two regions.
//! Batches are answered in stages (directory slots, then leaves, then keys), so that the memory of one key is
//! fetched while the others are looked at.

use std::hint::black_box;

use super::leaf::{Key, Marks};
use super::node::{self, slot_index, NODE};
use super::region::Region;
use super::shape::ensure;

/// Bits of the directory, at most.
pub const DEEPEST: u32 = 16;
/// Keys of a region before it is halved.
const LARGEST: usize = 262_144;
/// Keys looked up at a time.
pub const STAGE: usize = 64;
const NONE: u32 = u32::MAX;

pub struct Forest {
    slots: Vec<u32>,
    bits: u32,
    pub regions: Vec<Region>,
    /// How often leaves have moved but the one that a key was added to.
    moves: u64,
}

/// Where a batch of at most 64 keys was looked for.
pub struct Sight {
    /// Those that are in memory, one bit a key.
    pub found: u64,
    /// Region and leaf of each; 0 where there is none.
    places: [u32; STAGE],
    references: [u32; STAGE],
    /// `moves` of that time, and the leaves that moved since, by a few bits of what they were.
    moves: u64,
    moved: u64,
}

impl Forest {
    pub fn new() -> Self {
        Forest { slots: vec![NONE], bits: 0, regions: Vec::new(), moves: 0 }
    }

    pub fn len(&self) -> usize {
        self.regions.iter().map(Region::len).sum()
    }

    pub fn nbytes(&self) -> usize {
        let spare = (self.regions.capacity() - self.regions.len()) * std::mem::size_of::<Region>();
        self.regions.iter().map(Region::nbytes).sum::<usize>() + spare + self.slots.capacity() * 4
    }

    /// Number of the region that a key belongs to, if there is one.
    #[inline(always)]
    pub fn locate(&self, key: Key) -> Option<usize> {
        let found = self.slots[slot_index(key, 0, self.bits)];
        (found != NONE).then_some(found as usize)
    }

    pub fn contains(&self, key: Key) -> bool {
        self.locate(key).is_some_and(|number| self.regions[number].contains(key))
    }

    /// Which of at most 64 keys are in memory, and where would the others be? About three waits for memory for all of
    /// them.
    #[inline(always)]
    pub fn probe(&self, keys: &[Key]) -> Sight {
        let (mut places, mut references) = ([NONE; STAGE], [0u32; STAGE]);
        for (place, key) in places.iter_mut().zip(keys) {
            *place = self.slots[slot_index(*key, 0, self.bits)];
        }
        for (index, key) in keys.iter().enumerate() {
            if let Some(region) = self.regions.get(places[index] as usize) {
                references[index] = region.enter(*key);
            }
        }
        // Those that are on their way, and what was read to bring them on.
        let mut pending: [u8; STAGE] = std::array::from_fn(|index| index as u8);
        let (mut count, mut read) = (keys.len(), 0);
        while count > 0 {
            let mut nodes = 0;
            for at in 0..count {
                let index = pending[at] as usize;
                if references[index] != 0 {
                    read ^= self.regions[places[index] as usize].touch(references[index]);
                }
                pending[nodes] = index as u8;
                nodes += usize::from(references[index] & NODE != 0);
            }
            for index in pending[..nodes].iter().map(|index| *index as usize) {
                let region = &self.regions[places[index] as usize];
                references[index] = region.descend(references[index], keys[index]);
            }
            count = nodes;
        }
        let mut marks = [Marks::default(); STAGE];
        for (index, key) in keys.iter().enumerate() {
            if references[index] != 0 {
                let byte;
                (marks[index], byte) = self.regions[places[index] as usize].sight(references[index], *key);
                read ^= byte;
            }
        }
        black_box(read);
        let mut found = 0;
        for (index, key) in keys.iter().enumerate() {
            if !marks[index].is_empty() {
                let region = &self.regions[places[index] as usize];
                let there = region.is_among(references[index], *key, marks[index]);
                found |= u64::from(there) << index;
            }
        }
        Sight { found, places, references, moves: self.moves, moved: 0 }
    }

    /// Add the key at an index of a batch that was looked for just now; was it new? O(1) on average.
    #[inline(always)]
    pub fn insert_seen(&mut self, sight: &mut Sight, index: usize, key: Key) -> bool {
        let (place, reference) = (sight.places[index], sight.references[index]);
        // A few leaves share a bit: those of them that did not move take the longer way too.
        let bit = 1 << ((reference >> 3 ^ place) & 63);
        if reference != 0 && sight.moves == self.moves && sight.moved & bit == 0 {
            let region = &mut self.regions[place as usize];
            if let Some(fresh) = region.push(reference, key) {
                if fresh && region.count > LARGEST {
                    self.relieve(place as usize);
                }
                return fresh;
            }
            sight.moved |= bit;
        }
        self.insert(key)
    }

    /// Add a key; was it new? O(1) on average.
    pub fn insert(&mut self, key: Key) -> bool {
        loop {
            let Some(number) = self.locate(key) else {
                self.plant(key);
                continue;
            };
            let region = &mut self.regions[number];
            if !region.insert(key) {
                return false;
            }
            self.moves += u64::from(region.tidy());
            if region.count > LARGEST {
                self.relieve(number);
            }
            return true;
        }
    }

    pub fn remove(&mut self, key: Key) -> bool {
        let Some(number) = self.locate(key) else { return false };
        let there = self.regions[number].remove(key);
        self.regions[number].tidy();
        there
    }

    /// An empty region over the empty slots around a key.
    fn plant(&mut self, key: Key) {
        let mut depth = self.bits;
        while depth > 0 && self.free(key, depth - 1) {
            depth -= 1;
        }
        self.adopt(Region::new(depth, node::prefix_of(key, depth)));
    }

    fn range(&self, key: Key, depth: u32) -> std::ops::Range<usize> {
        let width = 1 << (self.bits - depth);
        let first = slot_index(key, 0, self.bits) & !(width - 1);
        first..first + width
    }

    /// Is there no region below the first `depth` bits of a key, and none above?
    fn free(&self, key: Key, depth: u32) -> bool {
        if depth > self.bits {
            return self.locate(key).is_none();
        }
        self.slots[self.range(key, depth)].iter().all(|slot| *slot == NONE)
    }

    /// Take a region where there is none. O(its slots).
    fn adopt(&mut self, region: Region) {
        while self.bits < region.depth {
            self.slots = self.slots.iter().flat_map(|slot| [*slot, *slot]).collect();
            self.bits += 1;
        }
        let range = self.range(region.prefix, region.depth);
        self.slots[range].fill(self.regions.len() as u32);
        self.regions.push(region);
    }

    /// Take a region out and leave its slots empty.
    fn uproot(&mut self, number: usize) -> Region {
        let region = self.regions.swap_remove(number);
        let range = self.range(region.prefix, region.depth);
        self.slots[range].fill(NONE);
        if let Some(moved) = self.regions.get(number) {
            let range = self.range(moved.prefix, moved.depth);
            self.slots[range].fill(number as u32);
        }
        region
    }

    /// Regions in place of one that is too large, if it may be halved.
    pub fn relieve(&mut self, number: usize) {
        let region = &self.regions[number];
        if region.count > LARGEST && region.depth < DEEPEST && region.cold.is_none() {
            self.moves += 1;
            let old = self.uproot(number);
            let Some(halves) = old.halves() else {
                return self.build(old.depth, old.prefix, &old.keys());
            };
            for half in halves.into_iter().filter(|half| half.count > 0) {
                self.adopt(half);
                self.relieve(self.regions.len() - 1);
            }
        }
    }

    /// Hang sorted keys that share the first `depth` bits of `prefix`, where there is no region. O(n).
    fn build(&mut self, depth: u32, prefix: Key, keys: &[Key]) {
        if keys.len() <= LARGEST * 3 / 4 || depth == DEEPEST {
            if !keys.is_empty() {
                self.adopt(Region::build(depth, prefix, keys));
            }
            return;
        }
        let bit = 1 << (127 - depth);
        let middle = keys.partition_point(|key| key & bit == 0);
        self.build(depth + 1, prefix, &keys[..middle]);
        self.build(depth + 1, prefix | bit, &keys[middle..]);
    }

    /// Put sorted keys into regions between two bounds, where no region is; bounds are at 16 bits. O(n).
    pub fn build_between(&mut self, first: Key, last: Key, keys: &[Key]) {
        self.build_part(0, 0, first, last, keys);
    }

    fn build_part(&mut self, depth: u32, prefix: Key, first: Key, last: Key, keys: &[Key]) {
        if first <= prefix && node::last_of(prefix, depth) <= last {
            return self.build(depth, prefix, keys);
        }
        if depth < DEEPEST && !keys.is_empty() {
            let bit = 1 << (127 - depth);
            let middle = keys.partition_point(|key| key & bit == 0);
            self.build_part(depth + 1, prefix, first, last, &keys[..middle]);
            self.build_part(depth + 1, prefix | bit, first, last, &keys[middle..]);
        }
    }

    /// Add sorted, distinct keys; returns how many were new. Built in one go where nothing is there, else one by one.
    pub fn load(&mut self, keys: &[Key]) -> usize {
        self.load_below(0, keys)
    }

    fn load_below(&mut self, depth: u32, keys: &[Key]) -> usize {
        let Some(first) = keys.first() else { return 0 };
        if keys.len() <= STAGE || depth > self.bits {
            return keys.iter().filter(|key| self.insert(**key)).count();
        }
        if self.free(*first, depth) {
            self.build(depth, node::prefix_of(*first, depth), keys);
            return keys.len();
        }
        if depth == self.bits {
            return keys.iter().filter(|key| self.insert(**key)).count();
        }
        let middle = keys.partition_point(|key| key & 1 << (127 - depth) == 0);
        self.load_below(depth + 1, &keys[..middle]) + self.load_below(depth + 1, &keys[middle..])
    }

    /// Numbers of the regions that may hold keys from `first` to `last`, in key order.
    pub fn between(&self, first: Key, last: Key) -> Vec<usize> {
        let mut found = Vec::new();
        for slot in &self.slots[slot_index(first, 0, self.bits)..=slot_index(last, 0, self.bits)] {
            if *slot != NONE && found.last() != Some(&(*slot as usize)) {
                found.push(*slot as usize);
            }
        }
        found
    }

    /// Take the keys from `first` to `last` out: whole regions as they are, what is cut by a bound key by key.
    pub fn take(&mut self, first: Key, last: Key) -> Forest {
        let mut taken = Forest::new();
        let prefixes: Vec<Key> = self.between(first, last).iter().map(|number| self.regions[*number].prefix).collect();
        for prefix in prefixes {
            let Some(number) = self.locate(prefix) else { continue };
            let region = &mut self.regions[number];
            if first <= region.prefix && node::last_of(region.prefix, region.depth) <= last {
                let region = self.uproot(number);
                taken.adopt(region);
                continue;
            }
            let mut keys = Vec::new();
            region.collect(first, last, usize::MAX, &mut keys);
            let rest = region.count - keys.len();
            if rest < region.count {
                let mut kept = region.keys();
                kept.retain(|key| !(first..=last).contains(key));
                region.refill(&kept);
                let (depth, prefix) = (region.depth, region.prefix);
                taken.adopt(Region::build(depth, prefix, &keys));
            }
        }
        taken
    }

    /// Take all keys of another; returns how many were new. Regions whose place is empty move as they are.
    pub fn merge(&mut self, other: Forest) -> usize {
        let mut fresh = 0;
        for region in other.regions {
            if self.free(region.prefix, region.depth) {
                fresh += region.count;
                self.adopt(region);
            } else {
                fresh += self.load(&region.keys());
            }
        }
        fresh
    }

    /// All invariants; the first one that does not hold. O(n).
    pub fn check(&self) -> Result<(), String> {
        let mut slots = vec![NONE; 1 << self.bits];
        for (number, region) in self.regions.iter().enumerate() {
            ensure(region.depth <= DEEPEST.min(self.bits), || "a region too deep".into())?;
            ensure(region.prefix == node::prefix_of(region.prefix, region.depth), || "a prefix with a tail".into())?;
            ensure(region.count <= LARGEST || region.depth == DEEPEST || region.cold.is_some(), || {
                "a region too large".into()
            })?;
            let range = self.range(region.prefix, region.depth);
            ensure(slots[range.clone()].iter().all(|slot| *slot == NONE), || "two regions at one place".into())?;
            slots[range].fill(number as u32);
            region.check()?;
        }
        ensure(slots == self.slots, || "the directory of regions".into())
    }
}
