//! The seen set: 16-byte fingerprints by open addressing, kept in the order of their hash.
//!
//! Invariant: walking the slots from the start meets hashes in rising order (linear probing with early stop), so a miss
//! costs what a hit costs even when the table is nearly full, and growing is one sequential merge. The hash mixes the
//! last eight bytes (keys of a host share the first four) with a seed of the process: nobody outside can aim at a slot.

use std::hash::{BuildHasher, RandomState};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Slots are at most 7/8 full; growth is by 4/3, so 18-25 bytes a key.
const FULL_NUM: usize = 7;
const FULL_DEN: usize = 8;
/// Slots behind the last home slot, so that nothing wraps around.
const TAIL: usize = 64;
const FIRST: usize = 48;

/// A set of 16-byte fingerprints.
///
/// 18-25 bytes per key; insert, hit and miss are O(1) on average. Not for use by several threads at once without the GIL.
#[pyclass(module = "nephila.native._core")]
pub struct SeenSet {
    slots: Vec<u128>,
    homes: u64,
    count: usize,
    /// The key of all zeros, which marks a free slot in `slots`.
    zero: bool,
    seed: u64,
}

fn key_of(bytes: &[u8]) -> u128 {
    let mut key = [0u8; 16];
    key.copy_from_slice(bytes);
    u128::from_be_bytes(key)
}

fn records(bytes: &[u8]) -> PyResult<impl Iterator<Item = u128> + '_> {
    if bytes.len() % 16 != 0 {
        return Err(PyValueError::new_err("fingerprints must come in records of 16 bytes"));
    }
    Ok(bytes.chunks_exact(16).map(key_of))
}

impl SeenSet {
    fn with_homes(homes: usize, seed: u64) -> Self {
        SeenSet { slots: vec![0; homes + TAIL], homes: homes as u64, count: 0, zero: false, seed }
    }

    #[inline(always)]
    fn hash(&self, key: u128) -> u64 {
        let wide = u128::from(key as u64 ^ self.seed) * 0x9E37_79B9_7F4A_7C15u128;
        (wide >> 64) as u64 ^ wide as u64
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash) * u128::from(self.homes)) >> 64) as usize
    }

    /// Where the key is (Ok) or belongs (Err).
    #[inline]
    fn find(&self, key: u128) -> Result<usize, usize> {
        let hash = self.hash(key);
        let mut at = self.home(hash);
        loop {
            let Some(found) = self.slots.get(at).copied() else { return Err(at) };
            if found == key {
                return Ok(at);
            }
            if found == 0 || (self.hash(found), found) > (hash, key) {
                return Err(at);
            }
            at += 1;
        }
    }

    fn has(&self, key: u128) -> bool {
        if key == 0 {
            self.zero
        } else {
            self.find(key).is_ok()
        }
    }

    fn insert(&mut self, key: u128) -> bool {
        if key == 0 {
            return !std::mem::replace(&mut self.zero, true);
        }
        let Err(at) = self.find(key) else { return false };
        if (self.count + 1) * FULL_DEN > self.homes as usize * FULL_NUM {
            self.grow();
            return self.insert(key);
        }
        // Everything up to the next free slot moves on by one.
        match self.slots[at.min(self.slots.len())..].iter().position(|slot| *slot == 0) {
            Some(gap) => self.slots.copy_within(at..at + gap, at + 1),
            None => {
                self.grow();
                return self.insert(key);
            }
        }
        self.slots[at] = key;
        self.count += 1;
        true
    }

    /// A third more slots. The old ones are in order of hash already, so each lands at its home or behind the last.
    fn grow(&mut self) {
        let mut homes = self.homes as usize / 3 * 4;
        loop {
            let mut next = SeenSet::with_homes(homes, self.seed);
            let mut free = 0;
            let fits = self.slots.iter().filter(|slot| **slot != 0).all(|key| {
                let at = next.home(next.hash(*key)).max(free);
                free = at + 1;
                next.slots.get_mut(at).map(|slot| *slot = *key).is_some()
            });
            if fits {
                self.slots = next.slots;
                self.homes = homes as u64;
                return;
            }
            homes += homes / 3;
        }
    }

    fn remove(&mut self, key: u128) -> bool {
        if key == 0 {
            return std::mem::replace(&mut self.zero, false);
        }
        let Ok(at) = self.find(key) else { return false };
        // Those behind it that are not at home move back by one.
        let mut end = at + 1;
        while end < self.slots.len() && self.slots[end] != 0 && self.home(self.hash(self.slots[end])) < end {
            end += 1;
        }
        self.slots.copy_within(at + 1..end, at);
        self.slots[end - 1] = 0;
        self.count -= 1;
        true
    }
}

#[pymethods]
impl SeenSet {
    #[new]
    fn new() -> Self {
        SeenSet::with_homes(FIRST, RandomState::new().hash_one(0))
    }

    /// Indices of the 16-byte records that are not in the set, in order, each new fingerprint once. O(n).
    fn missing(&self, fingerprints: &[u8]) -> PyResult<Vec<u32>> {
        let mut fresh: Vec<(u128, u32)> = Vec::new();
        for (index, key) in records(fingerprints)?.enumerate() {
            if !self.has(key) {
                fresh.push((key, index as u32));
            }
        }
        // Stable by key, then the first of each key in the order of the buffer.
        fresh.sort_unstable();
        fresh.dedup_by_key(|(key, _)| *key);
        let mut indices: Vec<u32> = fresh.into_iter().map(|(_, index)| index).collect();
        indices.sort_unstable();
        Ok(indices)
    }

    /// Add records of 16 bytes; returns how many were new. O(n).
    fn add(&mut self, fingerprints: &[u8]) -> PyResult<usize> {
        Ok(records(fingerprints)?.map(|key| usize::from(self.insert(key))).sum())
    }

    /// Remove one fingerprint; was it there? O(1).
    fn discard(&mut self, fingerprint: &[u8]) -> PyResult<bool> {
        one(fingerprint).map(|key| self.remove(key))
    }

    fn __contains__(&self, fingerprint: &[u8]) -> PyResult<bool> {
        one(fingerprint).map(|key| self.has(key))
    }

    fn __len__(&self) -> usize {
        self.count + usize::from(self.zero)
    }

    /// Bytes of memory in use.
    #[getter]
    fn nbytes(&self) -> usize {
        self.slots.capacity() * 16 + std::mem::size_of::<Self>()
    }

    /// All fingerprints, sorted, one after the other. O(n log n).
    fn dump<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut keys: Vec<u128> = self.slots.iter().copied().filter(|slot| *slot != 0).collect();
        if self.zero {
            keys.push(0);
        }
        keys.sort_unstable();
        let bytes: Vec<u8> = keys.into_iter().flat_map(u128::to_be_bytes).collect();
        PyBytes::new(py, &bytes)
    }

    /// Add what `dump` gave, in any order. O(n).
    fn load(&mut self, fingerprints: &[u8]) -> PyResult<()> {
        self.add(fingerprints).map(drop)
    }
}

fn one(fingerprint: &[u8]) -> PyResult<u128> {
    if fingerprint.len() == 16 {
        Ok(key_of(fingerprint))
    } else {
        Err(PyValueError::new_err("a fingerprint has 16 bytes"))
    }
}
