//! The one form of text: NFC, plain spaces for no-break spaces, no soft hyphens and word joiners.
//!
//! U+200C and U+200D stay: they are spelling in many scripts and in emoji. fallback/spelling.py has the same form.
//! Decision: docs/adr/0241.

use std::borrow::Cow;
use std::sync::OnceLock;

use icu_normalizer::properties::{CanonicalCombiningClassMapBorrowed, CanonicalDecompositionBorrowed, Decomposed};
use icu_normalizer::ComposingNormalizerBorrowed;
use nephila_wide::Sixteen;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

const NFC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();

/// What NFC or the form may do with a character of the basic plane.
type Classes = [u8; 1 << 16];
/// Always the same, whatever stands around it.
const INERT: u8 = 0;
/// A combining mark: its order counts behind another one.
const MARK: u8 = 1;
/// It may be replaced, or joined with what is before it.
const CANDIDATE: u8 = 2;

/// Made once, in some 2 ms.
fn classes() -> &'static Classes {
    static CLASSES: OnceLock<Box<Classes>> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let mut made = Box::new([INERT; 1 << 16]);
        let (marks, parts) = (CanonicalCombiningClassMapBorrowed::new(), CanonicalDecompositionBorrowed::new());
        for c in '\u{80}'..='\u{FFFF}' {
            if marks.get_u8(c) != 0 {
                made[c as usize] = made[c as usize].max(MARK);
            }
            match parts.decompose(c) {
                Decomposed::Default => {}
                Decomposed::Singleton(_) => made[c as usize] = CANDIDATE,
                Decomposed::Expansion(_, second) => {
                    if !NFC.is_normalized(c.encode_utf8(&mut [0; 4])) {
                        made[c as usize] = CANDIDATE;
                    }
                    if let Some(class) = made.get_mut(second as usize) {
                        *class = CANDIDATE;
                    }
                }
            }
        }
        // Vowels and final consonants of Korean syllables.
        made[0x1161..=0x1175].fill(CANDIDATE);
        made[0x11A7..=0x11C2].fill(CANDIDATE);
        SPACES.iter().chain(&UNSEEN).for_each(|c| made[*c as usize] = CANDIDATE);
        made
    })
}

/// No-break spaces.
const SPACES: [char; 3] = ['\u{A0}', '\u{2007}', '\u{202F}'];
/// Soft hyphen and word joiners.
const UNSEEN: [char; 3] = ['\u{AD}', '\u{2060}', '\u{FEFF}'];

/// The form of a text: borrowed where the text has it. ASCII costs a fraction of a nanosecond a byte, and so do letters
/// of the common alphabets and of Chinese.
pub fn spelled(text: &[u8]) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    spelled_letters(text)
}

/// As `spelled`, of a text that is not ASCII.
pub fn spelled_letters(text: &[u8]) -> Cow<'_, [u8]> {
    let classes = classes();
    let (mut start, mut after_mark) = (0, usize::MAX);
    while start < text.len() {
        let bytes = Sixteen::at(text, start);
        let mut leads = bytes.is(0xC2) | bytes.within(0xCC, 0xCE) | bytes.is(0xD2) | bytes.within(0xD6, 0xE3);
        leads |= bytes.is(0xEA) | bytes.within(0xED, 0xFF);
        while leads != 0 {
            let at = start + leads.trailing_zeros() as usize;
            leads &= leads - 1;
            let (class, size) = class_at(classes, text, at);
            if class == CANDIDATE || class == MARK && at == after_mark {
                return form(text);
            }
            if class == MARK {
                after_mark = at + size;
            }
        }
        start += 16;
    }
    Cow::Borrowed(text)
}

/// Class and bytes of the character at `at`, of two bytes at least.
#[inline(always)]
fn class_at(classes: &Classes, text: &[u8], at: usize) -> (u8, usize) {
    let low = |offset: usize| text.get(at + offset).map_or(0, |byte| usize::from(byte & 0x3F));
    match text[at] {
        // Emoji.
        0xF0 if text.get(at + 1) == Some(&0x9F) => (INERT, 4),
        0xF0.. => (CANDIDATE, 4),
        lead @ 0xE0.. => (classes[usize::from(lead & 0xF) << 12 | low(1) << 6 | low(2)], 3),
        lead => (classes[usize::from(lead & 0x1F) << 6 | low(1)], 2),
    }
}

/// Whether a text begins with a character that NFC may join with the one before it.
#[inline]
pub fn may_join(text: &[u8]) -> bool {
    text.first().is_some_and(|lead| *lead >= 0xCC) && class_at(classes(), text, 0).0 != INERT
}

/// As `spelled`, of a text.
pub fn spelled_text(text: Cow<'_, str>) -> Cow<'_, str> {
    match spelled(text.as_bytes()) {
        Cow::Borrowed(_) => text,
        Cow::Owned(form) => Cow::Owned(String::from_utf8_lossy(&form).into_owned()),
    }
}

fn form(text: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(text) else { return Cow::Borrowed(text) };
    let is_other = |c: char| SPACES.contains(&c) || UNSEEN.contains(&c);
    let plain = |c: char| match c {
        _ if SPACES.contains(&c) => Some(' '),
        _ if UNSEEN.contains(&c) => None,
        _ => Some(c),
    };
    if text.contains(is_other) {
        let replaced: String = text.chars().filter_map(plain).collect();
        return Cow::Owned(NFC.normalize(&replaced).into_owned().into_bytes());
    }
    match NFC.normalize(text) {
        Cow::Borrowed(_) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(normal) => Cow::Owned(normal.into_bytes()),
    }
}

/// UTF-8 text in the one form: NFC, no-break spaces as spaces, without soft hyphens and word joiners. O(n).
#[pyfunction]
#[pyo3(name = "spelled")]
pub fn spelled_bytes<'py>(text: &Bound<'py, PyBytes>) -> Bound<'py, PyBytes> {
    match spelled(text.as_bytes()) {
        Cow::Borrowed(_) => text.clone(),
        Cow::Owned(form) => PyBytes::new(text.py(), &form),
    }
}

#[cfg(test)]
mod tests {
    use super::{form, may_join, spelled};

    #[test]
    fn only_candidates_change() {
        // Each character behind others: without the class of a candidate it is in the form.
        for c in '\u{80}'..=char::MAX {
            let mut buffer = [0u8; 4];
            let bytes = c.encode_utf8(&mut buffer).as_bytes();
            for before in ["", "a", "a\u{301}", "\u{e01}\u{e49}", "\u{1100}", "\u{ac00}"] {
                let whole = [before.as_bytes(), bytes].concat();
                assert_eq!(spelled(&whole), form(&whole), "U+{:04X} after {before:?}", c as u32);
            }
        }
    }

    #[test]
    fn spelling_stays_and_layout_leaves() {
        for (text, right) in [
            ("Mit\u{ad}tel\u{ad}al\u{ad}ter", "Mittelalter"),
            ("12\u{a0}km\u{202f}h", "12 km h"),
            ("e\u{301}", "é"),
            ("\u{627}\u{653}", "\u{622}"),
            ("\u{6cc}\u{200c}\u{62e}", "\u{6cc}\u{200c}\u{62e}"),
            ("👨\u{200d}👩", "👨\u{200d}👩"),
            ("\u{212b}ngstr\u{f6}m", "\u{c5}ngstr\u{f6}m"),
            ("a\u{2060}b\u{feff}c", "abc"),
            ("漢字かな", "漢字かな"),
        ] {
            assert_eq!(spelled(text.as_bytes()), right.as_bytes());
        }
        assert!(may_join("\u{301}".as_bytes()) && !may_join("é".as_bytes()) && !may_join(b"a") && !may_join(b""));
    }
}
