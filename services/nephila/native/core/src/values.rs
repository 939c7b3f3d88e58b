//! Values of attributes that become metadata: trimmed, bounded, in the one form of text.

use std::borrow::Cow;

use crate::spelling::spelled_text;
use crate::tokenizer::is_space;

/// Longest meta content, title and the like in bytes.
pub const MAX_VALUE: usize = 8192;

/// Without the space around it.
pub fn trimmed(bytes: &[u8]) -> &[u8] {
    let from = bytes.iter().position(|b| !is_space(*b)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|b| !is_space(*b)).map_or(from, |at| at + 1);
    &bytes[from..end]
}

/// Trimmed, at most `MAX_VALUE` bytes, valid UTF-8 because the input is.
pub fn value(bytes: Cow<'_, [u8]>) -> String {
    let kept = trimmed(&bytes);
    let mut end = kept.len().min(MAX_VALUE);
    while kept.get(end).is_some_and(|b| b & 0xC0 == 0x80) {
        end -= 1;
    }
    String::from_utf8_lossy(&kept[..end]).into_owned()
}

/// Text of a value in the one form.
pub fn spelled_value(text: String) -> String {
    match spelled_text(Cow::Borrowed(&text)) {
        Cow::Borrowed(_) => text,
        Cow::Owned(form) => form.trim_matches(|c| u8::try_from(c).is_ok_and(is_space)).to_owned(),
    }
}
