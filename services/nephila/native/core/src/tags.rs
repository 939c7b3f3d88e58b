//! Element names as one-byte ids with their categories; generated from tags.txt.

#![allow(dead_code)]

include!(concat!(env!("OUT_DIR"), "/tags.rs"));

/// The id of a lower-case name of at most 16 bytes packed little-endian into a key; 0 if unknown. O(1).
///
/// The length tells a name from the same name with NULs behind it.
#[inline]
pub fn id_of(key: u128, len: usize) -> u8 {
    let slot = ((key as u64) ^ (key >> 64) as u64).wrapping_mul(MULTIPLIER) >> 52;
    let id = SLOTS[slot as usize];
    if KEYS[id as usize] == key && NAMES[id as usize].len() == len { id } else { 0 }
}
