//! Formulas as TeX: what stands in the annotation of MathML, and in scripts of MathJax.

use memchr::memmem;

/// Bytes of a <math> that are searched for its source.
const MAX_MATH: usize = 64 << 10;
/// Classes of elements that show a formula a second time.
const RENDERED: [&[u8]; 5] = [b"katex-html", b"MathJax_Preview", b"MathJax", b"mjx-chtml", b"MathJax_SVG"];

/// The TeX source of the <math> whose start tag ends where `rest` begins; references are not decoded.
pub fn source(rest: &[u8]) -> Option<&[u8]> {
    let end = memmem::find(&rest[..rest.len().min(MAX_MATH)], b"</math")?;
    let math = &rest[..end];
    let from = memmem::find(math, b"application/x-tex")?;
    let from = from + memchr::memchr(b'>', &math[from..])? + 1;
    let length = memmem::find(&math[from..], b"</annotation")?;
    Some(&math[from..from + length]).filter(|tex| memchr::memchr(b'<', tex).is_none())
}

/// Whether a class is that of a formula as it is shown.
pub fn is_rendered(class: &[u8]) -> bool {
    class.split(u8::is_ascii_whitespace).any(|word| RENDERED.contains(&word))
}

/// Whether a script of this type is a formula.
pub fn is_script(kind: &[u8]) -> bool {
    kind.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"math/tex"))
}
