//! Which blocks are main text: those with lines of it, tables and code as a whole, headings of selected blocks. O(lines).

use super::blocks::{path, Block, Container, ContainerKind, Kind, Line, NONE};

/// Tenths of the text of a table that have to be main text for the table to be.
const TABLE_TENTHS: u32 = 3;
/// Blocks between code, a table or a picture and the main text before and behind it, at most.
const NEAR: usize = 4;

/// Mark the blocks to be written. `main`: of each line of the page pass whether it is main text.
pub fn select_blocks(blocks: &mut [Block], containers: &[Container], main: &[bool]) {
    for block in blocks.iter_mut() {
        match_lines(block, main);
    }
    keep_lists(blocks, containers);
    keep_between(blocks);
    keep_headings(blocks);
}

fn match_lines(block: &mut Block, main: &[bool]) {
    let is_main = |line: &Line| line.number != NONE && main.get(line.number as usize).is_some_and(|main| *main);
    match &block.kind {
        Kind::Table(rows) => {
            let lines = || rows.iter().flatten().flat_map(|cell| &cell.lines);
            let whole: u32 = lines().map(|line| line.size).sum();
            let found: u32 = lines().filter(|line| is_main(line)).map(|line| line.size).sum();
            block.kept = found > 0 && 10 * found >= TABLE_TENTHS * whole;
        }
        Kind::Text { .. } => {
            block.kept = block.lines.iter().any(is_main);
            if block.kept {
                // A line without text is a picture between two lines.
                block.lines.retain(|line| line.size == 0 || is_main(line));
            }
        }
        _ => block.kept = block.lines.iter().any(is_main),
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
            let length: u32 = block.lines.iter().map(|line| line.size).sum();
            sums[list].0 += length;
            sums[list].1 += length * u32::from(block.kept);
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
        let picture = matches!(block.kind, Kind::Text { .. }) && block.lines.iter().all(|line| line.size == 0);
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
