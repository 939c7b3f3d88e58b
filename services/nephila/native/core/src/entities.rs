//! Character references, as the standard's tokenizer decodes them, in text and in attribute values.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

include!(concat!(env!("OUT_DIR"), "/entities.rs"));

type Names = HashMap<&'static [u8], &'static str, foldhash::fast::FixedState>;

fn names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| ENTITIES.iter().map(|(name, value)| (name.as_bytes(), *value)).collect())
}

/// The longest name ("CounterClockwiseContourIntegral;").
const LONGEST: usize = 32;

/// Windows-1252's reading of the C1 controls, by `code - 0x80`; 0 = as it is.
const C1: [u16; 32] = [
    0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017D, 0, 0,
    0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0, 0x017E, 0x0178,
];

/// A decoded reference: its text and the bytes it took, `&` included.
pub struct Reference {
    pub text: Text,
    pub len: usize,
}

pub enum Text {
    Named(&'static str),
    Char(char),
}

impl Reference {
    #[inline]
    pub fn bytes<'b>(&self, buffer: &'b mut [u8; 4]) -> &'b [u8]
    where
        'static: 'b,
    {
        match self.text {
            Text::Named(name) => name.as_bytes(),
            Text::Char(c) => c.encode_utf8(buffer).as_bytes(),
        }
    }
}

/// Decode the reference at the start of `rest` (which starts with `&`); None if it is plain text. O(32).
pub fn reference(rest: &[u8], in_attribute: bool) -> Option<Reference> {
    if rest.get(1) == Some(&b'#') {
        return numeric(rest);
    }
    let run = rest[1..].iter().take(LONGEST).take_while(|b| b.is_ascii_alphanumeric()).count();
    if run == 0 {
        return None;
    }
    let names = names();
    if rest.get(1 + run) == Some(&b';') {
        if let Some(value) = names.get(&rest[1..run + 2]) {
            return Some(Reference { text: Text::Named(value), len: run + 2 });
        }
    }
    // Legacy names need no semicolon; the longest that fits wins, none is longer than 6 or shorter than 2.
    for len in (2..=run.min(6)).rev() {
        if let Some(value) = names.get(&rest[1..=len]) {
            let next = rest.get(1 + len).copied().unwrap_or(0);
            if in_attribute && (next == b'=' || next.is_ascii_alphanumeric()) {
                return None;
            }
            return Some(Reference { text: Text::Named(value), len: len + 1 });
        }
    }
    None
}

fn numeric(rest: &[u8]) -> Option<Reference> {
    let hex = matches!(rest.get(2), Some(b'x' | b'X'));
    let from = if hex { 3 } else { 2 };
    let radix = if hex { 16 } else { 10 };
    let mut end = from;
    let mut code = 0u32;
    while let Some(digit) = rest.get(end).and_then(|b| (*b as char).to_digit(radix)) {
        // Saturates far above the last code point, however many digits there are.
        code = (code * radix + digit).min(0x0100_0000);
        end += 1;
    }
    if end == from {
        return None;
    }
    if rest.get(end) == Some(&b';') {
        end += 1;
    }
    if (0x80..0xA0).contains(&code) && C1[(code - 0x80) as usize] != 0 {
        code = u32::from(C1[(code - 0x80) as usize]);
    }
    let c = if code == 0 { '\u{FFFD}' } else { char::from_u32(code).unwrap_or('\u{FFFD}') };
    Some(Reference { text: Text::Char(c), len: end })
}

/// Decode references and normalise NUL and line ends; borrows where there is nothing to do. O(n).
pub fn decode(raw: &[u8], references: bool, in_attribute: bool) -> Cow<'_, [u8]> {
    let special = |b: &u8| matches!(*b, b'&' | b'\r' | 0);
    let Some(first) = memchr::memchr3(b'&', b'\r', 0, raw) else { return Cow::Borrowed(raw) };
    let mut out = Vec::with_capacity(raw.len());
    out.extend_from_slice(&raw[..first]);
    let mut p = first;
    let mut buffer = [0u8; 4];
    while p < raw.len() {
        match raw[p] {
            b'&' => match if references { reference(&raw[p..], in_attribute) } else { None } {
                Some(found) => {
                    out.extend_from_slice(found.bytes(&mut buffer));
                    p += found.len;
                }
                None => {
                    out.push(b'&');
                    p += 1;
                }
            },
            b'\r' => {
                out.push(b'\n');
                p += if raw.get(p + 1) == Some(&b'\n') { 2 } else { 1 };
            }
            0 => {
                out.extend_from_slice("\u{FFFD}".as_bytes());
                p += 1;
            }
            _ => {
                let next = raw[p..].iter().position(|b| special(b)).unwrap_or(raw.len() - p);
                out.extend_from_slice(&raw[p..p + next]);
                p += next;
            }
        }
    }
    Cow::Owned(out)
}
