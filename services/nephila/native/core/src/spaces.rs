//! White space of texts as values of rules have it, many texts at a time; and a text as JSON.
//!
//! Invariant: white space is what Python's str.split() takes for it; lone surrogates are a UnicodeEncodeError. A text
//! with nothing to change is not copied.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::spelling::spelled_text;

/// ASCII with no white space but single spaces. O(n), some bytes a nanosecond at a time.
#[pyfunction]
pub fn is_tidy(text: &str) -> bool {
    tidy(text.as_bytes())
}

/// Of each text the first `most` characters in the one form of text, white space collapsed within lines, empty lines and both ends cut; what
/// is empty then is left out. O(n), some bytes a nanosecond where nothing is to be done.
#[pyfunction]
pub fn trimmed<'py>(texts: &Bound<'py, PyList>, most: usize) -> PyResult<Bound<'py, PyList>> {
    let found = PyList::empty(texts.py());
    for one in texts.iter() {
        let one = one.cast_into::<PyString>()?;
        let whole = one.to_str()?;
        let text = start(whole, most);
        let ends = text.trim_matches(' ');
        if !tidy(ends.as_bytes()) {
            let made = collapsed(&spelled_text(Cow::Borrowed(text)));
            if !made.is_empty() {
                found.append(made)?;
            }
        } else if ends.len() == whole.len() {
            if !ends.is_empty() {
                found.append(&one)?;
            }
        } else if !ends.is_empty() {
            found.append(ends)?;
        }
    }
    Ok(found)
}

/// A text as JSON has it: UTF-8 in quotes. O(n).
#[pyfunction]
pub fn quoted<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = text.as_bytes();
    if bytes.iter().fold(0u8, |odd, byte| odd | special(*byte)) == 0 {
        return PyBytes::new_with(py, bytes.len() + 2, |out| {
            out[0] = b'"';
            out[1..=bytes.len()].copy_from_slice(bytes);
            out[bytes.len() + 1] = b'"';
            Ok(())
        });
    }
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 8 + 2);
    out.push(b'"');
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| special(*byte) != 0) {
        out.extend_from_slice(&rest[..at]);
        escape(rest[at], &mut out);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
    Ok(PyBytes::new(py, &out))
}

#[inline(always)]
fn special(byte: u8) -> u8 {
    u8::from(byte < b' ') | u8::from(byte == b'"') | u8::from(byte == b'\\')
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\t' => b't',
        b'\r' => b'r',
        0x08 => b'b',
        0x0C => b'f',
        _ => return out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    };
    out.extend_from_slice(&[b'\\', short]);
}

fn tidy(text: &[u8]) -> bool {
    // One pass without branches, which the compiler makes wide.
    let rest = text.get(1..).unwrap_or(&[]);
    let pairs = text.iter().zip(rest).fold(0u8, |bad, (a, b)| bad | (u8::from(*a == b' ') & u8::from(*b == b' ')));
    let bytes = text.iter().fold(0u8, |bad, byte| bad | (u8::from(*byte < b' ') | u8::from(*byte > b'~')));
    pairs | bytes == 0
}

fn start(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

fn collapsed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split('\n') {
        let mut gap = if out.is_empty() { None } else { Some('\n') };
        for word in line.split(is_space).filter(|word| !word.is_empty()) {
            out.extend(gap);
            out.push_str(word);
            gap = Some(' ');
        }
    }
    out
}

/// White space as Python's str.split() has it: four separators of ASCII more than Unicode's.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::{collapsed, start, tidy};

    #[test]
    fn runs_and_controls_are_seen() {
        for text in ["", "a", " a b ", "a b c d e f g h i j k l m n o p q r s t u v w x y z"] {
            assert!(tidy(text.as_bytes()), "{text:?}");
        }
        for text in
            ["a  b", "  ", "a\nb", "a\tb", "é", "a\u{a0}b", "x\u{7f}", "abcdefghijklmnopqrstuvwxyz 0123456789  "]
        {
            assert!(!tidy(text.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn lines_stay_and_starts_end_between_characters() {
        assert_eq!(collapsed("  a\t b\n \n\u{a0}c\x1cd\r\n"), "a b\nc d");
        assert_eq!(start("aéb", 2), "aé");
        assert_eq!(start("aé", 2), "aé");
    }
}
