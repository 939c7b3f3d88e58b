//! The URL functions for Python.

use std::borrow::Cow;

use nephila_wide::md5;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyString};
use url::Url;

use crate::encoding;
use crate::urls::{self, Href, Refusal};
use crate::whatwg;

pyo3::create_exception!(_core, UrlError, PyValueError, "Not an absolute http(s) URL; the text says why.");

/// A parsed http(s) URL: what is fetched (`href`) and what it is known by (`canonical`, `fingerprint`).
#[pyclass(module = "nephila.native._core", frozen)]
pub struct UrlParts {
    href: Href,
    canonical: Option<String>,
}

#[pymethods]
impl UrlParts {
    /// WHATWG href without fragment.
    #[getter]
    fn href(&self) -> &str {
        &self.href.text
    }

    /// ASCII host in lower case, with ":port" unless that is the scheme's default.
    #[getter]
    fn host_key(&self) -> &str {
        &self.href.text[self.href.parts.host.0 as usize..self.href.parts.host.1 as usize]
    }

    /// The href in the canonical profile KEY_VERSION 2: a key, not what is fetched.
    #[getter]
    fn canonical(&self) -> &str {
        self.canonical.as_deref().unwrap_or(&self.href.text)
    }

    /// MD5(host key)[0:4] + MD5(canonical)[0:12].
    #[getter]
    fn fingerprint<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &urls::fingerprint(self.host_key().as_bytes(), self.canonical().as_bytes()))
    }

    /// "http" or "https".
    #[getter]
    fn scheme(&self) -> &str {
        self.href.scheme()
    }

    /// Path with "?query" if there is one.
    #[getter]
    fn path_query(&self) -> &str {
        &self.href.text[self.href.parts.host.1 as usize..]
    }

    fn __repr__(&self) -> String {
        format!("UrlParts({:?})", self.href.text)
    }
}

fn text<'a>(value: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    value.to_str().map_err(|_| UrlError::new_err("not valid Unicode"))
}

fn refused(refusal: Refusal) -> PyErr {
    match refusal {
        Refusal::Bad(reason) => UrlError::new_err(reason),
        Refusal::Scheme(scheme) => UrlError::new_err(format!("unsupported scheme '{scheme}'")),
    }
}

fn parse_base(base: Option<&Bound<'_, PyString>>) -> PyResult<Option<Url>> {
    base.map(|base| Url::parse(text(base)?).map_err(|e| UrlError::new_err(format!("base: {}", urls::reason(e)))))
        .transpose()
}

/// The URL of a page, which links are resolved against; None: not an absolute http(s) URL.
#[cfg(unix)]
pub fn document_of(url: &str) -> Option<Url> {
    Url::parse(&urls::parse_http(url, None).ok()?.text).ok()
}

/// The same from Python, with the reason.
pub fn parse_document(url: &Bound<'_, PyString>) -> PyResult<Url> {
    let href = urls::parse_http(text(url)?, None).map_err(refused)?;
    Url::parse(&href.text).map_err(|e| UrlError::new_err(urls::reason(e)))
}

/// Parse an absolute http(s) URL, or a relative one against `base`; UrlError for anything else. O(n).
#[pyfunction]
#[pyo3(signature = (url, base=None))]
pub fn parse_url(url: &Bound<'_, PyString>, base: Option<&Bound<'_, PyString>>) -> PyResult<UrlParts> {
    let base = parse_base(base)?;
    let href = urls::parse_http(text(url)?, base.as_ref()).map_err(refused)?;
    let mut canonical = Vec::new();
    let changed = urls::canonicalise(href.text.as_bytes(), href.parts, &mut canonical);
    let canonical = changed.then(|| String::from_utf8_lossy(&canonical).into_owned());
    Ok(UrlParts { href, canonical })
}

/// A reference of a page in `encoding` with the characters of its query percent-encoded in that encoding, the rest as it
/// is; UrlError for a lone surrogate. "" = windows-1252, an unknown label is UTF-8. O(n).
#[pyfunction]
pub fn query_in<'t>(reference: &'t Bound<'_, PyString>, encoding: &str) -> PyResult<Cow<'t, str>> {
    Ok(encoding::query_in(text(reference)?.into(), encoding::queries(encoding)))
}

/// A name or value of a form of a page in `encoding`, as application/x-www-form-urlencoded; UrlError for a lone surrogate.
/// "" = windows-1252, an unknown label is UTF-8. O(n).
#[pyfunction]
pub fn form_encoded(value: &Bound<'_, PyString>, encoding: &str) -> PyResult<String> {
    Ok(encoding::form_encoded(text(value)?, encoding::queries(encoding)))
}

/// The WHATWG href of a URL of any scheme, fragment kept; UrlError if it does not parse. O(n).
#[pyfunction]
#[pyo3(signature = (url, base=None))]
pub fn parse_any(url: &Bound<'_, PyString>, base: Option<&Bound<'_, PyString>>) -> PyResult<String> {
    let base = parse_base(base)?;
    whatwg::parse(text(url)?, base.as_ref(), true).map(|href| href.text).map_err(refused)
}

/// MD5 of each host key, 16 bytes each: its first bits are those of the fingerprints of the host's URLs. O(bytes).
#[pyfunction]
pub fn host_digests<'py>(py: Python<'py>, host_keys: Vec<PyBackedStr>) -> Bound<'py, PyBytes> {
    let mut digests = vec![0; 16 * host_keys.len()];
    let message = |at: usize| host_keys[at].as_bytes();
    md5::digest_all(host_keys.len(), message, |at, sum| digests[16 * at..16 * at + 16].copy_from_slice(&sum));
    PyBytes::new(py, &digests)
}
