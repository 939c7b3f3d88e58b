//! Names of hosts in one arena, their ids, and the way back from a name to its id.
//!
//! Invariant: every id below `spans.len()` is either alive, with one entry in the index, or in `free`. The index hashes
//! with a seed of the process: who chooses host names cannot choose slots.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

pub const LONGEST: usize = 65_535;
const FREE: u64 = u64::MAX;

#[derive(Default)]
pub struct Names {
    bytes: Vec<u8>,
    /// Start << 16 | length, or FREE.
    spans: Vec<u64>,
    index: HashTable<u32>,
    free: Vec<u32>,
    /// Bytes of names that were forgotten.
    dead: usize,
    seed: RandomState,
}

fn name_at(bytes: &[u8], span: u64) -> &[u8] {
    let start = (span >> 16) as usize;
    &bytes[start..start + (span & 0xFFFF) as usize]
}

impl Names {
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        let same = |id: &u32| name_at(&self.bytes, self.spans[*id as usize]) == name;
        self.index.find(self.seed.hash_one(name), same).copied()
    }

    /// Room for so many more names, so that the index grows once.
    pub fn reserve(&mut self, names: usize) {
        let (bytes, spans, seed) = (&self.bytes, &self.spans, &self.seed);
        self.index.reserve(names, |id| seed.hash_one(name_at(bytes, spans[*id as usize])));
    }

    /// A new id for a name that is not there: the last that was freed, else the next. O(1) amortised.
    pub fn add(&mut self, name: &[u8]) -> u32 {
        let span = (self.bytes.len() as u64) << 16 | name.len() as u64;
        self.bytes.extend_from_slice(name);
        let id = self.free.pop().unwrap_or(self.spans.len() as u32);
        match self.spans.get_mut(id as usize) {
            Some(slot) => *slot = span,
            None => self.spans.push(span),
        }
        let (bytes, spans, seed) = (&self.bytes, &self.spans, &self.seed);
        let hash = |id: &u32| seed.hash_one(name_at(bytes, spans[*id as usize]));
        self.index.insert_unique(seed.hash_one(name), id, hash);
        id
    }

    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let span = *self.spans.get(id as usize)?;
        (span != FREE).then(|| name_at(&self.bytes, span))
    }

    pub fn is(&self, id: u32) -> bool {
        self.spans.get(id as usize).is_some_and(|span| *span != FREE)
    }

    /// Free a living id. The arena is packed when half of it is dead.
    pub fn remove(&mut self, id: u32) {
        let span = self.spans[id as usize];
        let hash = self.seed.hash_one(name_at(&self.bytes, span));
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        self.spans[id as usize] = FREE;
        self.free.push(id);
        self.dead += (span & 0xFFFF) as usize;
        if self.dead > 4096 && self.dead * 2 > self.bytes.len() {
            self.pack();
        }
    }

    fn pack(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.dead);
        for span in self.spans.iter_mut().filter(|span| **span != FREE) {
            let start = bytes.len() as u64;
            bytes.extend_from_slice(name_at(&self.bytes, *span));
            *span = start << 16 | (*span & 0xFFFF);
        }
        self.bytes = bytes;
        self.dead = 0;
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// One more than the highest id.
    pub fn end(&self) -> u32 {
        self.spans.len() as u32
    }

    pub fn alive(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.end()).filter(|id| self.is(*id))
    }

    pub fn nbytes(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * 8 + self.free.capacity() * 4 + self.index.allocation_size()
    }

    pub fn check(&self) {
        assert_eq!(self.len() + self.free.len(), self.spans.len(), "an id is lost");
        for id in self.alive() {
            assert_eq!(self.get(id).and_then(|name| self.find(name)), Some(id), "a name does not lead to its id");
        }
        let living: usize = self.alive().filter_map(|id| self.get(id)).map(<[u8]>::len).sum();
        assert_eq!(living + self.dead, self.bytes.len(), "the arena holds what nobody named");
    }
}
