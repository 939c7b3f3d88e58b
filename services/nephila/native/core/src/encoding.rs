//! The encoding of a body (BOM, header, meta prescan, UTF-8 by its bytes) and its decoding to UTF-8.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use memchr::memmem;

use crate::tokenizer::is_space;

/// Bytes that the prescan reads, by the standard.
const PRESCAN: usize = 1024;

fn name(encoding: &'static Encoding) -> String {
    encoding.name().to_ascii_lowercase()
}

/// The WHATWG name in lower case, or "" if nothing is declared and the body is no UTF-8. O(n).
pub fn sniff(body: &[u8], header: Option<&str>) -> String {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return name(encoding);
    }
    if let Some(encoding) = header.and_then(|label| Encoding::for_label(label.as_bytes())) {
        return name(encoding);
    }
    if let Some(encoding) = prescan(&body[..body.len().min(PRESCAN)]) {
        return name(encoding);
    }
    if simdutf8::basic::from_utf8(body).is_ok() {
        "utf-8".into()
    } else {
        String::new()
    }
}

/// UTF-8 of the body, borrowed where it is that already; None for an unknown label. "" = windows-1252. O(n).
pub fn to_utf8<'b>(body: &'b [u8], label: &str) -> Option<Cow<'b, [u8]>> {
    let encoding = if label.is_empty() { WINDOWS_1252 } else { Encoding::for_label(label.as_bytes())? };
    if encoding == UTF_8 {
        let rest = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
        if simdutf8::basic::from_utf8(rest).is_ok() {
            return Some(Cow::Borrowed(rest));
        }
        return Some(Cow::Owned(String::from_utf8_lossy(rest).into_owned().into_bytes()));
    }
    let (text, _) = encoding.decode_with_bom_removal(body);
    Some(match text {
        Cow::Borrowed(same) => Cow::Borrowed(same.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    })
}

/// "Prescan a byte stream to determine its encoding". O(n): every step moves forward.
pub fn prescan(input: &[u8]) -> Option<&'static Encoding> {
    let mut p = 0;
    while p < input.len() {
        let rest = &input[p..];
        if rest.starts_with(b"<!--") {
            // The two dashes of the opening may be those of the end.
            p += memmem::find(&rest[2..], b"-->").map_or(rest.len(), |at| at + 5);
            continue;
        }
        let is_meta =
            rest.len() > 5 && rest[..5].eq_ignore_ascii_case(b"<meta") && (is_space(rest[5]) || rest[5] == b'/');
        if is_meta {
            p += 5;
            if let Some(found) = meta(input, &mut p) {
                return Some(found);
            }
            continue;
        }
        if rest[0] == b'<' {
            let letter = if rest.get(1) == Some(&b'/') { rest.get(2) } else { rest.get(1) };
            if letter.is_some_and(u8::is_ascii_alphabetic) {
                while p < input.len() && !is_space(input[p]) && input[p] != b'>' {
                    p += 1;
                }
                while attribute(input, &mut p).is_some() {}
                p += 1;
                continue;
            }
            if matches!(rest.get(1), Some(b'!' | b'/' | b'?')) {
                p += memchr::memchr(b'>', rest).map_or(rest.len(), |at| at + 1);
                continue;
            }
        }
        p += 1;
    }
    None
}

fn meta(input: &[u8], p: &mut usize) -> Option<&'static Encoding> {
    let mut names: Vec<&[u8]> = Vec::new();
    let (mut pragma, mut need_pragma) = (false, None);
    let mut charset = None;
    while let Some((name, value)) = attribute(input, p) {
        if names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            continue;
        }
        if name.eq_ignore_ascii_case(b"http-equiv") {
            pragma |= value.eq_ignore_ascii_case(b"content-type");
        } else if name.eq_ignore_ascii_case(b"content") && charset.is_none() {
            if let Some(found) = charset_of(&value.to_ascii_lowercase()).and_then(Encoding::for_label) {
                charset = Some(found);
                need_pragma = Some(true);
            }
        } else if name.eq_ignore_ascii_case(b"charset") {
            charset = Encoding::for_label(value);
            need_pragma = Some(false);
        }
        names.push(name);
    }
    // The byte that ended the attributes.
    *p += 1;
    let needed = need_pragma?;
    if needed && !pragma {
        return None;
    }
    let found = charset?;
    Some(match found.name() {
        "UTF-16BE" | "UTF-16LE" => UTF_8,
        "x-user-defined" => WINDOWS_1252,
        _ => found,
    })
}

/// "Get an attribute": name and value as written; None at `>` (not consumed) or at the end.
fn attribute<'i>(input: &'i [u8], p: &mut usize) -> Option<(&'i [u8], &'i [u8])> {
    let at = |p: usize| input.get(p).copied();
    while at(*p).is_some_and(|b| is_space(b) || b == b'/') {
        *p += 1;
    }
    if at(*p)? == b'>' {
        return None;
    }
    let start = *p;
    let name = loop {
        let b = at(*p)?;
        if b == b'=' && *p > start {
            *p += 1;
            break &input[start..*p - 1];
        }
        if is_space(b) {
            let name = &input[start..*p];
            while at(*p).is_some_and(is_space) {
                *p += 1;
            }
            if at(*p)? != b'=' {
                return Some((name, b""));
            }
            *p += 1;
            break name;
        }
        if matches!(b, b'/' | b'>') {
            return Some((&input[start..*p], b""));
        }
        *p += 1;
    };
    while at(*p).is_some_and(is_space) {
        *p += 1;
    }
    let first = at(*p)?;
    let start = *p;
    if matches!(first, b'"' | b'\'') {
        loop {
            *p += 1;
            if at(*p)? == first {
                *p += 1;
                return Some((name, &input[start + 1..*p - 1]));
            }
        }
    }
    while let Some(b) = at(*p) {
        if is_space(b) || b == b'>' {
            return Some((name, &input[start..*p]));
        }
        *p += 1;
    }
    None
}

/// "Extract a character encoding from a meta element": the label in a content attribute.
fn charset_of(content: &[u8]) -> Option<&[u8]> {
    let mut p = 0;
    loop {
        p += memmem::find(content.get(p..)?, b"charset")? + 7;
        while content.get(p).is_some_and(|b| is_space(*b)) {
            p += 1;
        }
        if *content.get(p)? == b'=' {
            break;
        }
    }
    p += 1;
    while content.get(p).is_some_and(|b| is_space(*b)) {
        p += 1;
    }
    let first = *content.get(p)?;
    if matches!(first, b'"' | b'\'') {
        let rest = &content[p + 1..];
        return Some(&rest[..memchr::memchr(first, rest)?]);
    }
    let rest = &content[p..];
    Some(&rest[..rest.iter().position(|b| is_space(*b) || *b == b';').unwrap_or(rest.len())])
}
