//! Which blocks are main text: those with lines of it, tables and code as a whole, headings of selected blocks.
//!
//! Each line of the main text is matched as often as it occurs there. O(lines).

use std::collections::HashMap;

use super::blocks::{path, Block, Container, ContainerKind, Kind, Line};
use super::chars::collapsed;

/// Tenths of the text of a table that have to be main text for the table to be.
const TABLE_TENTHS: usize = 3;
/// Blocks between code, a table or a picture and the main text before and behind it, at most.
const NEAR: usize = 4;
/// Between two cells of a row in the main text.
const CELLS: &str = " | ";

/// Lines of the main text, and how often each is still to be found.
struct Wanted(HashMap<String, i64, foldhash::fast::RandomState>);

impl Wanted {
    fn new(main_text: &str) -> Self {
        let mut wanted = HashMap::<String, i64, _>::default();
        for line in main_text.split('\n') {
            *wanted.entry(collapsed(line)).or_default() += 1;
        }
        let rows: Vec<String> = wanted.keys().filter(|line| line.contains(CELLS)).cloned().collect();
        for row in rows {
            let count = wanted[&row];
            for cell in row.split(CELLS) {
                *wanted.entry(collapsed(cell)).or_default() += count;
            }
        }
        Wanted(wanted)
    }

    /// Characters of a line that is main text.
    fn consume(&mut self, plain: &str) -> usize {
        match self.0.get_mut(plain) {
            Some(count) if *count > 0 && !plain.is_empty() => {
                *count -= 1;
                plain.chars().count()
            }
            _ => 0,
        }
    }

    fn consume_cell(&mut self, lines: &[Line]) -> usize {
        let found = lines.iter().map(|line| self.consume(&line.plain)).sum();
        if found == 0 && lines.len() > 1 {
            let all: Vec<&str> = lines.iter().map(|line| line.plain.as_str()).collect();
            return self.consume(&all.join(" "));
        }
        found
    }
}

/// Mark the blocks to be written.
pub fn select_blocks(blocks: &mut [Block], containers: &[Container], main_text: &str) {
    let mut wanted = Wanted::new(main_text);
    for block in blocks.iter_mut() {
        match_lines(block, &mut wanted);
    }
    keep_lists(blocks, containers);
    keep_between(blocks);
    keep_headings(blocks);
}

fn match_lines(block: &mut Block, wanted: &mut Wanted) {
    match &block.kind {
        Kind::Table(rows) => {
            let cells = || rows.iter().flatten();
            let whole: usize = cells().flat_map(|cell| &cell.lines).map(|line| line.plain.chars().count()).sum();
            let found: usize = cells().map(|cell| wanted.consume_cell(&cell.lines)).sum();
            block.kept = found > 0 && 10 * found >= TABLE_TENTHS * whole;
        }
        Kind::Text { .. } => {
            // A line without text is a picture between two lines.
            let stays: Vec<bool> =
                block.lines.iter().map(|line| line.plain.is_empty() || wanted.consume(&line.plain) > 0).collect();
            block.kept = block.lines.iter().zip(&stays).any(|(line, stays)| *stays && !line.plain.is_empty());
            if block.kept {
                let mut stays = stays.into_iter();
                block.lines.retain(|_| stays.next().unwrap_or(false));
            }
        }
        _ => {
            let found: usize = block.lines.iter().map(|line| wanted.consume(&line.plain)).sum();
            block.kept = found > 0;
        }
    }
}

/// A list of which half is main text is it as a whole.
fn keep_lists(blocks: &mut [Block], containers: &[Container]) {
    let list_of = |block: &Block| {
        let list = |at: &u32| containers[*at as usize].kind == ContainerKind::List;
        let around = path(containers, block.container).into_iter().find(list)?;
        matches!(block.kind, Kind::Text { .. }).then_some(around as usize)
    };
    // Characters of each list: all, and those of the main text.
    let mut sums = vec![(0, 0); containers.len()];
    for block in blocks.iter() {
        if let Some(list) = list_of(block) {
            let length: usize = block.lines.iter().map(|line| line.plain.chars().count()).sum();
            sums[list].0 += length;
            sums[list].1 += length * usize::from(block.kept);
        }
    }
    for block in blocks.iter_mut() {
        if let Some((whole, found)) = list_of(block).map(|list| sums[list]) {
            block.kept |= whole > 0 && 2 * found >= whole;
        }
    }
}

/// Code, tables and pictures that stand between two blocks of the main text are part of it.
fn keep_between(blocks: &mut [Block]) {
    // Of each block the next one that is kept.
    let mut behind = vec![blocks.len(); blocks.len() + 1];
    for number in (0..blocks.len()).rev() {
        behind[number] = if blocks[number].kept { number } else { behind[number + 1] };
    }
    let mut before: Option<usize> = None;
    for number in 0..blocks.len() {
        let block = &blocks[number];
        let picture = matches!(block.kind, Kind::Text { .. }) && block.lines.iter().all(|line| line.plain.is_empty());
        let next = behind[number];
        if block.kept {
            before = Some(number);
        } else if next < blocks.len() && (picture || matches!(block.kind, Kind::Code { .. } | Kind::Table(_))) {
            let near = before.is_some_and(|before| number - before <= NEAR);
            let captioned = picture && matches!(blocks[next].kind, Kind::Text { caption: true });
            let kept = next - number <= NEAR && (near || captioned);
            blocks[number].kept = kept;
            if kept && !picture {
                before = Some(number);
            }
        }
    }
}

/// The headings right above what is kept are kept, however short they are.
fn keep_headings(blocks: &mut [Block]) {
    let mut kept = false;
    for block in blocks.iter_mut().rev() {
        block.kept |= kept && matches!(block.kind, Kind::Heading(_));
        kept = block.kept;
    }
}
