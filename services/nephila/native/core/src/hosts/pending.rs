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

    /// Remove the entry at a place. O(log n).
    pub fn remove(&mut self, place: usize) -> Entry {
        let entry = self.0.swap_remove(place);
        if place < self.0.len() {
            self.rise(place);
            self.sink(place);
        }
        entry
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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
        assert!(!self.0.is_empty(), "an empty heap is kept");
        for place in 1..self.0.len() {
            assert!(self.0[(place - 1) / 2].key < self.0[place].key, "a queue in memory is no heap");
        }
    }
}

/// The place of a URL with this fingerprint, among the places from..to. Those near the head come first.
pub fn find(heap: &[Entry], url_key: &[u8], from: usize, to: usize) -> Option<usize> {
    let entries = heap.get(from..to.min(heap.len()))?;
    entries.iter().position(|entry| &entry.data[..16] == url_key).map(|place| from + place)
}

/// All entries, by sort key.
pub fn ordered(heap: &[Entry]) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = heap.iter().collect();
    entries.sort_unstable_by_key(|entry| entry.key);
    entries
}
