//! The reader of the page threads: what the parser needs of an HTML body, made before Python sees it.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use nephila_fetch::exchange::Response;
use nephila_fetch::media;
use nephila_fetch::pages::{PageReader, Reading};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ring::digest::{digest, Digest, SHA256};

use crate::encoding;
use crate::pass::{read_page, PagePass};
use crate::urls_py::document_of;

/// Media types that the parser reads by the page pass, as `body_kind.py`.
const HTML: [&str; 3] = ["text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"];

/// Bounds of the page pass, as in ParserConfig.
#[derive(FromPyObject)]
pub struct PageOptions {
    max_inline_bytes: usize,
    max_links: usize,
    max_text_bytes: usize,
    robots_agent: String,
}

/// What a page thread has made of one body.
pub struct PageReading {
    url: String,
    charset: String,
    encoding: String,
    sha256: Digest,
    found: Option<PagePass>,
}

impl PageReader for PageOptions {
    fn wants(&self, response: &Response) -> bool {
        let kind = media::essence(response.head.get("content-type").unwrap_or(""));
        response.head.status < 300 && response.body.len() <= self.max_inline_bytes && HTML.contains(&&*kind)
    }

    fn read(&self, url: &str, response: &Response) -> Option<Reading> {
        let body = &response.body;
        let charset = media::charset(response.head.get("content-type").unwrap_or(""));
        let encoding = encoding::sniff(body, (!charset.is_empty()).then_some(&charset));
        let sha256 = digest(&SHA256, body);
        let pass = || {
            let document = document_of(url).filter(|_| !encoding.is_empty())?;
            read_page(body, document, &encoding, self.max_links, self.max_text_bytes, true, &self.robots_agent).ok()
        };
        // A page whose pass fails is read again by the parser, which reports it.
        let found = catch_unwind(AssertUnwindSafe(pass)).unwrap_or_default();
        Some(Box::new(PageReading { url: url.to_owned(), charset, encoding, sha256, found }))
    }
}

/// A body that a page thread has read, with what the reading depends on.
#[pyclass(module = "nephila.native._core", frozen)]
pub struct ReadPage {
    /// The body, the same object as in its response.
    #[pyo3(get)]
    body: Py<PyBytes>,
    /// The base of its links.
    #[pyo3(get)]
    url: String,
    /// Of Content-Type.
    #[pyo3(get)]
    charset: String,
    /// As `sniff_encoding`.
    #[pyo3(get)]
    encoding: String,
    sha256: Digest,
    found: Mutex<Option<PagePass>>,
}

impl ReadPage {
    pub fn new(reading: PageReading, body: Py<PyBytes>) -> ReadPage {
        let PageReading { url, charset, encoding, sha256, found } = reading;
        ReadPage { body, url, charset, encoding, sha256, found: Mutex::new(found) }
    }
}

#[pymethods]
impl ReadPage {
    /// SHA-256 of the body.
    #[getter]
    fn sha256<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.sha256.as_ref())
    }

    /// The page pass with `encoding`; None at a second call, and where it failed or the encoding is unknown.
    fn take(&self) -> Option<PagePass> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
