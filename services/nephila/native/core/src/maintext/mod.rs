//! Which lines of a page are its main text: features, model, the cut that promises the best F1, and no line twice.
//!
//! Invariant: whole numbers only. A page of no text has none; lines beyond `MAX_LINES` are what the last before
//! them is.

mod around;
mod features;
mod forest;
mod lines;
mod view;
mod whole;
mod windows;

use hashbrown::HashMap;

use crate::boxes::Box;
use crate::tags::{PRE, TD, TH};
use crate::text::Line;

use features::features;
pub use forest::NAMES as FEATURES;
use forest::{chances, CHANCES};

const MAX_LINES: usize = 1 << 16;

/// 1,024ths: below 0.2 nothing is main text,
const LEAST: u16 = 205;
/// and from even odds on everything is.
const ENOUGH: u16 = 512;
/// A line of so many bytes is main text but once.
const ONCE: u32 = 32;

/// Indices of the lines that are main text, rising. O(bytes + lines + boxes).
pub fn main_lines(text: &[u8], lines: &[Line], boxes: &[Box], title: &[u8]) -> Vec<u32> {
    let count = lines.len();
    let lines = &lines[..count.min(MAX_LINES)];
    if lines.is_empty() {
        return Vec::new();
    }
    let found = chances(&features(text, lines, boxes, title), lines.len());
    let least = cut(&found, lines);
    let taken = |at: usize| usize::from(found[at]) >= least;
    let rest = if taken(lines.len() - 1) { lines.len()..count } else { 0..0 };
    let mut said = Said::default();
    let kept = (0..lines.len()).filter(|at| taken(*at) && said.is_new(&lines[*at], text));
    kept.chain(rest).map(|at| at as u32).collect()
}

/// The main text so far: the text of each line, and the box it stands in.
#[derive(Default)]
struct Said<'a>(HashMap<&'a [u8], u32, foldhash::fast::RandomState>);

impl<'a> Said<'a> {
    /// Whether the line says what none before it said. Verses (lines of one box), code and cells repeat themselves
    /// rightly.
    fn is_new(&mut self, line: &Line, text: &'a [u8]) -> bool {
        let words = &text[line.start as usize..(line.start + line.len) as usize];
        line.len < ONCE
            || matches!(line.tag as u8, PRE | TD | TH)
            || *self.0.entry(words).or_insert(line.place) == line.place
    }
}

/// The lines of `text` that are named, one below the other.
pub fn joined(text: &[u8], lines: &[Line], named: &[u32]) -> Vec<u8> {
    let named = || named.iter().map(|at| lines[*at as usize]);
    let mut out = Vec::with_capacity(named().map(|line| line.len as usize + 1).sum());
    for line in named() {
        if !out.is_empty() {
            out.push(b'\n');
        }
        out.extend_from_slice(&text[line.start as usize..(line.start + line.len) as usize]);
    }
    out
}

/// The entry of `CHANCES` from which on lines are taken: where the expected F1 of bytes is highest (see the twin).
fn cut(found: &[u8], lines: &[Line]) -> usize {
    let mut sizes = [0u64; CHANCES.len()];
    for (chance, line) in found.iter().zip(lines) {
        sizes[usize::from(*chance)] += u64::from(line.len);
    }
    let total: u64 = sizes.iter().zip(&CHANCES).map(|(size, chance)| size * u64::from(*chance)).sum();
    let (mut best, mut best_of, mut least) = (0u128, 1u128, CHANCES.len());
    let (mut taken, mut right) = (0u64, 0u64);
    for at in (0..CHANCES.len()).rev().filter(|at| sizes[*at] > 0) {
        taken += sizes[at] << 10;
        right += sizes[at] * u64::from(CHANCES[at]);
        let of = u128::from(taken + total);
        if u128::from(right) * best_of > best * of {
            (best, best_of, least) = (u128::from(right), of, at);
        }
    }
    let first = |chance: u16| CHANCES.iter().position(|have| *have >= chance).unwrap_or(0);
    least.max(first(LEAST)).min(first(ENOUGH))
}
