//! Cuts in a page that calls itself an article: lines of low probability, comments below it, and captions.

use crate::boxes::{Box, COMMENT};
use crate::tags::FIGCAPTION;
use crate::text::Line;

use super::forest::CHANCES;

/// 1,024ths: lines of a smaller chance are left out,
const STRICT: u16 = 666;
/// if those that stay make so many percent of the bytes: else the page is no article to the model.
const LEAST_LEFT: u64 = 80;
/// Comments come after so many bytes of lines that are `LONG`, and are at most seven eighths of the whole: else they
/// are what the page is about, or its body has the class.
const LEAST_ABOVE: u64 = 400;
const LONG: u32 = 80;

/// The entry of `CHANCES` from which on lines are taken, where `least` is that of any page. O(lines).
pub fn stricter(found: &[u8], lines: &[Line], least: usize) -> usize {
    let strict = CHANCES.partition_point(|chance| *chance < STRICT).max(least);
    let bytes = |least: usize| -> u64 {
        let taken = found.iter().zip(lines).filter(|(entry, _)| usize::from(**entry) >= least);
        taken.map(|(_, line)| u64::from(line.len)).sum()
    };
    if 100 * bytes(strict) >= LEAST_LEFT * bytes(least) {
        strict
    } else {
        least
    }
}

/// Leave out captions, and comments below the text. O(lines + boxes).
pub fn leave_out(kept: &mut Vec<u32>, lines: &[Line], boxes: &[Box]) {
    let place = |at: u32| lines[at as usize].place as usize;
    if kept.iter().any(|at| boxes[place(*at)].every & COMMENT != 0) {
        leave_out_comments(kept, lines, boxes);
    }
    kept.retain(|at| lines[*at as usize].tag as u8 != FIGCAPTION);
}

fn leave_out_comments(kept: &mut Vec<u32>, lines: &[Line], boxes: &[Box]) {
    // The outermost box of comments, 0 for none.
    let mut outer = vec![0u32; boxes.len()];
    for at in 1..boxes.len() {
        let above = outer[boxes[at].parent as usize];
        outer[at] = if above == 0 && boxes[at].own & COMMENT != 0 { at as u32 } else { above };
    }
    let (mut above, mut all, mut comments) = (0u64, 0u64, 0u64);
    // The box that the last line stood in, and whether it goes.
    let (mut last, mut goes) = (0, false);
    let stays: Vec<bool> = kept
        .iter()
        .map(|at| {
            let line = &lines[*at as usize];
            let mine = outer[line.place as usize];
            if mine != last {
                (last, goes) = (mine, mine > 0 && above >= LEAST_ABOVE);
            }
            all += u64::from(line.len);
            comments += if goes { u64::from(line.len) } else { 0 };
            above += if mine == 0 && line.len >= LONG { u64::from(line.len) } else { 0 };
            !goes
        })
        .collect();
    if 8 * comments <= 7 * all {
        let mut stays = stays.iter();
        kept.retain(|_| *stays.next().unwrap_or(&true));
    }
}
