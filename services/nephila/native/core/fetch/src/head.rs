//! Finds and parses response heads: RFC 9112, as lenient as browsers (bare LF, folded lines, invalid lines, any bytes
//! in values). Heads with a status of 1xx before the final one are skipped.

use std::collections::HashMap;

use memchr::memchr_iter;

use crate::config::{MAX_HEAD_BYTES, MAX_INTERIM};
use crate::error::FetchError;

/// A parsed head. Names in lower case, values of repeated names joined; both Latin-1 as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub http11: bool,
    pub headers: Vec<(String, String)>,
}

impl Head {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Index after the empty line that ends the head.
pub fn find_end(buffer: &[u8], start: usize) -> Option<usize> {
    for at in memchr_iter(b'\n', &buffer[start..]) {
        match &buffer[start + at + 1..] {
            [b'\n', ..] => return Some(start + at + 2),
            [b'\r', b'\n', ..] => return Some(start + at + 3),
            _ => {}
        }
    }
    None
}

/// Latin-1 as text.
pub fn latin1(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.is_ascii() => text.to_owned(),
        _ => bytes.iter().map(|&byte| byte as char).collect(),
    }
}

fn status_of(line: &[u8]) -> Option<(u16, bool)> {
    let rest = line.strip_prefix(b"HTTP/1.")?;
    let (&minor, rest) = rest.split_first()?;
    let blanks = rest.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    let digits = rest.get(blanks..blanks + 3)?;
    let followed = rest.get(blanks + 3).is_some_and(u8::is_ascii_digit);
    if !minor.is_ascii_digit() || blanks == 0 || followed || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let status = digits.iter().fold(0, |sum, &digit| sum * 10 + u16::from(digit - b'0'));
    Some((status, minor != b'0'))
}

fn trimmed(bytes: &[u8], strip: fn(u8) -> bool) -> &[u8] {
    let start = bytes.iter().position(|&byte| !strip(byte)).unwrap_or(bytes.len());
    let stop = bytes.iter().rposition(|&byte| !strip(byte)).map_or(start, |at| at + 1);
    &bytes[start..stop]
}

/// Headers that have one value. An equal repetition counts once; a comma may stand in the value itself.
fn is_single(name: &str) -> bool {
    matches!(name, "location" | "refresh" | "retry-after" | "etag" | "last-modified")
}

fn separator(name: &str) -> &'static str {
    match name {
        // An agent name in X-Robots-Tag applies to its own line; a cookie contains a date with a comma.
        "x-robots-tag" | "set-cookie" => "\n",
        _ if is_single(name) => "\n",
        _ => ", ",
    }
}

/// Above this many headers a table finds the earlier ones of a name: a head may have 20,000 names.
const FEW: usize = 32;

struct Headers {
    list: Vec<(String, String)>,
    places: HashMap<String, usize>,
}

impl Headers {
    fn place(&mut self, name: &str) -> Option<usize> {
        if self.list.len() <= FEW {
            return self.list.iter().position(|(known, _)| known == name);
        }
        if self.places.is_empty() {
            let many = self.list.iter().enumerate();
            self.places = many.map(|(place, (name, _))| (name.clone(), place)).collect();
        }
        self.places.get(name).copied()
    }

    fn add(&mut self, name: String, value: &str) -> usize {
        if let Some(place) = self.place(&name) {
            let (name, joined) = &mut self.list[place];
            if is_single(name) && joined == value {
                return place;
            }
            joined.push_str(separator(name));
            joined.push_str(value);
            return place;
        }
        if !self.places.is_empty() {
            self.places.insert(name.clone(), self.list.len());
        }
        self.list.push((name, value.to_owned()));
        self.list.len() - 1
    }
}

/// Parses a head that ends with its empty line. O(bytes).
pub fn parse(raw: &[u8]) -> Result<Head, FetchError> {
    let Some((status, http11)) = status_of(raw) else {
        let shown = latin1(&raw[..raw.len().min(40)]);
        return Err(FetchError::protocol(format!("not an HTTP/1 response: {shown:?}")));
    };
    let mut headers = Headers { list: Vec::with_capacity(16), places: HashMap::new() };
    let mut last: Option<usize> = None;
    for line in raw.split(|&byte| byte == b'\n').skip(1) {
        if matches!(line.first(), Some(b' ' | b'\t')) {
            let more = trimmed(line, |byte| byte.is_ascii_whitespace());
            if let (Some(place), false) = (last, more.is_empty()) {
                let value = &mut headers.list[place].1; // obs-fold: RFC 9112 5.2
                value.push(' ');
                value.push_str(&latin1(more));
            }
            continue;
        }
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let name = latin1(line[..colon].trim_ascii_end()).to_ascii_lowercase();
        let value = trimmed(&line[colon + 1..], |byte| matches!(byte, b' ' | b'\t' | b'\r' | 0));
        last = Some(headers.add(name, &latin1(value)));
    }
    Ok(Head { status, http11, headers: headers.list })
}

/// A final head, its bytes, and how many bytes of the last `feed` belong to it.
#[derive(Debug)]
pub struct Found {
    pub head: Head,
    pub raw: Vec<u8>,
    pub used: usize,
}

/// Collects the bytes of a head; one that arrives in a single read is parsed in place.
#[derive(Debug, Default)]
pub struct HeadReader {
    kept: Vec<u8>,
    interim: u32,
}

impl HeadReader {
    /// Whether a part of a head has arrived.
    pub fn begun(&self) -> bool {
        !self.kept.is_empty()
    }

    /// None: the final head is not complete. All of `data` is used then.
    pub fn feed(&mut self, data: &[u8]) -> Result<Option<Found>, FetchError> {
        let kept = std::mem::take(&mut self.kept);
        let before = kept.len();
        let joined: Vec<u8>;
        let buffer = if before == 0 {
            data
        } else {
            let mut whole = kept;
            whole.extend_from_slice(data);
            joined = whole;
            &joined
        };
        let mut at = 0;
        let mut search = before.saturating_sub(3);
        loop {
            let end = find_end(buffer, search.max(at));
            if end.unwrap_or(buffer.len()) - at > MAX_HEAD_BYTES {
                return Err(FetchError::protocol("headers over 64 KiB"));
            }
            let Some(end) = end else {
                self.keep(&buffer[at..])?;
                return Ok(None);
            };
            let raw = &buffer[at..end];
            let head = parse(without_blank_lines(raw))?;
            if head.status >= 200 {
                return Ok(Some(Found { head, raw: raw.to_vec(), used: end - before }));
            }
            if head.status == 101 {
                return Err(FetchError::protocol("the server switches protocols without a request"));
            }
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                return Err(FetchError::protocol(format!("over {MAX_INTERIM} heads with a status of 1xx")));
            }
            at = end;
            search = end;
        }
    }

    fn keep(&mut self, rest: &[u8]) -> Result<(), FetchError> {
        let start = without_blank_lines(rest);
        if rest.len() >= 5 && !start.starts_with(&b"HTTP/"[..start.len().min(5)]) {
            parse(start)?; // not HTTP: there is no need to wait for its end
        }
        self.kept = rest.to_vec();
        Ok(())
    }
}

fn without_blank_lines(raw: &[u8]) -> &[u8] {
    let start = raw.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(raw.len());
    &raw[start..]
}
