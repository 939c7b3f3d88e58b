//! Index of simhashes: finds those within 3 bits of a given one (Manku, Jain, Das Sarma 2007), with bounded memory.
//!
//! Two tables, one by the upper and one by the lower half of a simhash. Two simhashes within 3 bits differ in at most
//! one bit of one half, so a look-up probes in each table the bucket of its own half and the buckets one bit away.
//! A table is an array of buckets of 16 slots of 8 bytes: 16 bytes an entry in both tables together. A slot holds the
//! other half (32 bits), the low 12 bits of its own half, and the top 20 bits of the page's fingerprint. A bucket holds
//! its newest entries first; the oldest leaves.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

const WAYS: usize = 16;
const OWN_BITS: u32 = 12;
const PREFIX_BITS: u32 = 20;
const PREFIX: u64 = (1 << PREFIX_BITS) - 1;
const OWN: u64 = (1 << OWN_BITS) - 1;
/// The greatest distance that the two tables find.
const MOST: u32 = 3;

/// Simhashes and the pages they belong to.
#[pyclass(module = "nephila.native._core")]
pub struct NearCopyIndex {
    buckets: usize,
    slots: Vec<u64>,
    filled: usize,
}

fn halves(simhash: u64) -> [(u32, u32); 2] {
    let (upper, lower) = ((simhash >> 32) as u32, simhash as u32);
    [(upper, lower), (lower, upper)]
}

fn slot_of(own: u32, other: u32, page: u32) -> u64 {
    u64::from(other) << 32 | (u64::from(own) & OWN) << PREFIX_BITS | u64::from(page) & PREFIX
}

impl NearCopyIndex {
    fn start(&self, table: usize, own: u32) -> usize {
        let bucket = ((u64::from(own) * self.buckets as u64) >> 32) as usize;
        (table * self.buckets + bucket) * WAYS
    }

    /// Insert at the front of a bucket, and drop an equal slot or else the oldest. Returns whether the bucket grew.
    fn insert(&mut self, start: usize, slot: u64) -> bool {
        let bucket = &mut self.slots[start..start + WAYS];
        let last = bucket.iter().position(|&one| one == slot || one == 0).unwrap_or(WAYS - 1);
        let grew = bucket[last] == 0;
        bucket.copy_within(..last, 1);
        bucket[0] = slot;
        grew
    }

    fn find(&self, simhash: u64, distance: u32) -> Vec<(u32, u32)> {
        let mut probes: Vec<(usize, u64, u32)> = Vec::with_capacity(66);
        for (table, (own, other)) in halves(simhash).into_iter().enumerate() {
            let home = self.start(table, own);
            probes.push((home, slot_of(own, other, 0), 0));
            for bit in 0..32 {
                let near = own ^ (1 << bit);
                let start = self.start(table, near);
                if start != home {
                    probes.push((start, slot_of(near, other, 0), 1));
                }
            }
        }
        // One load of each cache line first: the memory answers them together, the comparisons would wait for each.
        let lines = probes.iter().fold(0, |sum, probe| sum ^ self.slots[probe.0] ^ self.slots[probe.0 + WAYS / 2]);
        std::hint::black_box(lines);
        let mut found: Vec<(u32, u32)> = Vec::new();
        for (start, wanted, differs) in probes {
            for &slot in &self.slots[start..start + WAYS] {
                let bits = (slot ^ wanted) & !PREFIX;
                // Without its three lowest bits a near slot has none left: cheaper than a count.
                let rest = bits & bits.wrapping_sub(1);
                let rest = rest & rest.wrapping_sub(1);
                if rest & rest.wrapping_sub(1) != 0 || slot == 0 {
                    continue;
                }
                let away = bits.count_ones() + differs;
                if away <= distance {
                    found.push((away, (slot & PREFIX) as u32));
                }
            }
        }
        // Nearest first; a page that several probes found has its least distance.
        found.sort_unstable();
        let mut nearest: Vec<(u32, u32)> = Vec::new();
        for one in found {
            if !nearest.iter().any(|&(_, page)| page == one.1) {
                nearest.push(one);
            }
        }
        nearest
    }
}

#[pymethods]
impl NearCopyIndex {
    /// `entries`: its capacity; memory is 16 bytes each, taken at once. ValueError unless 1 to 2^31.
    #[new]
    fn new(entries: usize) -> PyResult<NearCopyIndex> {
        if entries == 0 || entries > 1 << 31 {
            return Err(PyValueError::new_err(format!("entries must be 1 to {}, not {entries}", 1u64 << 31)));
        }
        let buckets = entries.div_ceil(WAYS);
        Ok(NearCopyIndex { buckets, slots: vec![0; 2 * buckets * WAYS], filled: 0 })
    }

    /// Add the simhash of a page; `page`: the top 20 bits of its fingerprint. An equal entry becomes the newest. O(1).
    fn add(&mut self, simhash: u64, page: u32) {
        let [(upper, lower), _] = halves(simhash);
        let starts = (self.start(0, upper), self.start(1, lower));
        self.filled += usize::from(self.insert(starts.0, slot_of(upper, lower, page)));
        self.insert(starts.1, slot_of(lower, upper, page));
    }

    /// (distance, page) of entries within `distance` bits, nearest first; ValueError above 3. Entries may be stale or
    /// wrong: the caller compares with the stored simhash. Some 40 buckets are read.
    fn near(&self, simhash: u64, distance: u32) -> PyResult<Vec<(u32, u32)>> {
        if distance > MOST {
            return Err(PyValueError::new_err(format!("the distance is at most {MOST}, not {distance}")));
        }
        Ok(self.find(simhash, distance))
    }

    /// Entries in the table of the upper halves.
    fn __len__(&self) -> usize {
        self.filled
    }

    /// Memory in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.slots.len() * 8
    }
}

/// Simhash of UTF-8 text; 0 for a text of fewer than 16 tokens. O(n).
#[pyfunction]
pub fn simhash(py: Python<'_>, text: &[u8]) -> u64 {
    py.detach(|| crate::simhash::simhash(text))
}
