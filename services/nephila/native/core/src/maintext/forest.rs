//! The main-text model: a sum over small symmetric trees, generated from maintext.txt. Whole numbers only.

use nephila_wide::{add_leaves, Tree};

use super::view::Columns;

include!(concat!(env!("OUT_DIR"), "/forest.rs"));

/// Thousandths of log-odds from one entry of `CHANCES` to the next; the middle one is even odds.
const STEP: i32 = 100;
/// Lines at a time: their columns stay in the nearer caches.
const BLOCK: usize = 256;

/// For each line an index into `CHANCES`, its chance of being main text in 1,024ths. O(lines · trees).
pub fn chances(columns: &Columns) -> Vec<u8> {
    let mut found = Vec::with_capacity(columns.stride);
    for start in (0..columns.stride).step_by(BLOCK) {
        let size = BLOCK.min(columns.stride - start);
        let mut scores = [BIAS; BLOCK];
        for trees in TREES.chunks(WITHIN_I16) {
            let mut sums = [0i16; BLOCK];
            add_leaves(trees, columns.numbers(), columns.stride, start, &mut sums[..size]);
            for (score, sum) in scores.iter_mut().zip(sums) {
                *score += i32::from(sum);
            }
        }
        found.extend(scores[..size].iter().map(|score| entry(*score)));
    }
    found.truncate(columns.count);
    found
}

/// The index into `CHANCES` of a score.
#[inline]
pub fn entry(score: i32) -> u8 {
    (score.div_euclid(STEP) + CHANCES.len() as i32 / 2).clamp(0, CHANCES.len() as i32 - 1) as u8
}
