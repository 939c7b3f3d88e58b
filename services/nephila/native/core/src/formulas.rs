//! Formulas as LaTeX: the annotation of MathML or MathML itself, scripts of MathJax, attributes, texts of pictures.

use memchr::memmem;
use std::borrow::Cow;

use crate::mathml;
use crate::search::may_begin;

/// Bytes of a <math> that are searched for its source.
const MAX_MATH: usize = 64 << 10;
/// Attributes in which elements have the source of what they show.
pub const SOURCES: [&[u8]; 4] = [b"data-math", b"data-latex", b"data-tex", b"data-expr"];

/// The LaTeX of the <math> whose start tag ends where `rest` begins, and whether references in it are to be decoded;
/// `alternative`: its attribute alttext.
pub fn source<'a>(rest: &'a [u8], alternative: Option<&'a [u8]>) -> Option<(Cow<'a, [u8]>, bool)> {
    let end = memmem::find(&rest[..rest.len().min(MAX_MATH)], b"</math")?;
    let math = &rest[..end];
    if let Some(source) = annotation(math) {
        return Some((Cow::Borrowed(source), true));
    }
    if let Some(text) = alternative.filter(|text| memchr::memchr3(b'\\', b'_', b'^', text).is_some()) {
        return Some((Cow::Borrowed(text), true));
    }
    mathml::latex(math).map(|found| (Cow::Owned(found.into_bytes()), false))
}

fn annotation(math: &[u8]) -> Option<&[u8]> {
    let kinds: [&[u8]; 3] = [b"application/x-tex", b"application/x-latex", b"\"TeX\""];
    let from = kinds.iter().find_map(|kind| memmem::find(math, kind))?;
    let from = from + memchr::memchr(b'>', &math[from..])? + 1;
    let length = memmem::find(&math[from..], b"</annotation")?;
    Some(&math[from..from + length]).filter(|tex| memchr::memchr(b'<', tex).is_none() && !tex.trim_ascii().is_empty())
}

/// False if a class of a span is neither that of a formula, as the functions here have it, nor of a tool.
pub fn may_name_span(class: &[u8]) -> bool {
    may_begin(class, b"hkmMor", b"ajowui", b"txev-g")
}

/// Whether a class is that of a formula as it is shown, a second time.
pub fn is_rendered(class: &[u8]) -> bool {
    words(class)
        .any(|word| matches!(word, b"katex-html" | b"MathJax_Preview" | b"MathJax" | b"mjx-chtml" | b"MathJax_SVG"))
}

/// Whether a class is that of a formula in a line of its own.
pub fn is_display(class: &[u8]) -> bool {
    words(class).any(|word| matches!(word, b"katex-display" | b"math-block" | b"math-display" | b"MathJax_Display"))
}

/// Whether an element of this class may have its formula in an attribute.
pub fn may_have_source(class: &[u8]) -> bool {
    words(class).any(|word| word.starts_with(b"math") || word.starts_with(b"katex"))
}

/// Whether a class is that of MathML which stands hidden beside its picture.
pub fn is_beside_picture(class: &[u8]) -> bool {
    class.starts_with(b"mwe-math-mathml")
}

/// Whether a script of this type is a formula.
pub fn is_script(kind: &[u8]) -> bool {
    kind.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"math/tex"))
}

/// Whether the shown parts of a container of MathJax, whose start tag ends where `rest` begins, have MathML behind them.
pub fn has_assistive(rest: &[u8]) -> bool {
    let rest = &rest[..rest.len().min(MAX_MATH)];
    let end = memmem::find(rest, b"</mjx-container").unwrap_or(0);
    memmem::find(&rest[..end], b"<mjx-assistive-mml").is_some()
}

fn words(class: &[u8]) -> impl Iterator<Item = &[u8]> {
    class.split(u8::is_ascii_whitespace)
}

/// The LaTeX that the text of a picture is, or the query of a service that draws formulas; "" if none. O(length).
pub fn of_picture<'a>(alt: &'a str, source: &'a str) -> Cow<'a, str> {
    let alt = alt.trim();
    let is_command = |run: &[u8]| run[0] == b'\\' && run[1].is_ascii_alphabetic() && run[2].is_ascii_alphabetic();
    let has_command = || alt.as_bytes().windows(3).any(is_command);
    let is_formula = || alt.starts_with('\\') || alt.contains(['{', '^', '_', '=']);
    // No path of a file.
    if alt.contains('\\') && is_formula() && has_command() && !alt.contains(":\\") && !alt.starts_with("\\\\") {
        return Cow::Borrowed(alt.trim_matches('$'));
    }
    let services = ["latex.codecogs.com/", "chart.apis.google.com/chart", "chart.googleapis.com/chart", "latex.php?"];
    let may_draw = source.contains("latex") || source.contains("/chart");
    if !may_draw || !services.iter().any(|service| source.contains(service)) {
        return Cow::Borrowed("");
    }
    let query = match source.find("chl=").or_else(|| source.find("latex=")) {
        Some(at) => source[at..].split_once('=').map_or("", |parts| parts.1).split('&').next().unwrap_or(""),
        None => source.split_once('?').map_or("", |parts| parts.1),
    };
    Cow::Owned(percent_decoded(query))
}

fn percent_decoded(text: &str) -> String {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        let value = hex.filter(|_| bytes[at] == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(value.unwrap_or(if bytes[at] == b'+' { b' ' } else { bytes[at] }));
        at += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}
