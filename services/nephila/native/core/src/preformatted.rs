//! Which <code> elements are preformatted blocks without a <pre> around them: by their own white-space and a line feed,
//! or by the classes of Verso, whose style sheet says so.
//!
//! Editors give inline code `white-space: pre-wrap` as well, so a style alone is not enough.

use crate::tokenizer::Tokenizer;

/// Bytes behind the tag in which the first line feed stands.
const LOOK_BYTES: usize = 4096;

/// Whether the current tag, a <code>, opens such a block. O(attributes + LOOK_BYTES).
pub fn is_block(tok: &Tokenizer<'_>) -> bool {
    tok.may_have(&[b"style", b"class"])
        && (tok.attr(b"class").is_some_and(is_verso) || tok.attr(b"style").is_some_and(keeps_lines) && has_lines(tok))
}

fn is_verso(class: &[u8]) -> bool {
    let has = |name: &[u8]| class.split(u8::is_ascii_whitespace).any(|word| word == name);
    has(b"hl") && has(b"block")
}

/// Whether the last `white-space` of a style keeps spaces and line feeds.
fn keeps_lines(style: &[u8]) -> bool {
    let mut keeps = false;
    for declaration in style.split(|byte| *byte == b';') {
        let Some(colon) = memchr::memchr(b':', declaration) else { continue };
        if declaration[..colon].trim_ascii().eq_ignore_ascii_case(b"white-space") {
            let value = declaration[colon + 1..].split(|byte| *byte == b'!').next().unwrap_or_default().trim_ascii();
            let is = |word: &[u8]| value.eq_ignore_ascii_case(word);
            keeps = is(b"pre") || is(b"pre-wrap") || is(b"break-spaces");
        }
    }
    keeps
}

/// Whether a line feed stands between the first word behind the tag and the next end of a <code>.
fn has_lines(tok: &Tokenizer<'_>) -> bool {
    let rest = &tok.input[tok.pos..];
    let rest = rest[..rest.len().min(LOOK_BYTES)].trim_ascii_start();
    let end = memchr::memmem::find(rest, b"</code").unwrap_or(rest.len());
    memchr::memchr(b'\n', rest[..end].trim_ascii_end()).is_some()
}
