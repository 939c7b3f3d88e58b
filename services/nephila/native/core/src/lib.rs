//! The native core of Nephila: page pass, URL identity, encoding sniffing, MD5 trie, host store. Layouts:
//! ../../README.md.
//!
//! Invariant: safe Rust only (vector code is in the crate nephila-wide, wide/); host keys, canonical URLs and
//! fingerprints equal those of the fallback (../../fallback).

#![forbid(unsafe_code)]

mod boilerplate;
mod boxes;
mod dateline;
mod encoding;
mod entities;
mod formulas;
mod hidden;
mod hosts;
#[cfg(unix)]
mod http_client;
mod json_ld;
mod keywords;
mod link_buffers;
mod linked_hosts;
mod links;
mod maintext;
mod markdown;
mod mathml;
mod meta;
mod microdata;
mod near_copies;
mod page;
pub mod page_check;
#[cfg(unix)]
mod page_reader;
mod pass;
mod pattern_filter;
mod preformatted;
mod robots;
mod search;
mod seed_lines;
mod simhash;
mod spaces;
mod spelling;
mod stack;
mod structure;
mod tags;
mod text;
mod tokenizer;
mod tokens;
mod tree;
mod trie;
mod urls;
mod values;
mod urls_py;
mod whatwg;
mod words;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Encoding of a body by BOM, header label, meta prescan or its bytes; "" if unknown. O(n).
#[pyfunction]
#[pyo3(signature = (body, header_charset=None))]
fn sniff_encoding(py: Python<'_>, body: &[u8], header_charset: Option<&str>) -> String {
    py.detach(|| encoding::sniff(body, header_charset))
}

/// UTF-8 of a body; ValueError for an unknown label. "" = windows-1252. O(n).
#[pyfunction]
fn to_utf8<'py>(py: Python<'py>, body: &[u8], encoding: &str) -> PyResult<Bound<'py, PyBytes>> {
    let data = py
        .detach(|| encoding::to_utf8(body, encoding))
        .ok_or_else(|| PyValueError::new_err(format!("unknown encoding '{encoding}'")))?;
    Ok(PyBytes::new(py, &data))
}

/// Whether bytes are UTF-8 without NUL: what every database takes as a text. O(n), some ten bytes a nanosecond.
#[pyfunction]
fn is_storable(data: &[u8]) -> bool {
    memchr::memchr(0, data).is_none() && simdutf8::basic::from_utf8(data).is_ok()
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("TAGS", tags::NAMES.to_vec())?;
    module.add("MODEL_FEATURES", maintext::FEATURES.to_vec())?;
    module.add("UrlError", module.py().get_type::<urls_py::UrlError>())?;
    module.add_class::<urls_py::UrlParts>()?;
    module.add_class::<pass::PagePass>()?;
    module.add_class::<near_copies::NearCopyIndex>()?;
    module.add_function(wrap_pyfunction!(near_copies::simhash, module)?)?;
    module.add_class::<trie::Trie>()?;
    module.add_class::<hosts::HostStore>()?;
    #[cfg(unix)]
    module.add_class::<http_client::HttpClient>()?;
    #[cfg(unix)]
    module.add_class::<http_client::EndedFetch>()?;
    #[cfg(unix)]
    module.add_class::<page_reader::ReadPage>()?;
    module.add_class::<hosts::LinkScope>()?;
    module.add_class::<keywords::KeywordSet>()?;
    module.add_class::<robots::RobotsRules>()?;
    module.add_function(wrap_pyfunction!(robots::robots_sitemaps, module)?)?;
    module.add_function(wrap_pyfunction!(robots::robots_rule, module)?)?;
    module.add_function(wrap_pyfunction!(urls_py::parse_url, module)?)?;
    module.add_function(wrap_pyfunction!(urls_py::parse_any, module)?)?;
    module.add_function(wrap_pyfunction!(sniff_encoding, module)?)?;
    module.add_function(wrap_pyfunction!(to_utf8, module)?)?;
    module.add_function(wrap_pyfunction!(urls_py::query_in, module)?)?;
    module.add_function(wrap_pyfunction!(urls_py::form_encoded, module)?)?;
    module.add_function(wrap_pyfunction!(is_storable, module)?)?;
    module.add_function(wrap_pyfunction!(link_buffers::links_at, module)?)?;
    module.add_function(wrap_pyfunction!(seed_lines::seed_links, module)?)?;
    module.add_function(wrap_pyfunction!(urls_py::host_digests, module)?)?;
    module.add_class::<linked_hosts::LinkedHosts>()?;
    module.add_class::<pattern_filter::PatternFilter>()?;
    module.add_function(wrap_pyfunction!(spaces::is_tidy, module)?)?;
    module.add_function(wrap_pyfunction!(spaces::trimmed, module)?)?;
    module.add_function(wrap_pyfunction!(spaces::quoted, module)?)?;
    module.add_function(wrap_pyfunction!(spelling::spelled_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(pass::page_pass, module)?)?;
    module.add_function(wrap_pyfunction!(markdown::markdown, module)?)?;
    module.add_function(wrap_pyfunction!(markdown::blocks, module)?)?;
    module.add_function(wrap_pyfunction!(structure::recoded, module)?)?;
    module.add_function(wrap_pyfunction!(structure::attributes::best_of_srcset, module)?)?;
    module.add_function(wrap_pyfunction!(structure::attributes::candidates_of_srcset, module)?)?;
    module.add_function(wrap_pyfunction!(pass::training_table, module)?)?;
    module.add_function(wrap_pyfunction!(pass::structure_by, module)?)?;
    module.add_function(wrap_pyfunction!(pass::main_text_by, module)?)?;
    module.add_function(wrap_pyfunction!(tokens::tokens, module)?)
}
