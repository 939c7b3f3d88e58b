//! page_pass for Python: one call without the GIL; results are converted when they are read.

use std::mem::size_of;
use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use ring::digest::{digest, SHA256};
use url::Url;

use crate::links::{self, Links};
use crate::microdata::Microdata;
use crate::page::Page;
use crate::structure::{self, outline::Outline};
use crate::text::Line;
use crate::{dateline, encoding, entities, maintext, urls_py, values};

/// Bytes of `text_hash`.
const HASH_BYTES: usize = 8;

/// What the page pass found. Buffers are little-endian; their layouts are in services/nephila/native/README.md.
#[pyclass(module = "nephila.native._core", frozen)]
#[derive(Default)]
pub struct PagePass {
    pub title: String,
    lang: String,
    base: String,
    canonical: String,
    robots: String,
    description: String,
    pub meta: Vec<(String, String)>,
    refresh: String,
    pub text: Vec<u8>,
    pub lines: Vec<Line>,
    pub main_lines: Vec<u32>,
    pub main_text: Vec<u8>,
    comments: Vec<u8>,
    /// Beside the main text, or beside the text of a page without any.
    pub structure: Vec<u8>,
    /// Empty without text.
    text_hash: Vec<u8>,
    pub links: Links,
    links_left_out: u32,
    depth: u32,
}

fn u32s<'py>(py: Python<'py>, values: &[u32]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * 4, |bytes| {
        for (place, value) in bytes.chunks_exact_mut(4).zip(values) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        Ok(())
    })
}

#[pymethods]
impl PagePass {
    #[getter]
    fn title(&self) -> &str {
        &self.title
    }
    #[getter]
    fn lang(&self) -> &str {
        &self.lang
    }
    #[getter]
    fn base(&self) -> &str {
        &self.base
    }
    #[getter]
    fn canonical(&self) -> &str {
        &self.canonical
    }
    #[getter]
    fn robots(&self) -> &str {
        &self.robots
    }
    #[getter]
    fn description(&self) -> &str {
        &self.description
    }
    #[getter]
    fn meta(&self) -> Vec<(&str, &str)> {
        self.meta.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect()
    }
    #[getter]
    fn refresh(&self) -> &str {
        &self.refresh
    }
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.text)
    }
    #[getter]
    fn text_lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, self.lines.len() * 16, |bytes| {
            for (place, line) in bytes.chunks_exact_mut(16).zip(&self.lines) {
                place.copy_from_slice(&line.packed());
            }
            Ok(())
        })
    }
    #[getter]
    fn main_lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        u32s(py, &self.main_lines)
    }
    #[getter]
    fn main_text<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.main_text)
    }
    #[getter]
    fn comments<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.comments)
    }
    #[getter]
    fn structure<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.structure)
    }
    #[getter]
    fn text_hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.text_hash)
    }
    #[getter]
    fn link_count(&self) -> usize {
        self.links.ends.len()
    }
    #[getter]
    fn link_urls<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.links.urls)
    }
    #[getter]
    fn link_ends<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        u32s(py, &self.links.ends)
    }
    #[getter]
    fn fingerprints<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.links.fingerprints)
    }
    #[getter]
    fn host_spans<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        u32s(py, &self.links.host_spans)
    }
    #[getter]
    fn anchors<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.links.anchors)
    }
    #[getter]
    fn anchor_ends<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        u32s(py, &self.links.anchor_ends)
    }
    #[getter]
    fn link_flags<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.links.flags)
    }
    #[getter]
    fn bad_links(&self) -> u32 {
        self.links.bad
    }
    #[getter]
    fn links_left_out(&self) -> u32 {
        self.links_left_out
    }
    #[getter]
    fn depth(&self) -> u32 {
        self.depth
    }
}

impl PagePass {
    /// Bytes of the text, its lines and the links: nearly all of its memory.
    pub fn size_bytes(&self) -> usize {
        let texts = self.text.capacity() + self.main_text.capacity() + self.comments.capacity();
        let texts = texts + self.structure.capacity() + self.links.urls.capacity();
        let lines = self.lines.capacity() * size_of::<Line>() + self.main_lines.capacity() * 4;
        texts + lines + self.links.fingerprints.capacity() + self.links.anchors.capacity()
    }
}

fn owned(bytes: Vec<u8>) -> String {
    // Valid already (cut at characters): from_utf8 does not copy.
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// The start of the SHA-256 of a text, as `parser/page/text.py`.
fn text_hash(text: &[u8]) -> Vec<u8> {
    match text {
        [] => Vec::new(),
        _ => digest(&SHA256, text).as_ref()[..HASH_BYTES].to_vec(),
    }
}

/// A base as it is stored: a URL that inherits the credentials of its page does not keep them.
fn without_credentials(mut base: Url, page: &Url) -> String {
    if (base.username(), base.password()) == (page.username(), page.password()) {
        // Both are http(s) URLs with a host, which can have them.
        let _ = base.set_username("").and_then(|()| base.set_password(None));
    }
    base.into()
}

/// What is read of a page: `PassOptions` of ../../pass_options.py.
#[derive(Clone, FromPyObject)]
pub struct Options {
    pub max_links: usize,
    pub max_text_bytes: usize,
    pub main_text: bool,
    /// The name in <meta name> that may have robots directives, beside "robots".
    pub agent: String,
    /// Whether text is kept that the page hides by attributes.
    pub hidden_text: bool,
}

impl Default for Options {
    fn default() -> Self {
        let agent = "nephila".to_owned();
        Options { max_links: 10_000, max_text_bytes: 4_000_000, main_text: true, agent, hidden_text: false }
    }
}

fn scan(input: &[u8], document: Url, queries: encoding::Queries, options: &Options) -> PagePass {
    let Options { max_links, max_text_bytes, main_text: main, ref agent, hidden_text } = *options;
    let mut page = Page::new(input, max_links, max_text_bytes, main, agent.as_bytes());
    page.keeps_hidden = hidden_text;
    let own = document.clone();
    let outline = if main {
        Some(Outline::run(&mut page, queries))
    } else {
        page.run();
        None
    };
    let base = links::base_of(&page, document, queries);
    let mut found = links::finish(&page, &base, max_links);
    let title = page.head.title.as_deref().unwrap_or_default();
    let dateline = dateline::of_page(&page.text.text, &page.text.lines, title);
    let main = if main {
        maintext::main_text(&page.text.text, &page.text.lines, &page.boxes.items, title, page.head.subject())
    } else {
        maintext::Main::default()
    };
    links::mark_main(&page, &main.lines, &mut found);
    let structure = outline.map_or(Vec::new(), |outline| {
        let stored = if main.text.is_empty() { &page.text.text } else { &main.text };
        let other = if base.url == own { String::new() } else { without_credentials(base.url.clone(), &own) };
        structure::of_page(outline, &page.text.text, &page.text.lines, &main.lines, stored, &other)
    });
    let hash = text_hash(if main.text.is_empty() { &page.text.text } else { &main.text });
    let head = std::mem::take(&mut page.head);
    let left_out = found.left_out;
    let canonical = head.canonical.map(|raw| links::resolve_one(&base, &entities::decode(raw, true, true)));
    let refresh = head.refresh.map(|target| links::resolve_one(&base, target.as_bytes()));
    let mut entries = head.json_ld.entries(head.description.is_none());
    entries.iter_mut().for_each(|(_, value)| *value = values::spelled_value(std::mem::take(value)));
    let microdata = std::mem::replace(&mut page.microdata, Microdata::new(b""));
    let noted = [("time", head.time.unwrap_or_default()), ("dateline", dateline), ("hreflang", head.hreflang)];
    let noted = noted.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name.to_owned(), value));
    let meta = entries.into_iter().chain(head.meta).chain(microdata.entries()).chain(noted).collect();
    PagePass {
        title: owned(head.title.unwrap_or_default()),
        lang: head.lang.unwrap_or_default(),
        base: base.href().into(),
        canonical: canonical.unwrap_or_default(),
        robots: head.robots,
        description: head.description.unwrap_or_default(),
        meta,
        refresh: refresh.unwrap_or_default(),
        text: std::mem::take(&mut page.text.text),
        lines: std::mem::take(&mut page.text.lines),
        main_lines: main.lines,
        main_text: main.text,
        comments: main.comments,
        structure,
        text_hash: hash,
        links: found,
        links_left_out: page.left_out.saturating_add(left_out),
        depth: if page.tok.crowded { u32::MAX } else { page.stack.depth() },
    }
}

/// `page_pass` without Python. An error is a text for people.
pub fn read_page(body: &[u8], document: Url, encoding: &str, options: &Options) -> Result<PagePass, String> {
    let input = encoding::to_utf8(body, encoding).ok_or_else(|| format!("unknown encoding '{encoding}'"))?;
    if input.len() > i32::MAX as usize {
        return Err("page too large".to_owned());
    }
    Ok(scan(&input, document, encoding::queries(encoding), options))
}

/// Title, meta, text lines and links of an HTML page in one scan without a tree; the GIL is released. O(bytes).
///
/// `encoding` is a WHATWG label ("" = windows-1252); ValueError for an unknown one and for more than 2^31 bytes,
/// UrlError if `url` is not an absolute http(s) URL, RuntimeError for a fault of the scanner itself.
#[pyfunction]
#[pyo3(signature = (body, url, encoding, options=None))]
pub fn page_pass(
    py: Python<'_>,
    body: &[u8],
    url: &Bound<'_, PyString>,
    encoding: &str,
    options: Option<Options>,
) -> PyResult<PagePass> {
    let document = urls_py::parse_document(url)?;
    let options = options.unwrap_or_default();
    let work = || read_page(body, document, encoding, &options);
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(found) => found.map_err(PyValueError::new_err),
        Err(_) => Err(PyRuntimeError::new_err("the page scanner failed")),
    }
}

/// What the main-text model is trained on: the text, its lines (`<IIIHHII`: as `text_lines`, box, innermost element),
/// the boxes (`<IIIIIQ`: parent, tag, context, own, every, key), the columns of the features (i16, one behind the
/// other), and the class words of each box as written. ValueError as in `page_pass`. O(bytes).
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn training_table<'py>(
    py: Python<'py>,
    body: &[u8],
    encoding: &str,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Vec<Vec<u8>>)> {
    let input = encoding::to_utf8(body, encoding)
        .ok_or_else(|| PyValueError::new_err(format!("unknown encoding '{encoding}'")))?;
    let mut page = Page::new(&input, 10_000, 4_000_000, true, b"");
    page.boxes.noted = Some(vec![Vec::new()]);
    page.run();
    let (text, boxes) = (&page.text.text, &page.boxes.items);
    let mut lines = Vec::with_capacity(page.text.lines.len() * 24);
    for line in &page.text.lines {
        lines.extend_from_slice(&line.packed());
        lines.extend_from_slice(&line.place.to_le_bytes());
        lines.extend_from_slice(&u32::from(line.inner).to_le_bytes());
    }
    let mut packed = Vec::with_capacity(boxes.len() * 28);
    for one in boxes {
        for word in [one.parent, u32::from(one.tag), u32::from(one.context), one.own, one.every] {
            packed.extend_from_slice(&word.to_le_bytes());
        }
        packed.extend_from_slice(&one.key.to_le_bytes());
    }
    let title = page.head.title.as_deref().unwrap_or_default();
    let columns = maintext::table(text, &page.text.lines, boxes, title);
    let columns: Vec<u8> = columns.iter().flat_map(|value| value.to_le_bytes()).collect();
    let bytes = |data: &[u8]| PyBytes::new(py, data);
    Ok((bytes(text), bytes(&lines), bytes(&packed), bytes(&columns), page.boxes.noted.take().unwrap_or_default()))
}

/// The text of a page, and its structure if the lines with these numbers, rising, are its main text: how the structure is
/// judged without a model. ValueError as in `page_pass`. O(bytes).
#[pyfunction]
pub fn structure_by<'py>(
    py: Python<'py>,
    body: &[u8],
    encoding: &str,
    main: Vec<u32>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let input = encoding::to_utf8(body, encoding)
        .ok_or_else(|| PyValueError::new_err(format!("unknown encoding '{encoding}'")))?;
    let mut page = Page::new(&input, 10_000, 4_000_000, true, b"");
    let outline = Outline::run(&mut page, None);
    let (text, lines) = (&page.text.text, &page.text.lines);
    let known: Vec<u32> = main.into_iter().filter(|at| (*at as usize) < lines.len()).collect();
    let found = structure::of_page(outline, text, lines, &known, text, "");
    Ok((PyBytes::new(py, text), PyBytes::new(py, &found)))
}

/// The main text by other scores (thousandths of log-odds, one a line) than the model's: how a new model is judged.
/// Empty where their number is not that of the lines. ValueError as in `page_pass`. O(bytes).
#[pyfunction]
pub fn main_text_by<'py>(
    py: Python<'py>,
    body: &[u8],
    encoding: &str,
    scores: Vec<i32>,
) -> PyResult<Bound<'py, PyBytes>> {
    let input = encoding::to_utf8(body, encoding)
        .ok_or_else(|| PyValueError::new_err(format!("unknown encoding '{encoding}'")))?;
    let mut page = Page::new(&input, 10_000, 4_000_000, true, b"");
    page.run();
    let subject = page.head.subject();
    let title = page.head.title.as_deref().unwrap_or_default();
    let main = maintext::by_scores(&page.text.text, &page.text.lines, &page.boxes.items, &scores, title, subject);
    Ok(PyBytes::new(py, &main.text))
}
