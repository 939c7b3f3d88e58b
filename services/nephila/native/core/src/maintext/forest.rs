//! The main-text model: a sum over small symmetric trees, generated from maintext.txt. Whole numbers only.
//!
//! Most comparisons have one answer for all lines of a page: a tree keeps the levels that differ from line to line, a
//! third of them. The sum of what is left is a polynomial in the answers, so no leaf is looked up and the loops over
//! the lines are vector code.

use super::view::{Column, Columns};

include!(concat!(env!("OUT_DIR"), "/forest.rs"));

/// Thousandths of log-odds from one entry of `CHANCES` to the next; the middle one is even odds.
const STEP: i32 = 100;
/// Lines at a time: their sums stay in the nearest cache.
const BLOCK: usize = 512;

/// A tree on one page.
struct Live {
    /// Levels that differ from line to line: where their columns begin, and the thresholds.
    levels: u8,
    columns: [u32; 4],
    thresholds: [i16; 4],
    /// Coefficients of the polynomial by the set of levels whose answer is yes; the first one is in the bias.
    terms: [i16; 16],
    /// Greatest difference of two leaves: no sum of the terms is farther from 0.
    most: i32,
}

/// For each line an index into `CHANCES`, its chance of being main text in 1,024ths. O(lines · trees).
pub fn chances(columns: &Columns, count: usize) -> Vec<u8> {
    let bounds: Vec<(i16, i16)> = columns.columns.iter().map(|column| bounds(columns, *column, count)).collect();
    let mut bias = BIAS;
    let mut live = Vec::with_capacity(TREES.len());
    for tree in &TREES {
        let (first, tree) = on_page(tree, columns, &bounds);
        bias += first;
        if tree.levels > 0 {
            live.push(tree);
        }
    }
    let mut found = Vec::with_capacity(count);
    for start in (0..count).step_by(BLOCK) {
        let size = BLOCK.min(count - start);
        let (mut scores, mut sums, mut used) = ([bias; BLOCK], [0i16; BLOCK], 0);
        for tree in &live {
            if used + tree.most > i32::from(i16::MAX) {
                flush(&mut scores[..size], &mut sums[..size]);
                used = 0;
            }
            used += tree.most;
            tree.add(&columns.data, start, &mut sums[..size]);
        }
        flush(&mut scores[..size], &mut sums[..size]);
        found.extend(scores[..size].iter().map(|score| entry(*score)));
    }
    found
}

/// Least and greatest number of a column.
fn bounds(columns: &Columns, column: Column, count: usize) -> (i16, i16) {
    match column {
        Column::Same(value) => (value, value),
        Column::At(start) => columns.data[start..start + count]
            .iter()
            .fold((i16::MAX, i16::MIN), |(least, greatest), value| (least.min(*value), greatest.max(*value))),
        Column::Dead => (0, 0),
    }
}

/// What is left of a tree: the sum where no answer is yes, and the rest.
fn on_page(tree: &Tree, columns: &Columns, bounds: &[(i16, i16)]) -> (i32, Live) {
    let mut live = Live { levels: 0, columns: [0; 4], thresholds: [0; 4], terms: [0; 16], most: tree.most };
    let mut bits = [0usize; 4];
    let mut fixed = 0usize;
    for level in 0..4 {
        let (at, threshold) = (usize::from(tree.columns[level]), tree.thresholds[level]);
        let (least, greatest) = bounds[at];
        if least > threshold {
            fixed |= 1 << level;
        } else if let (true, Column::At(start)) = (greatest > threshold, columns.columns[at]) {
            let number = usize::from(live.levels);
            live.columns[number] = start as u32;
            live.thresholds[number] = threshold;
            bits[number] = 1 << level;
            live.levels += 1;
        }
    }
    let sum = |set: usize| i32::from(tree.leaves[(fixed | set) & 15]);
    let first = sum(0);
    let terms = &mut live.terms;
    match live.levels {
        0 => {}
        1 => terms[1] = (sum(bits[0]) - first) as i16,
        2 => {
            let (a, b) = (sum(bits[0]) - first, sum(bits[1]) - first);
            (terms[1], terms[2]) = (a as i16, b as i16);
            terms[3] = (sum(bits[0] | bits[1]) - first - a - b) as i16;
        }
        levels => {
            let mut leaf = [0; 16];
            terms[0] = tree.leaves[fixed & 15];
            for set in 1..1usize << levels {
                let highest = set.ilog2() as usize;
                leaf[set] = leaf[set ^ 1 << highest] | bits[highest];
                terms[set] = sum(leaf[set]) as i16;
            }
            for level in 0..levels {
                for set in (0..1usize << levels).filter(|set| set >> level & 1 == 1) {
                    terms[set] = terms[set].wrapping_sub(terms[set ^ 1 << level]);
                }
            }
        }
    }
    (first, live)
}

impl Live {
    /// Add the sums of the lines from `start` on.
    #[inline]
    fn add(&self, data: &[i16], start: usize, sums: &mut [i16]) {
        let size = sums.len();
        let column = |level: usize| {
            let from = self.columns[level] as usize + start;
            &data[from..from + size]
        };
        let [t0, t1, t2, t3] = self.thresholds;
        let c = &self.terms;
        match self.levels {
            1 => {
                for (sum, a) in sums.iter_mut().zip(column(0)) {
                    *sum = sum.wrapping_add(yes(*a, t0) & c[1]);
                }
            }
            2 => {
                for ((sum, a), b) in sums.iter_mut().zip(column(0)).zip(column(1)) {
                    *sum = sum.wrapping_add(two(yes(*a, t0), yes(*b, t1), c[1], c[2], c[3]));
                }
            }
            3 => {
                for (((sum, a), b), d) in sums.iter_mut().zip(column(0)).zip(column(1)).zip(column(2)) {
                    let (a, b, d) = (yes(*a, t0), yes(*b, t1), yes(*d, t2));
                    *sum = sum.wrapping_add(three(a, b, d, &[c[1], c[2], c[3], c[4], c[5], c[6], c[7]]));
                }
            }
            _ => {
                let columns = column(0).iter().zip(column(1)).zip(column(2)).zip(column(3));
                for (sum, (((a, b), d), e)) in sums.iter_mut().zip(columns) {
                    let (a, b, d, e) = (yes(*a, t0), yes(*b, t1), yes(*d, t2), yes(*e, t3));
                    let low = three(a, b, d, &[c[1], c[2], c[3], c[4], c[5], c[6], c[7]]);
                    let high = three(a, b, d, &[c[9], c[10], c[11], c[12], c[13], c[14], c[15]]);
                    *sum = sum.wrapping_add(low).wrapping_add(e & c[8].wrapping_add(high));
                }
            }
        }
    }
}

/// All bits where the value is above the threshold, else none.
#[inline(always)]
fn yes(value: i16, threshold: i16) -> i16 {
    -i16::from(value > threshold)
}

#[inline(always)]
fn two(a: i16, b: i16, of_a: i16, of_b: i16, of_both: i16) -> i16 {
    (a & of_a.wrapping_add(b & of_both)).wrapping_add(b & of_b)
}

#[inline(always)]
fn three(a: i16, b: i16, d: i16, c: &[i16; 7]) -> i16 {
    two(a, b, c[0], c[1], c[2]).wrapping_add(d & c[3].wrapping_add(two(a, b, c[4], c[5], c[6])))
}

/// Move the sums to the scores.
fn flush(scores: &mut [i32], sums: &mut [i16]) {
    for (score, sum) in scores.iter_mut().zip(sums) {
        *score += i32::from(*sum);
        *sum = 0;
    }
}

/// The index into `CHANCES` of a score.
#[inline]
pub fn entry(score: i32) -> u8 {
    (score.div_euclid(STEP) + CHANCES.len() as i32 / 2).clamp(0, CHANCES.len() as i32 - 1) as u8
}
