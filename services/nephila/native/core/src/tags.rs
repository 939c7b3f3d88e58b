//! Element names as one-byte ids with their categories; generated from tags.txt.

#![allow(dead_code)]

include!(concat!(env!("OUT_DIR"), "/tags.rs"));

/// The id of a lower-case name of at most 16 bytes packed little-endian into two words; 0 if unknown. O(1).
///
/// The length distinguishes a name from the same name followed by NULs.
#[inline]
pub fn id_of(low: u64, high: u64, len: usize) -> u8 {
    let slot = (low ^ high).wrapping_mul(MULTIPLIER) >> 52;
    let id = SLOTS[slot as usize];
    let key = u128::from(high) << 64 | u128::from(low);
    if KEYS[id as usize] == key && LENGTHS[id as usize] as usize == len {
        id
    } else {
        0
    }
}
