//! The trie as a whole: regions in memory, and where a directory is given, runs on disk.
//!
//! Invariant: a key is there if a region holds it, or if its region is (partly) on disk and the key is neither in
//! `gone` nor in `ranges` and the runs have it. With a directory, every key that was added or removed since the last
//! run is in `touched`, and all such keys that are there are in memory: so `spill` makes any region free to leave
//! memory. It is a view of the caller's log: changes after the last manifest are lost with the process.

use std::collections::HashSet;

use super::forest::{Forest, Sight, STAGE};
use super::home::Home;
use super::leaf::Key;
use super::merge;
use super::node;
use super::run::{Outcome, Trouble};

/// Changes that are kept in memory before a run is written without being asked for, at least.
const LEAST_TOUCHED: usize = 1 << 16;
/// Removed ranges that are kept, likewise.
const MOST_RANGES: usize = 1024;
/// Keys handed on at a time, where whole regions cannot be.
pub const CHUNK: usize = 1 << 16;

pub struct Store {
    pub forest: Forest,
    pub home: Option<Home>,
    pub touched: Vec<Key>,
    pub ranges: Vec<(Key, Key)>,
    pub gone: HashSet<Key>,
    pub budget: usize,
    /// Batches so far.
    pub now: u64,
    /// Keys added since the budget was last looked at.
    pub fresh: usize,
    /// Regions that are partly on disk.
    pub colds: usize,
    pub seed: u64,
}

impl Store {
    pub fn new(home: Option<Home>, budget: usize, seed: u64) -> Self {
        let (touched, ranges, gone) = Default::default();
        let forest = Forest::new();
        Store { forest, home, touched, ranges, gone, budget, now: 0, fresh: 0, colds: 0, seed }
    }

    /// Keys of the trie. O(regions).
    pub fn len(&self) -> usize {
        self.forest.len()
    }

    pub fn nbytes(&self) -> usize {
        let gone = self.gone.capacity() * 18;
        let lists = self.touched.capacity() * 16 + self.ranges.capacity() * 32;
        let home = self.home.as_ref().map_or(0, Home::nbytes);
        self.forest.nbytes() + gone + lists + home + std::mem::size_of::<Self>()
    }

    /// Which of at most 64 keys are there?
    #[inline(always)]
    fn probe(&mut self, keys: &[Key]) -> Outcome<Sight> {
        let mut sight = self.forest.probe(keys);
        if self.budget > 0 || self.colds > 0 {
            self.probe_disk(keys, &mut sight.found)?;
        }
        Ok(sight)
    }

    /// Add to the bits of the keys that were found in memory those that are on disk.
    fn probe_disk(&mut self, keys: &[Key], found: &mut u64) -> Outcome<()> {
        if self.budget > 0 {
            self.now += 1;
            for (index, key) in keys.iter().enumerate() {
                let Some(number) = self.forest.locate(*key) else { continue };
                self.forest.regions[number].heat = self.now;
                if *found >> index & 1 == 0 && self.on_disk(number, *key)? {
                    *found |= 1 << index;
                }
            }
        } else if self.colds > 0 {
            for (index, key) in keys.iter().enumerate() {
                if *found >> index & 1 == 0
                    && self.forest.locate(*key).map_or(Ok(false), |at| self.on_disk(at, *key))?
                {
                    *found |= 1 << index;
                }
            }
        }
        Ok(())
    }

    /// Is a key that is not in memory on disk?
    fn on_disk(&mut self, number: usize, key: Key) -> Outcome<bool> {
        let Some(cold) = self.forest.regions[number].cold.as_mut() else { return Ok(false) };
        if !cold.filter.may_have(key) || self.gone.contains(&key) || within(&self.ranges, key) {
            return Ok(false);
        }
        cold.reads += 1;
        let home = self.home.as_ref().expect("only tries with a directory have cold regions");
        merge::state(&home.runs, key)
    }

    pub fn contains(&mut self, key: Key) -> Outcome<bool> {
        Ok(self.probe(&[key])?.found == 1)
    }

    /// Indices of the keys that are not there, in order, each new key once. O(n).
    pub fn missing(&mut self, keys: &[Key]) -> Outcome<Vec<u32>> {
        let mut fresh = Vec::new();
        for (number, chunk) in keys.chunks(STAGE).enumerate() {
            let found = self.probe(chunk)?.found;
            let absent = (0..chunk.len()).filter(|index| found >> index & 1 == 0);
            fresh.extend(absent.map(|index| (number * STAGE + index) as u32));
        }
        Ok(first_ones(keys, fresh, self.seed))
    }

    /// Add keys; returns how many were new. O(n).
    pub fn add(&mut self, keys: &[Key]) -> Outcome<usize> {
        let mut fresh = 0;
        for chunk in keys.chunks(STAGE) {
            let mut sight = self.probe(chunk)?;
            for (index, key) in chunk.iter().enumerate() {
                if sight.found >> index & 1 == 0 && self.forest.insert_seen(&mut sight, index, *key) {
                    fresh += 1;
                    if self.home.is_some() {
                        self.touched.push(*key);
                    }
                }
            }
        }
        self.fresh += fresh;
        self.settle()?;
        Ok(fresh)
    }

    /// Add sorted, distinct keys, the fast way. O(n).
    pub fn load(&mut self, keys: &[Key]) -> Outcome<usize> {
        if self.colds > 0 {
            return self.add(keys);
        }
        if self.home.is_none() {
            return Ok(self.forest.load(keys));
        }
        let (mut fresh, mut rest) = (0, keys);
        while !rest.is_empty() && self.colds == 0 {
            let (piece, behind) = rest.split_at(piece_of(rest));
            fresh += self.forest.load(piece);
            self.touched.extend(piece);
            self.fresh += piece.len();
            self.settle()?;
            rest = behind;
        }
        Ok(fresh + if rest.is_empty() { 0 } else { self.add(rest)? })
    }

    /// Remove a key; was it there? O(1).
    pub fn remove(&mut self, key: Key) -> Outcome<bool> {
        let Some(number) = self.forest.locate(key) else { return Ok(false) };
        let cold = self.forest.regions[number].cold.is_some();
        if !self.forest.remove(key) {
            if !cold || !self.on_disk(number, key)? {
                return Ok(false);
            }
            self.forest.regions[number].cold.as_mut().expect("it is cold").count -= 1;
        }
        if cold {
            self.gone.insert(key);
        }
        if self.home.is_some() {
            self.touched.push(key);
            self.settle()?;
        }
        Ok(true)
    }

    /// The keys of a region from `first` to `last`, in order, those on disk too.
    pub fn region_keys(&self, number: usize, first: Key, last: Key) -> Outcome<Vec<Key>> {
        let region = &self.forest.regions[number];
        let mut keys = Vec::new();
        region.collect(first, last, usize::MAX, &mut keys);
        if let (Some(_), Some(home)) = (&region.cold, &self.home) {
            let (low, high) = (first.max(region.prefix), last.min(node::last_of(region.prefix, region.depth)));
            merge::scan(&home.runs, low, high, &mut |key, there| {
                if there && !self.gone.contains(&key) && !within(&self.ranges, key) {
                    keys.push(key);
                }
                Ok(())
            })?;
            keys.sort_unstable();
            keys.dedup();
        }
        Ok(keys)
    }

    /// Give the keys from `first` to `last` to `take`, in order, in pieces, while it returns true.
    pub fn walk(&self, first: Key, last: Key, take: &mut dyn FnMut(&[Key]) -> Outcome<bool>) -> Outcome<()> {
        for number in self.forest.between(first, last) {
            if !take(&self.region_keys(number, first, last)?)? {
                break;
            }
        }
        Ok(())
    }

    /// At most `limit` keys from `first` to `last`, in order. O(limit + leaves of a region) where none is on disk.
    pub fn keys(&self, first: Key, last: Key, limit: usize) -> Outcome<Vec<Key>> {
        let mut out = Vec::new();
        for number in self.forest.between(first, last) {
            if out.len() >= limit {
                break;
            }
            if self.forest.regions[number].cold.is_some() {
                out.extend(self.region_keys(number, first, last)?);
            } else {
                self.forest.regions[number].collect(first, last, limit, &mut out);
            }
        }
        out.truncate(limit);
        Ok(out)
    }

    /// Remove the keys from `first` to `last`; returns how many there were. O(keys in the range).
    pub fn remove_range(&mut self, first: Key, last: Key) -> Outcome<usize> {
        let mut removed = 0;
        for number in self.forest.between(first, last) {
            let on_disk = match &self.forest.regions[number].cold {
                Some(_) => Some(self.region_keys(number, first, last)?.len()),
                None => None,
            };
            let region = &mut self.forest.regions[number];
            let in_memory = region.remove_range(first, last);
            if let (Some(cold), Some(all)) = (&mut region.cold, on_disk) {
                cold.count -= all - in_memory;
            }
            removed += on_disk.unwrap_or(in_memory);
        }
        if self.home.is_some() {
            self.ranges.push((first, last));
            self.settle()?;
        }
        Ok(removed)
    }

    /// Move the keys from `first` to `last` (None: before all keys) to a trie of their own, which has files beside
    /// these if it has a name. O(regions) where whole regions move in memory.
    pub fn split(&mut self, first: Option<Key>, last: Option<Key>, name: &str) -> Outcome<Store> {
        let home = match (&self.home, name) {
            (_, "") => None,
            (Some(home), _) => Some(home.beside(name)?),
            (None, _) => return Err(Trouble::Damage("a trie without a directory has none for another".into())),
        };
        let budget = if home.is_some() { self.budget } else { 0 };
        let mut target = Store::new(home, budget, self.seed);
        let (Some(first), Some(last)) = (first, last) else { return Ok(target) };
        if first > last {
            return Ok(target);
        }
        if self.colds > 0 || target.home.is_some() {
            self.walk(first, last, &mut |keys| target.load(keys).map(|_| true))?;
            self.remove_range(first, last)?;
            return Ok(target);
        }
        target.forest = self.forest.take(first, last);
        if self.home.is_some() {
            self.ranges.push((first, last));
            self.settle()?;
        }
        Ok(target)
    }

    /// Take all keys of another trie, which is empty then; returns how many were new.
    pub fn merge(&mut self, other: &mut Store) -> Outcome<usize> {
        if self.colds == 0 && self.home.is_none() && other.colds == 0 {
            let forest = std::mem::replace(&mut other.forest, Forest::new());
            other.touched.clear();
            if other.home.is_some() {
                other.ranges.push((0, Key::MAX));
            }
            return Ok(self.forest.merge(forest));
        }
        let mut fresh = 0;
        other.walk(0, Key::MAX, &mut |keys| {
            fresh += self.load(keys)?;
            Ok(true)
        })?;
        other.remove_range(0, Key::MAX)?;
        Ok(fresh)
    }

    /// Write what has been changed, and make room, where either has become much. O(1) unless it does.
    fn settle(&mut self) -> Outcome<()> {
        if self.home.is_none() {
            return Ok(());
        }
        let much = self.touched.len() > LEAST_TOUCHED && self.touched.len() > self.len() / 16;
        if much || self.ranges.len() > MOST_RANGES {
            self.spill()?;
        }
        if self.budget > 0 && self.fresh * 1024 > self.budget {
            self.fresh = 0;
            self.make_room()?;
        }
        Ok(())
    }
}

/// Is a key in one of a few ranges?
fn within(ranges: &[(Key, Key)], key: Key) -> bool {
    ranges.iter().any(|(first, last)| *first <= key && key <= *last)
}

/// How many of sorted keys to load at once: up to a change of the first byte, or a million.
fn piece_of(keys: &[Key]) -> usize {
    let head = keys[0] >> 120;
    keys.partition_point(|key| key >> 120 == head).min(1 << 20)
}

/// The indices of the first of each key. By a hash table with a seed, so that slots cannot be chosen from outside.
/// O(n).
fn first_ones(keys: &[Key], mut indices: Vec<u32>, seed: u64) -> Vec<u32> {
    let size = (2 * indices.len()).next_power_of_two();
    let (mut small, mut large) = ([0u32; 128], Vec::new());
    let table = if size <= small.len() {
        &mut small[..size]
    } else {
        large.resize(size, 0);
        &mut large[..]
    };
    indices.retain(|index| {
        let key = keys[*index as usize];
        let wide = u128::from(key as u64 ^ seed) * 0x9E37_79B9_7F4A_7C15;
        let mut at = ((wide >> 64) as u64 ^ wide as u64) as usize & (size - 1);
        while table[at] != 0 {
            if keys[table[at] as usize - 1] == key {
                return false;
            }
            at = (at + 1) & (size - 1);
        }
        table[at] = index + 1;
        true
    });
    indices
}
