//! The part of a queue that is in memory: packed URLs in a binary heap by their sort key.
//!
//! Invariant: no entry is smaller than its parent; keys are unique. A queue with one URL holds one entry's room.

pub struct Entry {
    pub key: u64,
    pub data: Box<[u8]>,
}

#[derive(Default)]
pub struct Pending(Vec<Entry>);

impl Pending {
    pub fn push(&mut self, key: u64, data: Box<[u8]>) {
        if self.0.len() == self.0.capacity() {
            self.0.reserve_exact(self.0.len().max(1));
        }
        self.0.push(Entry { key, data });
        self.rise(self.0.len() - 1);
    }

    pub fn first(&self) -> Option<&Entry> {
        self.0.first()
    }

    /// The place of a URL with this fingerprint, among the places from..to. Those near the head come first.
    pub fn find(&self, url_key: &[u8], from: usize, to: usize) -> Option<usize> {
        let entries = self.0.get(from..to.min(self.0.len()))?;
        entries.iter().position(|entry| &entry.data[..16] == url_key).map(|place| from + place)
    }

    /// Remove the entry at a place. O(log n).
    pub fn remove(&mut self, place: usize) -> Entry {
        let entry = self.0.swap_remove(place);
        if self.0.is_empty() {
            self.0 = Vec::new();
        } else if place < self.0.len() {
            self.rise(place);
            self.sink(place);
        }
        entry
    }

    /// All, by sort key.
    pub fn ordered(&self) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.0.iter().collect();
        entries.sort_unstable_by_key(|entry| entry.key);
        entries
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.0[place].key < self.0[(place - 1) / 2].key {
            self.0.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let (left, right) = (place * 2 + 1, place * 2 + 2);
            let Some(mut least) = self.0.get(left).map(|_| left) else { return };
            if self.0.get(right).is_some_and(|entry| entry.key < self.0[left].key) {
                least = right;
            }
            if self.0[place].key <= self.0[least].key {
                return;
            }
            self.0.swap(place, least);
            place = least;
        }
    }

    pub fn check(&self) {
        for place in 1..self.0.len() {
            assert!(self.0[(place - 1) / 2].key < self.0[place].key, "a queue in memory is no heap");
        }
    }
}
