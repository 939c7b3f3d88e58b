//! Whether a text has white space that collapsing would change: the test before the work, for values of rules.
//!
//! Invariant: true only where collapsing each run of white space to one space leaves all but both ends as they are.

use pyo3::prelude::*;

/// ASCII with no white space but single spaces. O(n), some bytes a nanosecond at a time. The text must have no lone
/// surrogates (UnicodeEncodeError).
#[pyfunction]
pub fn is_tidy(text: &str) -> bool {
    tidy(text.as_bytes())
}

fn tidy(text: &[u8]) -> bool {
    // One pass without branches, which the compiler makes wide.
    let rest = text.get(1..).unwrap_or(&[]);
    let pairs = text.iter().zip(rest).fold(0u8, |bad, (a, b)| bad | (u8::from(*a == b' ') & u8::from(*b == b' ')));
    let bytes = text.iter().fold(0u8, |bad, byte| bad | (u8::from(*byte < b' ') | u8::from(*byte > b'~')));
    pairs | bytes == 0
}

#[cfg(test)]
mod tests {
    use super::tidy;

    #[test]
    fn runs_and_controls_are_seen() {
        for text in ["", "a", " a b ", "a b c d e f g h i j k l m n o p q r s t u v w x y z"] {
            assert!(tidy(text.as_bytes()), "{text:?}");
        }
        for text in ["a  b", "  ", "a\nb", "a\tb", "é", "a\u{a0}b", "x\u{7f}", "abcdefghijklmnopqrstuvwxyz 0123456789  "] {
            assert!(!tidy(text.as_bytes()), "{text:?}");
        }
    }
}
