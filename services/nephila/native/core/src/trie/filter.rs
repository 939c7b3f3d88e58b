//! A filter over the keys of a region that are on disk: it excludes nearly all keys that are not there.
//!
//! A blocked Bloom filter (Putze, Sanders, Singler 2007): one block of 512 bits a key, one bit in each of its eight
//! words, 12 bits a key: about 0.5 % false positives. The hash is seeded by the process, so an attacker
//! cannot choose keys that collide. Keys can be added, up to the capacity; none can be taken out.

use std::hash::{BuildHasher, RandomState};

use super::leaf::Key;

const BITS_PER_KEY: usize = 12;
const WORDS: usize = 8;

pub struct Filter {
    words: Vec<u64>,
    seed: u64,
    room: usize,
}

impl Filter {
    /// A filter for `keys` and a quarter more.
    pub fn new(keys: usize) -> Self {
        let capacity = keys + keys / 4 + 32;
        let blocks = (capacity * BITS_PER_KEY).div_ceil(64 * WORDS);
        Filter { words: vec![0; blocks * WORDS], seed: RandomState::new().hash_one(0), room: capacity }
    }

    /// How many more keys it was made for.
    pub fn room(&self) -> usize {
        self.room
    }

    fn place(&self, key: Key) -> (usize, u64) {
        let low = u128::from(key as u64 ^ self.seed) * 0x9E37_79B9_7F4A_7C15;
        let hash = (low >> 64) as u64 ^ low as u64 ^ (key >> 64) as u64;
        let wide = u128::from(hash) * 0xD6E8_FEB8_6659_FD93;
        let mixed = (wide >> 64) as u64 ^ wide as u64;
        let blocks = (self.words.len() / WORDS) as u128;
        let block = (u128::from(mixed) * blocks) >> 64;
        (block as usize * WORDS, mixed.wrapping_mul(0xA076_1D64_78BD_642F))
    }

    pub fn add(&mut self, key: Key) {
        let (at, mut bits) = self.place(key);
        for word in &mut self.words[at..at + WORDS] {
            *word |= 1 << (bits >> 58);
            bits <<= 6;
        }
        self.room = self.room.saturating_sub(1);
    }

    pub fn may_have(&self, key: Key) -> bool {
        let (at, mut bits) = self.place(key);
        self.words[at..at + WORDS].iter().all(|word| {
            let there = word >> (bits >> 58) & 1 == 1;
            bits <<= 6;
            there
        })
    }

    pub fn nbytes(&self) -> usize {
        self.words.capacity() * 8 + std::mem::size_of::<Self>()
    }
}
