//! Some of the packed links of a message (layout: ../../README.md).

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// Bytes of a fingerprint, a number and a date.
const KEY: usize = 16;
const NUMBER: usize = 4;
const DATE: usize = 8;

/// The numbers of a packed column; None where it has not `count` of them.
fn numbers(data: &[u8], count: usize) -> Option<Vec<u32>> {
    let one = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).unwrap_or_default();
    (data.len() == NUMBER * count).then(|| data.chunks_exact(NUMBER).map(one).collect())
}

/// The values of `keep` from a column of values of `width` bytes; None where the column has not `count` of them. An
/// empty one may be left out.
fn columns(data: &[u8], width: usize, count: usize, keep: &[usize]) -> Option<Vec<u8>> {
    let values = || keep.iter().flat_map(|at| &data[at * width..(at + 1) * width]).copied().collect();
    (data.len() == width * count).then(values).or_else(|| data.is_empty().then(Vec::new))
}

/// The values of `keep` from concatenated values, and their ends; None where an end is outside. Both may be left out.
fn texts(data: &[u8], ends: &[u8], count: usize, keep: &[usize]) -> Option<(Vec<u8>, Vec<u8>)> {
    if ends.is_empty() && data.is_empty() {
        return Some((Vec::new(), Vec::new()));
    }
    let ends = &numbers(ends, count)?;
    let (mut kept, mut kept_ends) = (Vec::new(), Vec::with_capacity(NUMBER * keep.len()));
    for &at in keep {
        kept.extend_from_slice(data.get(start(ends, at) as usize..ends[at] as usize)?);
        kept_ends.extend_from_slice(&u32::try_from(kept.len()).ok()?.to_le_bytes());
    }
    Some((kept, kept_ends))
}

fn start(ends: &[u32], at: usize) -> u32 {
    at.checked_sub(1).map_or(0, |before| ends[before])
}

/// The places of hosts in the URLs of `keep`.
fn hosts(spans: &[u32], ends: &[u32], keep: &[usize]) -> Vec<u8> {
    let (mut end, mut kept) = (0u32, Vec::with_capacity(2 * NUMBER * keep.len()));
    for &at in keep {
        let first = start(ends, at);
        for place in &spans[2 * at..2 * at + 2] {
            kept.extend_from_slice(&place.wrapping_sub(first).wrapping_add(end).to_le_bytes());
        }
        end = end.wrapping_add(ends[at].wrapping_sub(first));
    }
    kept
}

/// (fingerprints, urls, url_ends, host_spans, anchors, anchor_ends, flags, lastmods, priorities) of the links at these
/// rising indices. Empty columns behind the places of hosts stay empty. ValueError for columns that do not fit together
/// and for an index beyond them. O(chosen).
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn links_at<'py>(
    py: Python<'py>,
    chosen: Vec<usize>,
    fingerprints: &[u8],
    urls: &[u8],
    url_ends: &[u8],
    host_spans: &[u8],
    anchors: &[u8],
    anchor_ends: &[u8],
    flags: &[u8],
    lastmods: &[u8],
    priorities: &[u8],
) -> PyResult<Bound<'py, PyTuple>> {
    let (count, keep) = (fingerprints.len() / KEY, &chosen[..]);
    let work = || {
        if keep.iter().any(|at| *at >= count) {
            return None;
        }
        let (ends, spans) = (numbers(url_ends, count)?, numbers(host_spans, 2 * count)?);
        let (urls, url_ends) = texts(urls, url_ends, count, keep)?;
        let (anchors, anchor_ends) = texts(anchors, anchor_ends, count, keep)?;
        Some([
            columns(fingerprints, KEY, count, keep)?,
            urls,
            url_ends,
            hosts(&spans, &ends, keep),
            anchors,
            anchor_ends,
            columns(flags, 1, count, keep)?,
            columns(lastmods, DATE, count, keep)?,
            columns(priorities, 1, count, keep)?,
        ])
    };
    let kept = work().ok_or_else(|| PyValueError::new_err("columns of links that do not fit together"))?;
    PyTuple::new(py, kept.map(|column| PyBytes::new(py, &column)))
}
