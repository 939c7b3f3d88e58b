//! Lines of a robots.txt as Google's parser reads them: key and value, with every leniency that site owners rely on.
//!
//! Invariant: octets in, octets out; any input is read, none fails. O(bytes).

use memchr::{memchr, memchr2};

/// Longer lines are cut, as Google's parser does; the rest of the line is ignored.
const MAX_LINE: usize = 2083 * 8 - 1;
const BOM: [u8; 3] = *b"\xef\xbb\xbf";

/// What a line means; decided by how its key begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Agent,
    Allow,
    Disallow,
    Sitemap,
    Delay,
    Other,
}

const KEYS: [(Kind, &[&[u8]]); 5] = [
    (Kind::Agent, &[b"user-agent", b"useragent", b"user agent"]),
    (Kind::Allow, &[b"allow"]),
    (Kind::Disallow, &[b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"]),
    (Kind::Sitemap, &[b"sitemap", b"site-map"]),
    (Kind::Delay, &[b"crawl-delay", b"crawldelay", b"crawl delay"]),
];

/// One line that has a key.
pub struct Line<'a> {
    /// Number of the line, from 1.
    pub number: u32,
    pub kind: Kind,
    pub value: &'a [u8],
}

/// Every line of a body that has a key.
pub fn lines(body: &[u8]) -> Lines<'_> {
    let mut rest = body;
    for octet in BOM {
        // Whole or torn.
        match rest.split_first() {
            Some((first, after)) if *first == octet => rest = after,
            _ => break,
        }
    }
    Lines { rest: Some(rest), number: 0 }
}

/// Iterator of `lines`.
pub struct Lines<'a> {
    rest: Option<&'a [u8]>,
    number: u32,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        while let Some(rest) = self.rest {
            let end = memchr2(b'\n', b'\r', rest);
            let raw = &rest[..end.unwrap_or(rest.len())];
            self.rest = end.map(|at| &rest[at + if rest[at..].starts_with(b"\r\n") { 2 } else { 1 }..]);
            self.number = self.number.saturating_add(1);
            if let Some((key, value)) = key_value(raw) {
                return Some(Line { number: self.number, kind: kind_of(key), value });
            }
        }
        None
    }
}

/// Key and value of a line without its comment; a colon may be missing between exactly two words.
fn key_value(raw: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut line = &raw[..raw.len().min(MAX_LINE)];
    for end in [0, b'#'] {
        line = &line[..memchr(end, line).unwrap_or(line.len())];
    }
    let line = trim(line);
    let (key, value) = match memchr(b':', line) {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => {
            let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
            match (words.next(), words.next(), words.next()) {
                (Some(key), Some(value), None) => (key, value),
                _ => return None,
            }
        }
    };
    let key = trim(key);
    (!key.is_empty()).then(|| (key, trim(value)))
}

fn kind_of(key: &[u8]) -> Kind {
    let is = |start: &&[u8]| key.len() >= start.len() && key[..start.len()].eq_ignore_ascii_case(start);
    KEYS.iter().find(|(_, starts)| starts.iter().any(is)).map_or(Kind::Other, |(kind, _)| *kind)
}

pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let Some((first, rest)) = text.split_first() {
        if !is_space(*first) {
            break;
        }
        text = rest;
    }
    while let Some((last, rest)) = text.split_last() {
        if !is_space(*last) {
            break;
        }
        text = rest;
    }
    text
}

/// The product token at the start of a User-Agent, in lower case.
pub fn token(agent: &[u8]) -> Vec<u8> {
    let is_part = |byte: &&u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
    agent.iter().take_while(is_part).map(u8::to_ascii_lowercase).collect()
}

/// Escapes in capitals, octets above ASCII escaped.
pub fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        if byte == b'%' && escape_at(text, at).is_some() {
            out.extend(text[at..at + 3].iter().map(u8::to_ascii_uppercase));
            at += 3;
            continue;
        }
        if byte.is_ascii() {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
        at += 1;
    }
    out
}

/// A pattern whose `$` before its end are escaped: they are no anchor there, and `%24` in a rule means the same
/// character (RFC 9309 2.2.3).
pub fn with_literal_dollars(pattern: Vec<u8>) -> Vec<u8> {
    let inner = pattern.len().saturating_sub(1);
    if memchr(b'$', &pattern[..inner]).is_none() {
        return pattern;
    }
    let mut out = special_escaped(&pattern[..inner], b"$");
    out.extend_from_slice(&pattern[inner..]);
    out
}

/// A path whose `*` and `$` are escaped, as rules name these characters (RFC 9309 2.2.3). None where it has none.
pub fn with_escaped_specials(path: &[u8]) -> Option<Vec<u8>> {
    memchr2(b'*', b'$', path).map(|_| special_escaped(path, b"*$"))
}

fn special_escaped(text: &[u8], special: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 8);
    for &byte in text {
        if special.contains(&byte) {
            out.extend_from_slice(if byte == b'*' { b"%2A" } else { b"%24" });
        } else {
            out.push(byte);
        }
    }
    out
}

/// Unreserved characters never need an escape (RFC 9309 2.2.2, RFC 3986 2.3). None where nothing is to be decoded.
pub fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut at, mut kept) = (0, 0);
    while let Some(found) = memchr(b'%', &text[at..]) {
        at += found;
        match escape_at(text, at) {
            Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') => {
                out.extend_from_slice(&text[kept..at]);
                out.push(byte);
                at += 3;
                kept = at;
            }
            Some(_) => at += 3,
            None => at += 1,
        }
    }
    (kept > 0).then(|| {
        out.extend_from_slice(&text[kept..]);
        out
    })
}

fn escape_at(text: &[u8], at: usize) -> Option<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    match text.get(at + 1..at + 3) {
        Some(&[high, low]) => Some((digit(high)? * 16 + digit(low)?) as u8),
        _ => None,
    }
}
