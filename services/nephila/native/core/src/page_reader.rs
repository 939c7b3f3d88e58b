//! The reader of the page threads: what the parser needs of an HTML body, made before Python sees it.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use nephila_fetch::exchange::Response;
use nephila_fetch::media;
use nephila_fetch::pages::{PageReader, PageRequest, Reading};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ring::digest::{digest, Digest, SHA256};

use crate::encoding;
use crate::pass::{read_page, Options, PagePass};
use crate::urls_py::document_of;

/// Media types that the parser reads by the page pass, as `body_kind.py`.
const HTML: [&str; 3] = ["text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"];

/// Which pages are read, and how, as in ParserConfig.
#[derive(FromPyObject)]
pub struct PageOptions {
    max_inline_bytes: usize,
    pass_options: Options,
}

/// Bytes in which an HTML page shows that it is one: `body_kind.py` looks at as many.
const HEAD_BYTES: usize = 512;
/// How such a page begins, in lower case. No list of links and no file of another format does.
const STARTS: [&[u8]; 4] = [b"<!doctype html", b"<html", b"<head", b"<body"];
/// Bytes that are searched for escape sequences, as SCAN_BYTES of `charset.py`.
const SCAN_BYTES: usize = 256 << 10;
const ESCAPE: u8 = 0x1b;

/// Whether a body of an HTML type is HTML by each rule of `body_kind.py` and `lists/detection.py`. False: unknown.
fn is_html(body: &[u8]) -> bool {
    let head = &body[..body.len().min(HEAD_BYTES)];
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    STARTS.iter().any(|start| {
        let (Some(begin), next) = (head.get(..start.len()), head.get(start.len())) else { return false };
        begin.eq_ignore_ascii_case(start) && next.is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'>')
    })
}

/// Whether `charset.py` has no rule that may replace this encoding: none was sniffed, or ISO-2022-JP looks like UTF-8.
fn is_settled(encoding: &str, charset: &str, body: &[u8]) -> bool {
    let japanese = || memchr::memchr(ESCAPE, &body[..body.len().min(SCAN_BYTES)]).is_some();
    !encoding.is_empty() && (encoding != "utf-8" || !charset.is_empty() || !japanese())
}

/// What a page thread has made of one body.
pub struct PageReading {
    url: String,
    charset: String,
    encoding: String,
    sha256: Digest,
    certain: bool,
    main_text: bool,
    found: Option<PagePass>,
}

impl PageReader for PageOptions {
    fn wants(&self, response: &Response) -> bool {
        let kind = media::essence(response.head.get("content-type").unwrap_or(""));
        response.head.status < 300 && response.body.len() <= self.max_inline_bytes && HTML.contains(&&*kind)
    }

    fn read(&self, request: &PageRequest, response: &Response) -> Option<(Reading, usize)> {
        let (body, url, main_text) = (&response.body, &*request.url, request.main_text);
        let charset = media::charset(response.head.get("content-type").unwrap_or(""));
        let encoding = encoding::sniff(body, (!charset.is_empty()).then_some(&charset));
        let sha256 = digest(&SHA256, body);
        let certain = is_html(body) && is_settled(&encoding, &charset, body);
        let pass = || {
            let document = document_of(url).filter(|_| !encoding.is_empty())?;
            let options = Options { main_text, ..self.pass_options.clone() };
            read_page(body, document, &encoding, &options).ok()
        };
        // A page whose pass fails is read again by the parser, which reports it.
        let found = catch_unwind(AssertUnwindSafe(pass)).unwrap_or_default();
        let size = found.as_ref().map_or(0, PagePass::size_bytes);
        let reading = PageReading { url: url.to_owned(), charset, encoding, sha256, certain, main_text, found };
        Some((Box::new(reading), size))
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
    /// Whether it is HTML of this encoding whatever rule of the parser is asked.
    #[pyo3(get)]
    certain: bool,
    /// Whether the page pass has read the main text.
    #[pyo3(get)]
    main_text: bool,
    found: Mutex<Option<PagePass>>,
}

impl ReadPage {
    pub fn new(reading: PageReading, body: Py<PyBytes>) -> ReadPage {
        let PageReading { url, charset, encoding, sha256, certain, main_text, found } = reading;
        ReadPage { body, url, charset, encoding, sha256, certain, main_text, found: Mutex::new(found) }
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
