//! The encoding of a body (BOM, header, <meta>, UTF-8 by its bytes), its decoding to UTF-8, and the queries of its links.

use std::borrow::Cow;
use std::fmt::Write;

use encoding_rs::{EncoderResult, Encoding, UTF_8, WINDOWS_1252};
use memchr::memmem;

use crate::tags::*;
use crate::tokenizer::{is_space, Raw, Token, Tokenizer};

/// Bytes that the prescan reads, by the standard, body or not.
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
    let start = &body[..body.len().min(PRESCAN)];
    if let Some(encoding) = prescan(start).or_else(|| if start.len() < body.len() { in_head(body) } else { None }) {
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

/// The encoding of the queries of a page's links; None for UTF-8, which needs no step.
pub type Queries = Option<&'static Encoding>;

/// The same of a page with this label: its own encoding, UTF-8 where that is UTF-16. "" = windows-1252.
pub fn queries(label: &str) -> Queries {
    let encoding = if label.is_empty() { WINDOWS_1252 } else { Encoding::for_label(label.as_bytes())? };
    Some(encoding.output_encoding()).filter(|encoding| *encoding != UTF_8)
}

/// A reference with the characters of its query percent-encoded in `queries`, those that it has not as a numeric
/// reference ("encoding-parse a URL" of the HTML standard). The path stays as it is, and so does a URL of another scheme
/// than http and https. O(n).
pub fn query_in(reference: Cow<'_, str>, queries: Queries) -> Cow<'_, str> {
    let Some(encoding) = queries.filter(|_| !reference.is_ascii()) else { return reference };
    let end = memchr::memchr(b'#', reference.as_bytes()).unwrap_or(reference.len());
    let Some(start) = memchr::memchr(b'?', &reference.as_bytes()[..end]) else { return reference };
    if reference[start..end].is_ascii() || !is_http(&reference[..start]) {
        return reference;
    }
    let mut out = String::with_capacity(2 * reference.len());
    out.push_str(&reference[..start]);
    // Half a character may be any ASCII letter or sign: those that are in no query (RFC 3986) are encoded, too.
    let stays = |byte: u8, ascii: bool| ascii || byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
    percent_encode(&reference[start..end], encoding, stays, &mut out);
    out.push_str(&reference[end..]);
    Cow::Owned(out)
}

/// Whether a reference is relative, or a URL of http or https.
fn is_http(reference: &str) -> bool {
    let reference = reference.trim_start_matches(|c: char| c <= ' ');
    let scheme = reference.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))).next();
    let scheme = scheme.filter(|scheme| reference[scheme.len()..].starts_with(':')).unwrap_or("http");
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// A name or value of a form as application/x-www-form-urlencoded in `queries`. O(n).
pub fn form_encoded(text: &str, queries: Queries) -> String {
    let mut out = String::with_capacity(2 * text.len());
    let stays = |byte: u8, _| byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'-' | b'.' | b'_' | b' ');
    percent_encode(text, queries.unwrap_or(UTF_8), stays, &mut out);
    out.replace(' ', "+")
}

/// `stays`: by a byte, and whether the text is ASCII there.
fn percent_encode(text: &str, encoding: &'static Encoding, stays: impl Fn(u8, bool) -> bool, out: &mut String) {
    let (mut encoder, mut buffer) = (encoding.new_encoder(), [0u8; 1024]);
    let mut rest = text;
    while let Some(first) = rest.as_bytes().first() {
        let ascii = first.is_ascii();
        let (mut run, after) = rest.split_at(rest.bytes().position(|b| b.is_ascii() != ascii).unwrap_or(rest.len()));
        loop {
            let (result, read, written) =
                encoder.encode_from_utf8_without_replacement(run, &mut buffer, after.is_empty());
            for byte in &buffer[..written] {
                let _ = match stays(*byte, ascii) {
                    true => out.write_char(char::from(*byte)),
                    false => write!(out, "%{byte:02X}"),
                };
            }
            run = &run[read..];
            match result {
                EncoderResult::InputEmpty => break,
                EncoderResult::OutputFull => {}
                EncoderResult::Unmappable(c) => {
                    let _ = write!(out, "%26%23{}%3B", u32::from(c));
                }
            }
        }
        rest = after;
    }
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

/// The same by a <meta> of the head behind those bytes, as Chromium: the first tag that is of no head ends the search.
/// O(bytes of the head).
fn in_head(body: &[u8]) -> Option<&'static Encoding> {
    let mut tok = Tokenizer::new(body);
    loop {
        match tok.next() {
            Token::Text(_) | Token::RawText(..) => {}
            Token::Start => {
                let raw = match tok.tag {
                    META => {
                        if let Some(encoding) = meta(body, &mut (tok.name.1 as usize)) {
                            return Some(encoding);
                        }
                        continue;
                    }
                    HTML | HEAD | NOSCRIPT | LINK | BASE | OBJECT => continue,
                    SCRIPT => Raw::Script,
                    STYLE => Raw::Rawtext,
                    TITLE => Raw::Rcdata,
                    _ => return None,
                };
                tok.raw = raw;
                tok.raw_name = tok.slice(tok.name);
            }
            Token::End if matches!(tok.tag, META | NOSCRIPT | LINK | BASE | OBJECT | SCRIPT | STYLE | TITLE) => {}
            Token::End | Token::Eof => return None,
        }
    }
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
