//! Packed links (layout: ../../README.md) from lines of text that are plain URLs. A line that asks for more than a parser
//! (a host name, a fragment, credentials, a character beyond ASCII, an error) is left to Python.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::urls::{self, Base};

/// Bytes of a URL as written and as its href, as for a link on a page.
const LONGEST: usize = 8192;
/// Links of one call.
const MOST: usize = 1000;

/// Whether a line is empty or a comment.
fn is_void(line: &[u8]) -> bool {
    line.is_empty() || line[0] == b'#'
}

/// The text of a line that is a plain URL.
fn plain(line: &[u8]) -> Option<&str> {
    let scheme = |name: &str| line.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name.as_bytes()));
    let is_plain = line.len() <= LONGEST
        && (scheme("http://") || scheme("https://"))
        && line.iter().all(|byte| matches!(byte, 0x21..=0x7E) && !matches!(byte, b'#' | b'@' | b'\\'));
    is_plain.then(|| std::str::from_utf8(line).ok()).flatten()
}

#[derive(Default)]
struct Packed {
    keys: Vec<u8>,
    urls: Vec<u8>,
    ends: Vec<u8>,
    spans: Vec<u8>,
    seen: HashSet<[u8; 16], RandomState>,
}

impl Packed {
    /// Add a URL, unless it is there; false where it is none.
    fn add(&mut self, base: &Base, url: &str) -> bool {
        let from = self.urls.len();
        let parts = match urls::resolve(base, url, &mut self.urls) {
            Ok(parts) if self.urls.len() - from <= LONGEST => parts,
            _ => {
                self.urls.truncate(from);
                return false;
            }
        };
        let (first, last) = (from + parts.host.0 as usize, from + parts.host.1 as usize);
        let mut canonical = Vec::new();
        let changed = urls::canonicalise(&self.urls[from..], parts, &mut canonical);
        let canonical = if changed { &canonical[..] } else { &self.urls[from..] };
        let key = urls::fingerprint(&self.urls[first..last], canonical);
        if !self.seen.insert(key) {
            self.urls.truncate(from);
            return true;
        }
        self.keys.extend_from_slice(&key);
        self.ends.extend_from_slice(&(self.urls.len() as u32).to_le_bytes());
        for place in [first, last] {
            self.spans.extend_from_slice(&(place as u32).to_le_bytes());
        }
        true
    }
}

/// (fingerprints, urls, url_ends, host_spans, lines, end, odd) of the lines from `start` on, each link once: up to a
/// thousand links, or a thousand lines that are no plain URLs. `odd` has of each of those its number, from 0, and its
/// first and last place; `end` is where the next line begins, `lines` how many are before it. O(bytes).
#[pyfunction]
pub fn seed_links<'py>(py: Python<'py>, text: &[u8], start: usize) -> PyResult<Bound<'py, PyTuple>> {
    let (packed, odd, lines, end) = py.detach(|| {
        let (mut packed, mut odd) = (Packed::default(), Vec::new());
        let (mut lines, mut at) = (0usize, start);
        let base = url::Url::parse("http://localhost/").ok().map(|url| Base::new(url, None));
        while let (Some(base), true) = (&base, at < text.len() && packed.ends.len() < 4 * MOST && odd.len() < MOST) {
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length + 1);
            let line = text[at..end].trim_ascii();
            if !is_void(line) && !plain(line).is_some_and(|url| packed.add(base, url)) {
                odd.push((lines, at, end));
            }
            (lines, at) = (lines + 1, end);
        }
        (packed, odd, lines, at)
    });
    let columns = [packed.keys, packed.urls, packed.ends, packed.spans].map(|column| PyBytes::new(py, &column));
    let [keys, urls, ends, spans] = columns;
    (keys, urls, ends, spans, lines, end, odd).into_pyobject(py)
}
