//! Which elements a browser does not show by their own attributes: HTML's rendering 15.3.1 and inline styles. Style sheets
//! are not read.

use std::borrow::Cow;

use crate::entities;
use crate::tags::*;
use crate::tokenizer::Tokenizer;

/// The flags that the attributes of the current tag give its element: `F_HIDDEN`, with `F_VEILED` where what is in it may
/// be visible again, or `F_SHOWN` where it is. O(attributes, and the length of a style).
#[inline(always)]
pub fn flags_of(tag: u8, tok: &Tokenizer<'_>) -> u16 {
    if tag == DIALOG || tok.may_have(&[b"style", b"hidden", b"popover", b"aria-hidden"]) {
        return flags_of_attributes(tag, tok);
    }
    0
}

fn flags_of_attributes(tag: u8, tok: &Tokenizer<'_>) -> u16 {
    let mut flags = if tag == DIALOG { F_HIDDEN } else { 0 };
    for attr in &tok.attrs {
        let (start, end) = attr.name;
        // By length and letter first: most attributes are none of these.
        match (end - start, tok.input[start as usize] | 0x20) {
            (4, b'o') if tag == DIALOG && tok.slice(attr.name).eq_ignore_ascii_case(b"open") => flags = 0,
            (5, b's') if tok.slice(attr.name).eq_ignore_ascii_case(b"style") => {
                flags |= flags_of_style(tok.slice(attr.value));
            }
            (6, b'h') if tok.slice(attr.name).eq_ignore_ascii_case(b"hidden") => {
                // Its content is found by a search and by the fragment of a link; React moves its streamed parts.
                let comes_later = || tok.attr(b"id").is_some_and(|id| id.starts_with(b"S:"));
                if !tok.slice(attr.value).eq_ignore_ascii_case(b"until-found") && !comes_later() {
                    flags |= F_HIDDEN;
                }
            }
            (7, b'p') if tok.slice(attr.name).eq_ignore_ascii_case(b"popover") => flags |= F_HIDDEN,
            (11, b'a') if tok.slice(attr.name).eq_ignore_ascii_case(b"aria-hidden") => {
                if tok.slice(attr.value).eq_ignore_ascii_case(b"true") && is_put_away(tag, tok) {
                    flags |= F_HIDDEN;
                }
            }
            _ => {}
        }
    }
    flags
}

/// Whether an element that assistive technology does not see is one that nobody sees: a dialog that is closed, or what
/// the keyboard cannot reach either, as the slides beside the one that is shown. Alone, `aria-hidden` hides nothing: it
/// stands on ornaments, and on the whole page while a dialog is open.
fn is_put_away(tag: u8, tok: &Tokenizer<'_>) -> bool {
    let is_dialog = |role: &[u8]| role.eq_ignore_ascii_case(b"dialog") || role.eq_ignore_ascii_case(b"alertdialog");
    let is_content = matches!(tag, MAIN | ARTICLE);
    let unreachable = || tok.attr(b"tabindex").is_some_and(|index| index.trim_ascii() == b"-1");
    !is_content && CATS[tag as usize] & C_BLOCK != 0 && (unreachable() || tok.attr(b"role").is_some_and(is_dialog))
}

fn flags_of_style(style: &[u8]) -> u16 {
    // Both names have this letter.
    if memchr::memchr3(b'y', b'Y', b'&', style).is_none() {
        return 0;
    }
    let style = match memchr::memchr(b'&', style) {
        None => Cow::Borrowed(style),
        Some(_) => entities::decode(style, true, true),
    };
    let (mut display, mut visibility) = (0, 0);
    for declaration in style.split(|byte| *byte == b';') {
        let Some(colon) = memchr::memchr(b':', declaration) else { continue };
        let (name, value) = (declaration[..colon].trim_ascii(), &declaration[colon + 1..]);
        let end = memchr::memchr(b'!', value).unwrap_or(value.len());
        let is = |word: &[u8]| value[..end].trim_ascii().eq_ignore_ascii_case(word);
        // The last one counts.
        if name.eq_ignore_ascii_case(b"display") {
            display = if is(b"none") { F_HIDDEN } else { 0 };
        } else if name.eq_ignore_ascii_case(b"visibility") {
            visibility = match () {
                () if is(b"hidden") || is(b"collapse") => F_HIDDEN | F_VEILED,
                () if is(b"visible") || is(b"initial") => F_SHOWN,
                () => 0,
            };
        }
    }
    if display != 0 {
        display
    } else {
        visibility
    }
}
