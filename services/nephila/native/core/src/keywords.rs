//! Keywords in a text: all terms that occur, in one pass over its tokens. O(bytes), nearly independent of the terms.
//!
//! A token is a word, or one character of a script without word gaps, or one other character that is no white space.
//! A term occurs where its tokens follow each other, so a word matches whole words only, and white space counts only
//! where it parts words; U+200D parts none. Upper and lower case and full-width letters are equal. The fallback has the same tokens
//! (../../fallback/keywords.py). Words are compared by 63 bits of their hash.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::borrow::Cow;
use std::collections::HashMap;

use crate::spelling::spelled_text;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Word,
    /// A character of a script without gaps between words.
    Gapless,
    Other,
}

const fn ascii_kinds() -> [Kind; 256] {
    let mut kinds = [Kind::Other; 256];
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

/// Kinds of bytes; those beyond ASCII are `Other`.
static KINDS: [Kind; 256] = ascii_kinds();

fn kind_of(c: char) -> Kind {
    match c as u32 {
        code @ 0..=0x7F => KINDS[code as usize],
        0x85 | 0xA0 | 0x1680 | 0x2000..=0x200C | 0x2028 | 0x2029 | 0x202F | 0x205F | 0x3000 | 0xFEFF => Kind::Space,
        0xA1..=0xA9 | 0xAB..=0xB4 | 0xB6..=0xB9 | 0xBB..=0xBF | 0xD7 | 0xF7 | 0x2010..=0x2BFF => Kind::Other,
        0x3001..=0x3004 | 0x3008..=0x303F | 0x30FB | 0xFF00..=0xFF65 | 0xFFE0..=0xFFFF => Kind::Other,
        0x1F000..=0x1FAFF => Kind::Other,
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1100..=0x11FF | 0x1780..=0x17FF => Kind::Gapless,
        0x2E80..=0x2FFF | 0x3005..=0x3007 | 0x3040..=0x318F | 0x31A0..=0x31FF | 0x3400..=0x4DBF => Kind::Gapless,
        0x4E00..=0xA4CF | 0xAC00..=0xD7FF | 0xF900..=0xFAFF | 0xFF66..=0xFFDC | 0x20000..=0x3FFFF => Kind::Gapless,
        _ => Kind::Word,
    }
}

const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
/// Set in the tokens of single characters.
const CHARACTER: u64 = 1 << 63;

fn mixed(hash: u64, value: u64) -> u64 {
    let product = (hash ^ value).wrapping_mul(FACTOR);
    product ^ (product >> 29)
}

/// The token of a word; `CASE` is or-ed to each byte: 0x20 makes ASCII letters small and leaves digits.
fn word<const CASE: u8>(bytes: &[u8]) -> u64 {
    let case = u64::from_ne_bytes([CASE; 8]);
    let mut hash = bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut eight = [0u8; 8];
        eight.copy_from_slice(chunk);
        hash = mixed(hash, u64::from_le_bytes(eight) | case);
    }
    let mut last = 0u64;
    for &byte in chunks.remainder() {
        last = last << 8 | u64::from(byte | CASE);
    }
    mixed(hash, last) & !CHARACTER
}

fn push_lower(c: char, out: &mut Vec<u8>) {
    let code = c as u32;
    let lower = match code {
        // A joiner is spelling of the letters around it.
        0x200D => return,
        0x41..=0x5A | 0xC0..=0xD6 | 0xD8..=0xDE | 0x391..=0x3A1 | 0x3A3..=0x3A9 | 0x410..=0x42F => code + 0x20,
        0x400..=0x40F => code + 0x50,
        0x30..=0x39 | 0x61..=0x7A | 0xDF..=0xF6 | 0xF8..=0xFF | 0x3B1..=0x3C9 | 0x430..=0x45F => code,
        _ => {
            let mut buffer = [0u8; 4];
            c.to_lowercase().for_each(|one| out.extend_from_slice(one.encode_utf8(&mut buffer).as_bytes()));
            return;
        }
    };
    let mut buffer = [0u8; 4];
    out.extend_from_slice(char::from_u32(lower).unwrap_or(c).encode_utf8(&mut buffer).as_bytes());
}

fn folded(c: char) -> char {
    match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        _ => c,
    }
}

/// The tokens of a text.
fn tokens(text: &str) -> Vec<u64> {
    let bytes = text.as_bytes();
    let mut found = Vec::with_capacity(bytes.len() / 3 + 1);
    let mut lower = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte < 128 {
            match KINDS[byte as usize] {
                Kind::Word => {
                    let length = bytes[at..].iter().take_while(|b| KINDS[**b as usize] == Kind::Word).count();
                    let end = at + length;
                    if bytes.get(end).is_some_and(|b| *b >= 128) {
                        at = long_word(text, at, &mut lower);
                        found.push(word::<0>(&lower));
                    } else {
                        found.push(word::<0x20>(&bytes[at..end]));
                        at = end;
                    }
                }
                Kind::Space => at += 1,
                _ => {
                    found.push(CHARACTER | u64::from(byte));
                    at += 1;
                }
            }
            continue;
        }
        // Most characters of Chinese texts: three bytes.
        if (0xE4..=0xE9).contains(&byte) && at + 2 < bytes.len() {
            let (second, third) = (u32::from(bytes[at + 1] & 0x3F), u32::from(bytes[at + 2] & 0x3F));
            let code = u32::from(byte & 0x0F) << 12 | second << 6 | third;
            if code >= 0x4E00 {
                found.push(CHARACTER | u64::from(code));
                at += 3;
                continue;
            }
        }
        let Some(given) = text[at..].chars().next() else { break };
        let c = folded(given);
        match kind_of(c) {
            Kind::Word => {
                at = long_word(text, at, &mut lower);
                if !lower.is_empty() {
                    found.push(word::<0>(&lower));
                }
            }
            Kind::Space => at += given.len_utf8(),
            _ => {
                found.push(CHARACTER | u64::from(c));
                at += given.len_utf8();
            }
        }
    }
    found
}

/// The word that begins at `at`, in lower case; returns where it ends.
fn long_word(text: &str, at: usize, lower: &mut Vec<u8>) -> usize {
    lower.clear();
    for (offset, given) in text[at..].char_indices() {
        let c = folded(given);
        if kind_of(c) != Kind::Word {
            return at + offset;
        }
        push_lower(c, lower);
    }
    text.len()
}

/// Bits of tokens, or of pairs of tokens, that may begin a term.
struct Filter(Vec<u64>);

impl Filter {
    const BITS: u32 = 16;

    fn slot(hash: u64) -> (usize, u64) {
        let bit = hash.wrapping_mul(FACTOR) >> (64 - Self::BITS);
        ((bit >> 6) as usize, 1 << (bit & 63))
    }

    fn add(&mut self, hash: u64) {
        let (index, mask) = Self::slot(hash);
        self.0[index] |= mask;
    }

    #[inline(always)]
    fn may_have(&self, hash: u64) -> bool {
        let (index, mask) = Self::slot(hash);
        self.0[index] & mask != 0
    }
}

fn pair(first: u64, second: u64) -> u64 {
    first.rotate_left(21) ^ second
}

/// Terms that are searched in a text all at once, by their number.
#[pyclass(frozen, module = "nephila.native._core")]
pub struct KeywordSet {
    terms: Vec<Vec<u64>>,
    by_first: HashMap<u64, Vec<u32>>,
    /// Terms of one token, and the first two tokens of the others.
    singles: Filter,
    pairs: Filter,
}

#[pymethods]
impl KeywordSet {
    /// ValueError for a blank term. O(bytes of the terms).
    #[new]
    fn new(py: Python<'_>, terms: Vec<String>) -> PyResult<Self> {
        py.detach(|| {
            let empty = || Filter(vec![0; 1 << (Filter::BITS - 6)]);
            let mut made = KeywordSet { terms: Vec::new(), by_first: HashMap::new(), singles: empty(), pairs: empty() };
            for (number, term) in terms.iter().enumerate() {
                let form = tokens(&spelled_text(Cow::Borrowed(term)));
                match form[..] {
                    [] => return Err(format!("the keyword {term:?} is blank")),
                    [one] => made.singles.add(one),
                    [first, second, ..] => made.pairs.add(pair(first, second)),
                }
                made.by_first.entry(form[0]).or_default().push(number as u32);
                made.terms.push(form);
            }
            Ok(made)
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
            let tokens = tokens(text);
            let mut hits = vec![false; self.terms.len()];
            for (at, &first) in tokens.iter().enumerate() {
                let second = tokens.get(at + 1).copied().unwrap_or(0);
                if !self.singles.may_have(first) && !self.pairs.may_have(pair(first, second)) {
                    continue;
                }
                for &number in self.by_first.get(&first).map_or(&[][..], |numbers| &numbers[..]) {
                    if tokens[at..].starts_with(&self.terms[number as usize]) {
                        hits[number as usize] = true;
                    }
                }
            }
            hits.iter().enumerate().filter(|(_, hit)| **hit).map(|(number, _)| number).collect()
        })
    }

    fn __len__(&self) -> usize {
        self.terms.len()
    }
}
