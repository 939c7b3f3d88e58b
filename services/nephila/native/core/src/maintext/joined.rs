//! Main text as it is stored: a line each, the cells of a table row in one line, empty lines of code kept.

use crate::tags::F_PRE;
use crate::text::Line;

use super::blocks::Place;

/// Between two cells.
const BAR: &[u8] = b" | ";
/// A cell of more lines is a text of its own: its row is not one line.
const MOST_LINES: usize = 8;

/// The lines of `text` that are named, one below the other. O(bytes + cells).
pub fn joined(text: &[u8], lines: &[Line], named: &[u32], places: &[Place]) -> Vec<u8> {
    let bytes: usize = named.iter().map(|at| lines[*at as usize].len as usize + 1).sum();
    let mut out = Vec::with_capacity(bytes + bytes / 8);
    let place = |at: u32| places[lines[at as usize].place as usize];
    let mut rest = named;
    while let Some(first) = rest.first() {
        let row = place(*first).row;
        let end = rest.iter().position(|at| row == 0 || place(*at).row != row).unwrap_or(rest.len()).max(1);
        let (these, others) = rest.split_at(end);
        let one_line = row > 0 && places[row as usize].cells > 1 && is_short(these, &place);
        let mut cell = 0;
        for (number, at) in these.iter().enumerate() {
            let line = &lines[*at as usize];
            if one_line {
                separate_cells(&mut out, number, cell, place(*at).cell);
                cell = place(*at).cell;
            } else {
                separate_lines(&mut out, line, *at > 0 && follows(lines, *at));
            }
            out.extend_from_slice(&text[line.start as usize..(line.start + line.len) as usize]);
        }
        rest = others;
    }
    out
}

/// Whether no cell of the row has too many lines.
fn is_short(row: &[u32], place: &impl Fn(u32) -> Place) -> bool {
    row.windows(MOST_LINES + 1).all(|some| place(some[0]).cell != place(some[MOST_LINES]).cell)
}

/// Whether a line and the one before it are both preformatted.
fn follows(lines: &[Line], at: u32) -> bool {
    (lines[at as usize - 1].flags & lines[at as usize].flags) & F_PRE != 0
}

fn separate_lines(out: &mut Vec<u8>, line: &Line, in_code: bool) {
    if !out.is_empty() {
        out.push(b'\n');
        if in_code {
            out.extend(std::iter::repeat_n(b'\n', usize::from(line.blank)));
        }
    }
}

/// An empty cell leaves its bar; the lines of one cell are a space apart.
fn separate_cells(out: &mut Vec<u8>, number: usize, before: u32, cell: u32) {
    if number == 0 && !out.is_empty() {
        out.push(b'\n');
    }
    for bar in before..cell {
        // No line begins with a space.
        out.extend_from_slice(if number == 0 && bar == before { &BAR[1..] } else { BAR });
    }
    if number > 0 && before == cell {
        out.push(b' ');
    }
}
