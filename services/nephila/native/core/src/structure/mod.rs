//! The structure of a page: title, headings, paragraphs, lists, quotes, code and tables of its main text, with links.
//!
//! outline.rs writes the events of the page pass, read.rs cuts them into blocks, choose.rs selects those of the main
//! text, code.rs makes the bytes that are stored with the row. What is derived from it: ../markdown, json.rs. Invariants:
//! no recursion and no tree; O(bytes of the page).

pub mod attributes;
pub mod blocks;
mod choose;
mod code;
pub mod event;
mod notes;
pub mod outline;
mod pieces;
mod read;
mod room;

pub use code::{decode, encode};
pub use room::KEPT;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::tags::F_TOOL;
use crate::text::Line;
use blocks::{part, Block, Cell, Kind, Range, Structure};
use outline::Outline;
pub use room::Room;

/// The bytes of the structure of a page that the page pass has read, beside its main text. Empty without blocks.
///
/// `main`: the numbers of the lines of the main text; all lines where it has none.
pub fn of_page(
    mut outline: Outline<'_>,
    text: &[u8],
    lines: &[Line],
    main: &[u32],
    stored: &[u8],
    base: &str,
) -> Vec<u8> {
    let room = std::mem::take(&mut outline.room);
    let mut reader = read::Reader::new(&outline, text, lines, room);
    reader.read();
    let mut is_main = vec![main.is_empty(); lines.len()];
    for at in main {
        is_main[*at as usize] = true;
    }
    leave_out_tools(&mut reader, lines);
    reader.find_loose_notes();
    choose::select_blocks(choose::Choice {
        blocks: &mut reader.blocks,
        lines: &mut reader.pieces.lines,
        cells: &reader.cells,
        rows: &reader.rows,
        containers: &reader.containers,
        main: &is_main,
    });
    reader.refer();
    let read::Reader { pool, pieces, cells, rows, containers, blocks, .. } = reader;
    let found = Structure { text, pool, items: pieces.items, lines: pieces.lines, cells, rows, containers, blocks };
    let is_empty = !found.blocks.iter().any(|block| block.kept);
    let bytes = if is_empty { Vec::new() } else { code::encode(&found, base, stored) };
    let Structure { pool, items, lines, cells, rows, containers, blocks, .. } = found;
    let Outline { events, attrs, .. } = outline;
    Room { events, attrs, pool, items, lines, cells, rows, containers, blocks }.keep();
    bytes
}

/// Blocks that stand in a bar or tool around the content, by their first line, are none.
fn leave_out_tools(reader: &mut read::Reader<'_, '_>, lines: &[Line]) {
    let (own, cells, rows) = (&reader.pieces.lines, &reader.cells, &reader.rows);
    let first = |block: &Block| match block.kind {
        Kind::Table(range) => first_of_table(part(rows, range), cells),
        Kind::Rule => None,
        _ => Some(block.lines.0),
    };
    let is_tool = |line: &blocks::Line| lines.get(line.number as usize).is_some_and(|line| line.flags & F_TOOL != 0);
    reader.blocks.retain(|block| !first(block).is_some_and(|at| is_tool(&own[at as usize])));
}

fn first_of_table(rows: &[Range], cells: &[Cell]) -> Option<u32> {
    let mut cells = rows.iter().flat_map(|row| part(cells, *row));
    cells.find(|cell| cell.lines.0 < cell.lines.1).map(|cell| cell.lines.0)
}

/// A structure beside another text than the one that it was made for: the text of a row may be that of another method.
/// Empty for what is no structure of `text`. O(bytes).
#[pyfunction]
pub fn recoded<'py>(py: Python<'py>, structure: &[u8], text: &[u8], stored: &[u8]) -> Bound<'py, PyBytes> {
    let work = || {
        let (found, base) = decode(structure, std::str::from_utf8(text).ok()?)?;
        Some(encode(&found, &base, stored))
    };
    PyBytes::new(py, &py.detach(work).unwrap_or_default())
}
