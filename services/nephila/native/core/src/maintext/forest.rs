//! The main-text model: a sum over small symmetric trees, generated from maintext.txt. Whole numbers only.

include!(concat!(env!("OUT_DIR"), "/forest.rs"));

/// Thousandths of log-odds from one entry of `CHANCES` to the next; the middle one is even odds.
const STEP: i32 = 100;
/// Lines at a time: their answers stay in the nearest cache, and the loops over them are vector code.
const BLOCK: usize = 256;

/// For each line an index into `CHANCES`, its chance of being main text in 1,024ths. O(lines · trees).
pub fn chances(columns: &[i16], count: usize) -> Vec<u8> {
    let mut found = Vec::with_capacity(count);
    let mut start = 0;
    while start < count {
        let size = BLOCK.min(count - start);
        let mut scores = [BIAS; BLOCK];
        for tree in &TREES {
            let mut leaf = [0u16; BLOCK];
            for level in 0..DEPTH {
                let from = tree.columns[level] as usize * count + start;
                let threshold = tree.thresholds[level];
                for (leaf, value) in leaf[..size].iter_mut().zip(&columns[from..from + size]) {
                    *leaf |= u16::from(*value > threshold) << level;
                }
            }
            for (score, leaf) in scores[..size].iter_mut().zip(&leaf[..size]) {
                *score += i32::from(tree.leaves[*leaf as usize & (LEAVES - 1)]);
            }
        }
        found.extend(scores[..size].iter().map(|score| entry(*score)));
        start += size;
    }
    found
}

/// The index into `CHANCES` of a score.
#[inline]
pub fn entry(score: i32) -> u8 {
    (score.div_euclid(STEP) + CHANCES.len() as i32 / 2).clamp(0, CHANCES.len() as i32 - 1) as u8
}
