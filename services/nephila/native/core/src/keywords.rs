//! Keywords in a text: all terms that occur, in one pass. O(bytes), independent of the number of terms.
//!
//! Terms and texts are compared in a normal form: lower case, full-width letters as ASCII, white space collapsed, and
//! none beside a character of a script without word gaps. A word of other scripts matches whole words only: in the
//! normal form a blank marks both ends of each word. The fallback defines the same form (../../fallback/keywords.py).

use aho_corasick::automaton::Automaton;
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Word,
    /// A character of a script without gaps between words.
    Gapless,
    Other,
}

const fn ascii_kinds() -> [Kind; 128] {
    let mut kinds = [Kind::Other; 128];
    let mut i = 0u8;
    while i < 128 {
        if i.is_ascii_alphanumeric() {
            kinds[i as usize] = Kind::Word;
        } else if i == b' ' || (i >= 9 && i <= 13) {
            kinds[i as usize] = Kind::Space;
        }
        i += 1;
    }
    kinds
}

static ASCII: [Kind; 128] = ascii_kinds();

fn kind_of(c: char) -> Kind {
    match c as u32 {
        0x85 | 0xA0 | 0x1680 | 0x2000..=0x200D | 0x2028 | 0x2029 | 0x202F | 0x205F | 0x3000 | 0xFEFF => Kind::Space,
        0xA1..=0xA9 | 0xAB..=0xB4 | 0xB6..=0xB9 | 0xBB..=0xBF | 0xD7 | 0xF7 | 0x2010..=0x2BFF => Kind::Other,
        0x3001..=0x3004 | 0x3008..=0x303F | 0x30FB | 0xFF00..=0xFF65 | 0xFFE0..=0xFFFF => Kind::Other,
        0x1F000..=0x1FAFF => Kind::Other,
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1100..=0x11FF | 0x1780..=0x17FF => Kind::Gapless,
        0x2E80..=0x2FFF | 0x3005..=0x3007 | 0x3040..=0x318F | 0x31A0..=0x31FF | 0x3400..=0x4DBF => Kind::Gapless,
        0x4E00..=0xA4CF | 0xAC00..=0xD7FF | 0xF900..=0xFAFF | 0xFF66..=0xFFDC | 0x20000..=0x3FFFF => Kind::Gapless,
        _ => Kind::Word,
    }
}

/// Calls `emit` with each byte of the normal form of `text`. The text ends with a gap.
#[inline(always)]
fn normalise(text: &str, mut emit: impl FnMut(u8)) {
    let bytes = text.as_bytes();
    let mut in_word = false;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte < 128 {
            at += 1;
            let word = ASCII[byte as usize] == Kind::Word;
            if word != in_word {
                emit(b' ');
                in_word = word;
            }
            if word || ASCII[byte as usize] == Kind::Other {
                emit(byte.to_ascii_lowercase());
            }
            continue;
        }
        let Some(mut c) = text[at..].chars().next() else { break };
        at += c.len_utf8();
        if ('\u{FF01}'..='\u{FF5E}').contains(&c) {
            c = char::from_u32(c as u32 - 0xFEE0).unwrap_or(c);
        }
        let kind = if c.is_ascii() { ASCII[c as usize] } else { kind_of(c) };
        let word = kind == Kind::Word;
        if word != in_word {
            emit(b' ');
            in_word = word;
        }
        if kind == Kind::Space {
            continue;
        }
        let mut buffer = [0u8; 4];
        if kind == Kind::Gapless {
            c.encode_utf8(&mut buffer).bytes().for_each(&mut emit);
        } else {
            for lower in c.to_lowercase() {
                lower.encode_utf8(&mut buffer).bytes().for_each(&mut emit);
            }
        }
    }
    if in_word {
        emit(b' ');
    }
}

/// The terms of an automaton, by their number.
#[pyclass(frozen, module = "nephila.native._core")]
pub struct KeywordSet {
    dfa: DFA,
    start: aho_corasick::automaton::StateID,
    terms: usize,
}

#[pymethods]
impl KeywordSet {
    /// ValueError for a term without a letter, or too many terms. O(bytes of the terms).
    #[new]
    fn new(py: Python<'_>, terms: Vec<String>) -> PyResult<Self> {
        py.detach(|| {
            let mut forms = Vec::with_capacity(terms.len());
            for term in &terms {
                let mut form = Vec::with_capacity(term.len() + 2);
                normalise(term, |byte| form.push(byte));
                if form.is_empty() {
                    return Err(format!("the keyword {term:?} is blank"));
                }
                forms.push(form);
            }
            let dfa = DFA::builder()
                .match_kind(MatchKind::Standard)
                .build(&forms)
                .map_err(|error| error.to_string())?;
            let start = dfa.start_state(Anchored::No).map_err(|error| error.to_string())?;
            Ok(KeywordSet { dfa, start, terms: terms.len() })
        })
        .map_err(PyValueError::new_err)
    }

    /// Numbers of the terms that occur in a UTF-8 text, rising. Invalid UTF-8 ends the text. O(bytes).
    fn find(&self, py: Python<'_>, text: &[u8]) -> Vec<usize> {
        py.detach(|| {
            let text = match std::str::from_utf8(text) {
                Ok(text) => text,
                Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or(""),
            };
            let mut found = vec![false; self.terms];
            let mut state = self.start;
            let dfa = &self.dfa;
            normalise(text, |byte| {
                state = dfa.next_state(Anchored::No, state, byte);
                if dfa.is_special(state) && dfa.is_match(state) {
                    for i in 0..dfa.match_len(state) {
                        found[dfa.match_pattern(state, i).as_usize()] = true;
                    }
                }
            });
            found.iter().enumerate().filter(|(_, hit)| **hit).map(|(i, _)| i).collect()
        })
    }

    fn __len__(&self) -> usize {
        self.terms
    }
}
