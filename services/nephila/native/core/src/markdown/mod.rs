//! The structure of a page as Markdown: CommonMark with tables, in one of three styles of links.
//!
//! Invariants: at most `MAX_BYTES` are written; text of a page cannot become Markdown markup; no control characters.

pub mod chars;
mod inline;
mod json;
mod links;
mod write;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::structure::{self, blocks::Structure};
use crate::urls::Base;
use crate::urls_py;

pub use links::Resolver;

/// How links are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LinkStyle {
    /// [text](URL)
    Inline,
    /// [text][1], and the URLs at the end.
    Reference,
    /// Their text alone; no pictures.
    None,
}

fn style_of(name: &str) -> PyResult<LinkStyle> {
    match name {
        "inline" => Ok(LinkStyle::Inline),
        "reference" => Ok(LinkStyle::Reference),
        "none" => Ok(LinkStyle::None),
        _ => Err(PyValueError::new_err(format!("links are inline, reference or none, not {name:?}"))),
    }
}

/// What `write` makes of a structure beside its text; empty for what is no structure of it.
fn derived(
    py: Python<'_>,
    structure: &[u8],
    text: &[u8],
    document: url::Url,
    nowhere: &str,
    write: impl Fn(&Structure<'_>, Resolver<'_>) -> String + Send + Sync,
) -> String {
    let work = || {
        let text = std::str::from_utf8(text).ok()?;
        let (found, base) = structure::decode(structure, text)?;
        let base = Base::new(url::Url::parse(&base).unwrap_or(document), None);
        Some(write(&found, Resolver::new(&base, nowhere)))
    };
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).unwrap_or_default().unwrap_or_default()
}

/// The blocks of a structure beside its text as a JSON list, in UTF-8; "" for what is no structure of it. The GIL is
/// released. O(bytes).
///
/// `url`: of the page, which links are relative to. UrlError for another URL than http(s).
#[pyfunction]
pub fn blocks<'py>(
    py: Python<'py>,
    structure: &[u8],
    text: &[u8],
    url: &Bound<'_, PyString>,
) -> PyResult<Bound<'py, PyBytes>> {
    let document = urls_py::parse_document(url)?;
    let made = derived(py, structure, text, document, "", json::write);
    Ok(PyBytes::new(py, made.as_bytes()))
}

/// Markdown, in UTF-8, of a structure beside its text; empty for what is no structure of it. The GIL is released.
/// O(bytes).
///
/// `url`: of the page, which links are relative to; links below `nowhere` lead nowhere. ValueError for another style,
/// UrlError for another URL than http(s).
#[pyfunction]
#[pyo3(signature = (structure, text, url, links="inline", nowhere=""))]
pub fn markdown<'py>(
    py: Python<'py>,
    structure: &[u8],
    text: &[u8],
    url: &Bound<'_, PyString>,
    links: &str,
    nowhere: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let (style, document) = (style_of(links)?, urls_py::parse_document(url)?);
    let made = derived(py, structure, text, document, nowhere, |found, resolver| write::write(found, resolver, style));
    Ok(PyBytes::new(py, made.as_bytes()))
}
