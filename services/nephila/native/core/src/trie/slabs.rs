//! Memory of large tries: chunks out of maps that the system is asked to back with huge pages, so that a key costs no
//! walk through page tables.
//!
//! Invariant: a chunk has one owner, which returns it. A map is never returned to the system, as safe code cannot prove
//! that all its chunks are free: later tries reuse the chunks, and a process keeps the memory that its largest tries
//! needed at one time. Pages that no chunk has used yet are not in memory.

use std::sync::{Mutex, PoisonError};

use memmap2::MmapMut;

pub const CHUNK: usize = 128 << 10;
const MAP: usize = 32 << 20;

static FREE: Mutex<Vec<&'static mut [u8]>> = Mutex::new(Vec::new());

/// A chunk of any content that begins with a page; None where the system has no more. O(1) on average.
pub fn take() -> Option<&'static mut [u8]> {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    if free.is_empty() {
        let map = MmapMut::map_anon(MAP).ok()?;
        // Only advice: without huge pages all is the same, but slower.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        // The first ones are taken first: pages are touched in order.
        free.extend(Box::leak(Box::new(map)).chunks_exact_mut(CHUNK).rev());
    }
    free.pop()
}

pub fn give(chunk: &'static mut [u8]) {
    FREE.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
}
