//! Blocks that main text takes or leaves whole: preformatted text, tables of data, and lists; and the rows of tables.
//!
//! Invariant: the lines of one block follow each other. O(lines + boxes).

use crate::boxes::Box;
use crate::tags::*;
use crate::text::Line;

use super::forest::CHANCES;

/// What a box holds, at any depth.
const A_HEADING: u8 = 1;
const A_SECTION: u8 = 2;
const A_TABLE: u8 = 4;
const A_PRE: u8 = 8;
/// A table of data has so many rows and cells; a smaller one is layout.
const LEAST_ROWS: u8 = 2;
const LEAST_CELLS: u8 = 4;

#[derive(Clone, Copy, Default)]
struct Inside {
    holds: u8,
    rows: u8,
    cells: u8,
}

/// Block and row around a box; 0: none.
#[derive(Clone, Copy, Default)]
pub struct Place {
    /// The box that is the block.
    pub block: u32,
    /// The box of the table row, and the number of the cell in it. Only rows of tables of data whose cells hold no
    /// preformatted text.
    pub row: u32,
    pub cell: u32,
    /// Of a row: its cells.
    pub cells: u32,
    is_data: bool,
}

/// A place for each box.
pub fn places(boxes: &[Box]) -> Vec<Place> {
    let mut inside = vec![Inside::default(); boxes.len()];
    for at in (1..boxes.len()).rev() {
        let (mine, tag) = (inside[at], boxes[at].tag);
        let above = &mut inside[boxes[at].parent as usize];
        above.holds |= mine.holds | kind(tag);
        above.rows = above.rows.saturating_add(mine.rows).saturating_add(u8::from(tag == TR));
        above.cells = above.cells.saturating_add(mine.cells).saturating_add(u8::from(matches!(tag, TD | TH)));
    }
    let mut places = vec![Place::default(); boxes.len()];
    for at in 1..boxes.len() {
        let (tag, parent) = (boxes[at].tag, boxes[at].parent as usize);
        let above = places[parent];
        let mut place = Place { cells: 0, ..above };
        match tag {
            TABLE => place.is_data = inside[at].is_data() && inside[at].holds & A_PRE == 0,
            TR if above.is_data => (place.row, place.cell) = (at as u32, 0),
            TD | TH if above.row == parent as u32 && above.row > 0 => {
                place.cell = above.cells;
                places[parent].cells += 1;
            }
            _ => {}
        }
        if place.block == 0 && inside[at].is_block(tag) {
            place.block = at as u32;
        }
        places[at] = place;
    }
    places
}

fn kind(tag: u8) -> u8 {
    match tag {
        H1 | H2 | H3 | H4 | H5 | H6 => A_HEADING,
        ARTICLE | ASIDE | FOOTER | FORM | HEADER | MAIN | NAV | SECTION => A_SECTION,
        TABLE => A_TABLE,
        PRE => A_PRE,
        _ => 0,
    }
}

impl Inside {
    /// Of a table: a table of data, not the layout of a page.
    fn is_data(self) -> bool {
        self.holds & (A_HEADING | A_SECTION | A_TABLE) == 0 && self.rows >= LEAST_ROWS && self.cells >= LEAST_CELLS
    }

    fn is_block(self, tag: u8) -> bool {
        match tag {
            PRE => true,
            TABLE => self.is_data(),
            UL | OL | DL | MENU | DIR => self.holds & (A_HEADING | A_SECTION) == 0,
            _ => false,
        }
    }
}

/// Give all lines of a block one chance: its mean, weighted by bytes; of code and tables, which look like nothing else,
/// that of the text before or after them where it is higher.
pub fn level(found: &mut [u8], lines: &[Line], boxes: &[Box], places: &[Place]) {
    let mut runs = Vec::new();
    let mut at = 0;
    while at < found.len() {
        let end = at + run(&lines[at..found.len()], places);
        let block = places[lines[at].place as usize].block;
        if block > 0 {
            let mean = mean(&found[at..end], &lines[at..end]);
            found[at..end].fill(mean);
        }
        runs.push((at, end, matches!(boxes[block as usize].tag, PRE | TABLE)));
        at = end;
    }
    let lifted = |found: &mut [u8], beside: &mut u8, (at, end, is_odd): (usize, usize, bool)| {
        if is_odd {
            let chance = found[at].max(*beside);
            found[at..end].fill(chance);
        } else {
            *beside = found[at];
        }
    };
    if runs.iter().any(|run| run.2) {
        let (mut before, mut after) = (0, 0);
        let mut above = found.to_vec();
        runs.iter().for_each(|run| lifted(&mut above, &mut before, *run));
        runs.iter().rev().for_each(|run| lifted(found, &mut after, *run));
        found.iter_mut().zip(&above).for_each(|(mine, above)| *mine = (*mine).max(*above));
    }
}

/// The entry of `CHANCES` of the mean chance, weighted by bytes.
fn mean(found: &[u8], lines: &[Line]) -> u8 {
    let (mut bytes, mut sum) = (0, 0);
    for (entry, line) in found.iter().zip(lines) {
        bytes += u64::from(line.len);
        sum += chance(*entry) * u64::from(line.len);
    }
    let mean = sum.div_ceil(bytes.max(1));
    CHANCES.partition_point(|chance| u64::from(*chance) < mean).min(CHANCES.len() - 1) as u8
}

fn chance(entry: u8) -> u64 {
    u64::from(CHANCES[usize::from(entry)])
}

/// How many of the lines belong together with the first: those of its block, or it alone. There is a first one.
pub fn run(lines: &[Line], places: &[Place]) -> usize {
    let block = |line: &Line| places[line.place as usize].block;
    match block(&lines[0]) {
        0 => 1,
        first => lines.iter().position(|line| block(line) != first).unwrap_or(lines.len()),
    }
}
