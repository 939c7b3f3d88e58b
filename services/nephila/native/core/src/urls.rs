//! URLs: WHATWG parsing by the url crate, the canonical profile (KEY_VERSION 2) and a fast path past the crate.
//!
//! Invariant: the fast path either answers exactly as the crate would or not at all.

use nephila_wide::md5;
use url::Url;

use crate::encoding::{query_in, Queries};
pub use crate::whatwg::{parse_http, reason, Href, Parts, Refusal};

/// A base to resolve against, taken apart once per page.
pub struct Base {
    pub url: Url,
    https: bool,
    /// Whether the URL has credentials, which links to its own origin share.
    userinfo: bool,
    /// Length of "scheme://userinfo@host:port" in the href.
    authority: usize,
    /// Length up to and with the last "/" of the path.
    directory: usize,
    /// Without fragment.
    href: Href,
    queries: Queries,
}

impl Base {
    /// `queries`: the encoding of the queries of references.
    pub fn new(url: Url, queries: Queries) -> Base {
        let href = Href::new(&url, false);
        let path = &href.text[..href.parts.query as usize];
        let authority = href.parts.host.1 as usize;
        let directory = path.rfind('/').map_or(path.len(), |at| at + 1).max(authority);
        let userinfo = !url.username().is_empty() || url.password().is_some();
        Base { https: url.scheme() == "https", userinfo, authority, directory, href, url, queries }
    }

    pub fn href(&self) -> &str {
        &self.href.text
    }
}

/// Resolve `raw` against `base` and append the href (no fragment) to `out`; offsets are relative to what is appended.
pub fn resolve(base: &Base, raw: &str, out: &mut Vec<u8>) -> Result<Parts, Refusal> {
    let trimmed = raw.trim_matches(|c: char| c <= ' ');
    if let Some(parts) = fast(base, trimmed.as_bytes(), out) {
        return Ok(parts);
    }
    if let Some(scheme) = other_scheme(trimmed.as_bytes()) {
        return Err(Refusal::Scheme(scheme.into()));
    }
    let href = parse_http(&query_in(trimmed.into(), base.queries), Some(&base.url))?;
    out.extend_from_slice(href.text.as_bytes());
    Ok(href.parts)
}

/// Schemes whose URLs always parse and are never fetched: the crate need not be asked.
fn other_scheme(raw: &[u8]) -> Option<&'static str> {
    ["javascript", "mailto", "tel", "data"].into_iter().find(|scheme| {
        // With "://" there is a host, which may be wrong.
        raw.get(scheme.len()) == Some(&b':')
            && raw.get(scheme.len() + 1) != Some(&b'/')
            && raw[..scheme.len()].eq_ignore_ascii_case(scheme.as_bytes())
    })
}

const PATH: u8 = 1;
const QUERY: u8 = 2;
const HOST: u8 = 4;

/// The parts of a URL in which the parser does not change a byte.
static SAFE: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut b = 0x21;
    while b < 0x7F {
        let c = b as u8;
        if !matches!(c, b'"' | b'#' | b'<' | b'>' | b'\'' | b'?' | b'`' | b'{' | b'}' | b'^' | b'|' | b'\\') {
            table[b] |= PATH | QUERY;
        }
        if c == b'?' {
            table[b] |= QUERY;
        }
        if matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.') {
            table[b] |= HOST;
        }
        b += 1;
    }
    table
};

/// The href of `raw` where it can be had by copying; None = ask the crate.
fn fast(base: &Base, raw: &[u8], out: &mut Vec<u8>) -> Option<Parts> {
    if base.userinfo {
        return None;
    }
    let from = out.len();
    let found = fast_into(base, raw, out);
    if found.is_none() {
        out.truncate(from);
    }
    found
}

#[inline]
fn fast_into(base: &Base, raw: &[u8], out: &mut Vec<u8>) -> Option<Parts> {
    let whole = base.href.text.as_bytes();
    let Some(&first) = raw.first() else {
        out.extend_from_slice(whole);
        return Some(base.href.parts);
    };
    match first {
        b'#' => {
            out.extend_from_slice(whole);
            Some(base.href.parts)
        }
        b'/' if raw.get(1) == Some(&b'/') => {
            let prefix: &[u8] = if base.https { b"https:" } else { b"http:" };
            out.extend_from_slice(prefix);
            absolute(raw, prefix.len() as u32, 2, base.https, out)
        }
        b'/' => {
            out.extend_from_slice(&whole[..base.authority]);
            tail(raw, base.authority as u32, base.href.parts.host, out)
        }
        b'h' if raw.starts_with(b"http://") => absolute(raw, 0, 7, false, out),
        b'h' if raw.starts_with(b"https://") => absolute(raw, 0, 8, true, out),
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => {
            let segment =
                raw.iter().take_while(|b| SAFE[**b as usize] & PATH != 0 && !matches!(**b, b'/' | b':')).count();
            if raw.get(segment) == Some(&b':') || base.directory == base.authority {
                return None;
            }
            out.extend_from_slice(&whole[..base.directory]);
            tail(raw, base.directory as u32, base.href.parts.host, out)
        }
        _ => None,
    }
}

/// `raw[skip..]` is host, port, path and query; `before` bytes of the href come from elsewhere.
#[inline]
fn absolute(raw: &[u8], before: u32, skip: usize, https: bool, out: &mut Vec<u8>) -> Option<Parts> {
    let host_len = raw[skip..].iter().take_while(|b| SAFE[**b as usize] & HOST != 0).count();
    let host = &raw[skip..skip + host_len];
    if !plain_host(host) {
        return None;
    }
    let mut end = skip + host_len;
    if raw.get(end) == Some(&b':') {
        let digits = raw[end + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        let text = &raw[end + 1..end + 1 + digits];
        if digits == 0 || digits > 5 || text[0] == b'0' {
            return None;
        }
        let port = text.iter().fold(0u32, |port, d| port * 10 + u32::from(d - b'0'));
        if port > 65_535 || port == if https { 443 } else { 80 } {
            return None;
        }
        end += 1 + digits;
    }
    out.extend_from_slice(&raw[..end]);
    let span = (before + skip as u32, before + end as u32);
    match raw.get(end) {
        None | Some(b'#') => {
            out.push(b'/');
            Some(Parts { host: span, query: span.1 + 1 })
        }
        Some(b'/') => tail(&raw[end..], span.1, span, out),
        _ => None,
    }
}

/// A lower-case ASCII host that is its own serialisation: no punycode, no IPv4 in disguise, no empty label.
#[inline]
fn plain_host(host: &[u8]) -> bool {
    let mut label = 0;
    for (at, b) in host.iter().enumerate() {
        if *b == b'.' {
            if at == label {
                return false;
            }
            label = at + 1;
        } else if at == label + 3 && *b == b'-' && host[at - 1] == b'-' {
            return false;
        }
    }
    label < host.len() && !host[label].is_ascii_digit()
}

/// Append a path (with its query) that needs no change; `before` bytes of the href are there already.
#[inline]
fn tail(raw: &[u8], before: u32, host: (u32, u32), out: &mut Vec<u8>) -> Option<Parts> {
    let mut p = 0;
    let mut query = None;
    while p < raw.len() {
        let b = raw[p];
        let class = SAFE[b as usize];
        if class & PATH == 0 {
            if b == b'#' {
                break;
            }
            if b == b'?' {
                query = Some(p);
                while p < raw.len() && SAFE[raw[p] as usize] & QUERY != 0 {
                    p += 1;
                }
                if p < raw.len() && raw[p] != b'#' {
                    return None;
                }
                break;
            }
            return None;
        }
        // Dot segments, written as dots or as %2e, are the crate's business.
        if b == b'/' && (raw.get(p + 1) == Some(&b'.') || raw[p + 1..].starts_with(b"%2")) {
            return None;
        }
        p += 1;
    }
    out.extend_from_slice(&raw[..p]);
    Some(Parts { host, query: before + query.unwrap_or(p) as u32 })
}

include!(concat!(env!("OUT_DIR"), "/tracking.rs"));

const LONGEST_TRACKING: usize = 16;

fn name_of(piece: &[u8]) -> &[u8] {
    &piece[..memchr::memchr(b'=', piece).unwrap_or(piece.len())]
}

fn is_tracking(name: &[u8]) -> bool {
    // A prefix is shorter than the buffer, so the first bytes decide about a longer name.
    let mut lower = [0u8; LONGEST_TRACKING + 1];
    let length = name.len().min(lower.len());
    lower[..length].copy_from_slice(&name[..length]);
    lower.make_ascii_lowercase();
    length > 2 && in_table(&lower[..length])
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

/// The text with its percent-encoded unreserved characters (RFC 3986, 6.2.2.2) decoded; None when it has none. O(n).
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut copied = 0;
    for at in memchr::memchr_iter(b'%', text) {
        let [Some(high), Some(low)] = [1, 2].map(|next| text.get(at + next).and_then(|digit| hex(*digit))) else {
            continue;
        };
        let byte = high << 4 | low;
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.extend_from_slice(&text[copied..at]);
            out.push(byte);
            copied = at + 3;
        }
    }
    (copied > 0).then(|| {
        out.extend_from_slice(&text[copied..]);
        out
    })
}

/// Append the canonical form of `href` to `out` unless it is the href itself; true if it was appended. O(n log n).
pub fn canonicalise(href: &[u8], parts: Parts, out: &mut Vec<u8>) -> bool {
    let path = parts.host.1 as usize;
    let Some(plain) = decoded(&href[path..]) else {
        return without_tracking(href, parts.query as usize, out);
    };
    let whole = [&href[..path], &plain].concat();
    let query = memchr::memchr(b'?', &plain).map_or(whole.len(), |at| path + at);
    if !without_tracking(&whole, query, out) {
        out.extend_from_slice(&whole);
    }
    true
}

/// Append `href` with its query sorted by name, without tracking parameters and empty pieces, unless that changes
/// nothing; true if it was appended.
fn without_tracking(href: &[u8], query: usize, out: &mut Vec<u8>) -> bool {
    if query >= href.len() {
        return false;
    }
    let pieces = || href[query + 1..].split(|b| *b == b'&');
    let mut last: &[u8] = b"";
    let clean = pieces().all(|piece| {
        let name = name_of(piece);
        let fits = !piece.is_empty() && !is_tracking(name) && last <= name;
        last = name;
        fits
    });
    if clean {
        return false;
    }
    let mut kept: Vec<&[u8]> = pieces().filter(|piece| !piece.is_empty() && !is_tracking(name_of(piece))).collect();
    kept.sort_by(|a, b| name_of(a).cmp(name_of(b)));
    out.extend_from_slice(&href[..query]);
    for (index, piece) in kept.iter().enumerate() {
        out.push(if index == 0 { b'?' } else { b'&' });
        out.extend_from_slice(piece);
    }
    true
}

/// MD5(host key)[0:4] then MD5(canonical)[0:12].
pub fn fingerprint(host_key: &[u8], canonical: &[u8]) -> [u8; 16] {
    let mut out = [0u8; 16];
    out[..4].copy_from_slice(&md5::digest(host_key)[..4]);
    out[4..].copy_from_slice(&md5::digest(canonical)[..12]);
    out
}
