//! The main text of a page as Markdown: CommonMark with tables.
//!
//! outline.rs makes a list of events of the page, read.rs cuts it into blocks, choose.rs selects those of the main
//! text, write.rs writes them. Invariants: no recursion and no tree; O(bytes), at most `MAX_BYTES` are written; text of
//! a page cannot become Markdown markup; no control characters. The fallback (../../../fallback/markdown) is its model.

mod attributes;
mod blocks;
mod chars;
mod choose;
mod inline;
mod links;
mod outline;
mod read;
mod write;

use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::urls::Base;
use crate::{encoding, urls_py};

fn convert(input: &[u8], lines: &str, base: &Base, nowhere: &str) -> String {
    let outline = outline::Outline::new(input);
    let mut reader = read::Reader::new(&outline, links::Resolver::new(base, nowhere));
    reader.read();
    choose::select_blocks(&mut reader.blocks, &reader.containers, lines);
    write::write(&reader.blocks, &mut reader.containers)
}

/// Markdown, in UTF-8, of the blocks of a page that have the lines of its main text; the GIL is released. O(bytes).
///
/// `lines`: UTF-8, one line each. `base`: URL that links are relative to; links below `nowhere` lead nowhere. Errors as
/// in `page_pass`.
#[pyfunction]
#[pyo3(signature = (body, encoding, lines, base, nowhere=""))]
pub fn markdown<'py>(
    py: Python<'py>,
    body: &[u8],
    encoding: &str,
    lines: &[u8],
    base: &Bound<'_, PyString>,
    nowhere: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let base = Base::new(urls_py::parse_document(base)?);
    let work = || {
        let input = encoding::to_utf8(body, encoding).ok_or(format!("unknown encoding '{encoding}'"))?;
        if input.len() > i32::MAX as usize {
            return Err("page too large".to_owned());
        }
        Ok(convert(&input, &String::from_utf8_lossy(lines), &base, nowhere))
    };
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(found) => Ok(PyBytes::new(py, found.map_err(PyValueError::new_err)?.as_bytes())),
        Err(_) => Err(PyRuntimeError::new_err("the conversion to Markdown failed")),
    }
}

/// The URL of a srcset's largest candidate, the first of equal ones; "" without one. O(length).
#[pyfunction]
pub fn best_of_srcset(srcset: &str) -> &str {
    attributes::best_of_srcset(srcset)
}
