//! Which blocks are main text: those with lines of it, tables and code as a whole, headings of selected blocks. O(lines).

use super::blocks::{part, Block, Cell, Container, ContainerKind, Kind, Line, Range, NONE};

/// Tenths of the text of a table that have to be main text for the table to be.
const TABLE_TENTHS: u32 = 3;
/// Blocks between code, a table or a picture and the main text before and behind it, at most.
const NEAR: usize = 4;

/// Blocks and what their ranges are of.
pub struct Choice<'r> {
    pub blocks: &'r mut [Block],
    pub lines: &'r mut [Line],
    pub cells: &'r [Cell],
    pub rows: &'r [Range],
    pub containers: &'r [Container],
    /// Of each line of the page pass whether it is main text.
    pub main: &'r [bool],
}

/// Mark the blocks to be written.
pub fn select_blocks(choice: Choice<'_>) {
    let Choice { blocks, lines, cells, rows, containers, main } = choice;
    for block in blocks.iter_mut() {
        match block.kind {
            Kind::Table(own) => {
                let own = part(rows, own).iter().flat_map(|row| part(cells, *row));
                block.kept = is_main_table(own.flat_map(|cell| part(lines, cell.lines)), main);
            }
            _ => match_lines(block, lines, main),
        }
    }
    keep_lists(blocks, lines, containers);
    keep_between(blocks, lines);
    keep_headings(blocks);
    if containers.iter().any(|container| container.kind == ContainerKind::Note) {
        keep_notes(blocks, containers);
    }
    keep_rules(blocks);
}

/// The texts of notes, where something is kept that may refer to them.
fn keep_notes(blocks: &mut [Block], containers: &[Container]) {
    let Some(first) = blocks.iter().position(|block| block.kept) else { return };
    for block in &mut blocks[first..] {
        let mut at = block.container;
        while at != NONE && !block.kept {
            block.kept = containers[at as usize].kind == ContainerKind::Note;
            at = containers[at as usize].parent;
        }
    }
}

fn is_main(line: &Line, main: &[bool]) -> bool {
    line.number != NONE && main.get(line.number as usize).is_some_and(|main| *main)
}

fn is_main_table<'l>(lines: impl Iterator<Item = &'l Line>, main: &[bool]) -> bool {
    let (mut whole, mut found) = (0, 0);
    for line in lines {
        whole += line.size;
        found += if is_main(line, main) { line.size } else { 0 };
    }
    found > 0 && 10 * found >= TABLE_TENTHS * whole
}

fn match_lines(block: &mut Block, lines: &mut [Line], main: &[bool]) {
    let own = &mut lines[block.lines.0 as usize..block.lines.1 as usize];
    block.kept = own.iter().any(|line| is_main(line, main));
    if block.kept && matches!(block.kind, Kind::Text { .. }) {
        let mut count = 0;
        for at in 0..own.len() {
            // A line without text is a picture between two lines.
            if own[at].size == 0 || is_main(&own[at], main) {
                own[count] = own[at];
                count += 1;
            }
        }
        block.lines.1 = block.lines.0 + count as u32;
    }
}

/// Of each container the outermost list around it, itself included.
fn outermost_lists(containers: &[Container]) -> Vec<u32> {
    let mut found = Vec::with_capacity(containers.len());
    for (at, one) in containers.iter().enumerate() {
        let above = if one.parent == NONE { NONE } else { found[one.parent as usize] };
        let is_first = above == NONE && one.kind == ContainerKind::List;
        found.push(if is_first { at as u32 } else { above });
    }
    found
}

/// A list of which half is main text is it as a whole.
fn keep_lists(blocks: &mut [Block], lines: &[Line], containers: &[Container]) {
    if containers.is_empty() {
        return;
    }
    let lists = outermost_lists(containers);
    let list_of = |block: &Block| {
        let list = *lists.get(block.container as usize)?;
        (list != NONE && matches!(block.kind, Kind::Text { .. })).then_some(list as usize)
    };
    // Characters of each list: all, and those of the main text.
    let mut sums = vec![(0, 0); containers.len()];
    for block in blocks.iter() {
        if let Some(list) = list_of(block) {
            let length: u32 = part(lines, block.lines).iter().map(|line| line.size).sum();
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
fn keep_between(blocks: &mut [Block], lines: &[Line]) {
    let mut before: Option<usize> = None;
    // The first block from `number` that is kept; found when it is asked for.
    let mut next = 0;
    for number in 0..blocks.len() {
        let block = &blocks[number];
        if block.kept {
            before = Some(number);
            continue;
        }
        let picture =
            matches!(block.kind, Kind::Text { .. }) && part(lines, block.lines).iter().all(|line| line.size == 0);
        if !picture && !matches!(block.kind, Kind::Code { .. } | Kind::Table(_)) {
            continue;
        }
        if next <= number {
            let behind = blocks[number..].iter().position(|block| block.kept);
            next = behind.map_or(blocks.len(), |behind| number + behind);
        }
        if next == blocks.len() {
            return;
        }
        let near = before.is_some_and(|before| number - before <= NEAR);
        let captioned = picture && matches!(blocks[next].kind, Kind::Text { caption: true });
        let kept = next - number <= NEAR && (near || captioned);
        blocks[number].kept = kept;
        if kept && !picture {
            before = Some(number);
        }
    }
}

/// The headings right above what is kept are kept, however short they are.
fn keep_headings(blocks: &mut [Block]) {
    let mut kept = false;
    for block in blocks.iter_mut().rev().filter(|block| !matches!(block.kind, Kind::Rule)) {
        block.kept |= kept && matches!(block.kind, Kind::Heading(_));
        kept = block.kept;
    }
}

/// A rule between two blocks that are kept; the first of several.
fn keep_rules(blocks: &mut [Block]) {
    let mut before = false;
    for at in 0..blocks.len() {
        if matches!(blocks[at].kind, Kind::Rule) {
            let is_rule = |block: &&Block| matches!(block.kind, Kind::Rule);
            let mut behind = blocks[at..].iter().skip_while(is_rule);
            blocks[at].kept = std::mem::take(&mut before) && behind.next().is_some_and(|block| block.kept);
        } else {
            before = blocks[at].kept;
        }
    }
}
