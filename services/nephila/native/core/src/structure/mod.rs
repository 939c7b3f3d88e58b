//! The structure of a page: title, headings, paragraphs, lists, quotes, code and tables of its main text, with links.
//!
//! outline.rs writes the events of the page pass, read.rs cuts them into blocks, choose.rs selects those of the main
//! text, code.rs makes the bytes that are stored with the row. What is derived from it: ../markdown, json.rs. Invariants:
//! no recursion and no tree; O(bytes of the page).

pub mod attributes;
pub mod blocks;
mod choose;
mod code;
pub mod json;
pub mod outline;
mod pieces;
mod read;

pub use code::{decode, encode};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::text::Line;
use crate::tags::F_TOOL;
use blocks::{Block, Kind, Structure};
use outline::Outline;

/// The bytes of the structure of a page that the page pass has read, beside its main text. Empty without blocks.
///
/// `main`: the numbers of the lines of the main text; all lines where it has none.
pub fn of_page(outline: &Outline<'_>, text: &[u8], lines: &[Line], main: &[u32], stored: &[u8], base: &str) -> Vec<u8> {
    let mut reader = read::Reader::new(outline, text, lines);
    reader.read();
    let mut is_main = vec![main.is_empty(); lines.len()];
    for at in main {
        is_main[*at as usize] = true;
    }
    reader.blocks.retain(|block| !is_tool(block, lines));
    choose::select_blocks(&mut reader.blocks, &reader.containers, &is_main);
    if !reader.blocks.iter().any(|block| block.kept) {
        return Vec::new();
    }
    let found = Structure {
        text,
        pool: reader.pool,
        items: reader.pieces.items,
        containers: reader.containers,
        blocks: reader.blocks,
    };
    code::encode(&found, base, stored)
}

/// Whether a block stands in a bar or tool around the content.
fn is_tool(block: &Block, lines: &[Line]) -> bool {
    let first = match &block.kind {
        Kind::Table(rows) => rows.iter().flatten().flat_map(|cell| &cell.lines).next(),
        _ => block.lines.first(),
    };
    first.and_then(|line| lines.get(line.number as usize)).is_some_and(|line| line.flags & F_TOOL != 0)
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
