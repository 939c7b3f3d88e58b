//! Cuts in a page that calls itself an article: lines of low probability, comments below it, and captions.

use crate::boxes::{Box, COMMENT, CONTEXTS};
use crate::tags::{BUTTON, FIGCAPTION, FORM};
use crate::text::Line;

use super::forest::CHANCES;
use super::is_little;

/// Bytes of an article.
const LEAST_BYTES: u64 = 200;
/// 1,024ths: lines of a smaller chance are left out,
const STRICT: u16 = 666;
/// if those that stay make so many percent of the bytes: else the page is no article to the model.
const LEAST_LEFT: u64 = 80;
/// Comments come after so many bytes of lines that are `LONG`, and are at most seven eighths of the whole: else they
/// are what the page is about, or its body has the class.
const LEAST_ABOVE: u64 = 400;
const LONG: u32 = 80;
/// Bit of `Box::context`.
const FORM_CONTEXT: u16 = {
    let mut at = 0;
    while CONTEXTS[at] != FORM {
        at += 1;
    }
    1 << at
};

/// Whether a page is no article although it says so, as shops and lists of blogs do: it has next to no text. O(lines).
pub fn is_none(found: &[u8], lines: &[Line], least: usize) -> bool {
    let taken = found.iter().zip(lines).filter(|(entry, _)| usize::from(**entry) >= least);
    taken.map(|(_, line)| u64::from(line.len)).sum::<u64>() < LEAST_BYTES && is_little(found, lines, least)
}

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

/// Leave out captions, and comments below the text; the lines of these comments. O(lines + boxes).
pub fn leave_out(kept: &mut Vec<u32>, lines: &[Line], boxes: &[Box]) -> Vec<u32> {
    let mut comments = Vec::new();
    if boxes.iter().any(|one| one.own & COMMENT != 0) {
        let apart = below_text(kept, lines, &outermost(boxes));
        let bytes = |lines_of: &mut dyn Iterator<Item = u32>| -> u64 {
            lines_of.map(|at| u64::from(lines[at as usize].len)).sum()
        };
        let all = bytes(&mut kept.iter().copied());
        let left = bytes(&mut kept.iter().copied().filter(|at| !apart[*at as usize]));
        if 8 * (all - left) <= 7 * all {
            kept.retain(|at| !apart[*at as usize]);
            let is_comment = |at: &u32| apart[*at as usize] && is_said(&lines[*at as usize], boxes);
            comments = (0..lines.len() as u32).filter(is_comment).collect();
        }
    }
    kept.retain(|at| lines[*at as usize].tag as u8 != FIGCAPTION);
    comments
}

/// For each box the outermost box of comments around it, 0 for none.
fn outermost(boxes: &[Box]) -> Vec<u32> {
    let mut outer = vec![0u32; boxes.len()];
    for at in 1..boxes.len() {
        let above = outer[boxes[at].parent as usize];
        outer[at] = if above == 0 && boxes[at].own & COMMENT != 0 { at as u32 } else { above };
    }
    outer
}

/// For each line whether it is in a box of comments that comes after enough text.
fn below_text(kept: &[u32], lines: &[Line], outer: &[u32]) -> Vec<bool> {
    let mut is_kept = vec![false; lines.len()];
    kept.iter().for_each(|at| is_kept[*at as usize] = true);
    // The box that the last line stood in, and whether it goes.
    let (mut above, mut last, mut goes) = (0u64, 0, false);
    let mut apart = Vec::with_capacity(lines.len());
    for (line, kept) in lines.iter().zip(is_kept) {
        let mine = outer[line.place as usize];
        if mine != last {
            (last, goes) = (mine, mine > 0 && above >= LEAST_ABOVE);
        }
        apart.push(goes);
        above += if kept && mine == 0 && line.len >= LONG { u64::from(line.len) } else { 0 };
    }
    apart
}

/// Whether a line of a box of comments is what a reader wrote or their name, and no link, button or form.
fn is_said(line: &Line, boxes: &[Box]) -> bool {
    let stand = &boxes[line.place as usize];
    2 * line.link <= line.len && line.inner != BUTTON && stand.context & FORM_CONTEXT == 0
}
