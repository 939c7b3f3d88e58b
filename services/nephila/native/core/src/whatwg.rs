//! The url crate brought up to today's URL Standard, where the crate (2.5) differs.
//!
//! 1. An all-ASCII domain is only lower-cased: "xn--" labels that are no punycode are no failure any more.
//! 2. "^" in a path is percent-encoded.
//! 3. "///host" against an http base is "//host".
//!
//! When the crate follows the standard itself, these steps have no effect.

use std::borrow::Cow;

use url::{ParseError, Position, Url};

/// Offsets into a resolved href.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    pub host: (u32, u32),
    /// Index of "?", or the length.
    pub query: u32,
}

/// Why a URL is of no use.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It cannot be parsed at all.
    Bad(&'static str),
    /// A good URL, but not one that is fetched over HTTP.
    Scheme(String),
}

pub fn reason(error: ParseError) -> &'static str {
    match error {
        ParseError::EmptyHost => "empty host",
        ParseError::IdnaError => "invalid international domain name",
        ParseError::InvalidPort => "invalid port",
        ParseError::InvalidIpv4Address => "invalid IPv4 address",
        ParseError::InvalidIpv6Address => "invalid IPv6 address",
        ParseError::InvalidDomainCharacter => "invalid character in the host",
        ParseError::RelativeUrlWithoutBase => "relative URL without a base",
        ParseError::RelativeUrlWithCannotBeABaseBase => "relative URL with a base that has no hierarchy",
        ParseError::SetHostOnCannotBeABaseUrl => "no host can be set on this URL",
        _ => "URL too long",
    }
}

/// A parsed URL as text.
#[derive(Debug)]
pub struct Href {
    pub text: String,
    pub parts: Parts,
    pub scheme_end: usize,
}

impl Href {
    pub fn new(url: &Url, fragment: bool) -> Href {
        let at = |position| url[..position].len();
        let host = (at(Position::BeforeHost) as u32, at(Position::AfterPort) as u32);
        let end = at(Position::AfterQuery);
        let (path, path_end) = (at(Position::BeforePath), at(Position::AfterPath));
        let mut text: String = if fragment { url.as_str().into() } else { url[..Position::AfterQuery].into() };
        let mut query = if url.query().is_some() { path_end } else { end };
        if !url.cannot_be_a_base() && text[path..path_end].contains('^') {
            let encoded = text[path..path_end].replace('^', "%5E");
            query += encoded.len() - (path_end - path);
            text.replace_range(path..path_end, &encoded);
        }
        Href { text, parts: Parts { host, query: query as u32 }, scheme_end: url.scheme().len() }
    }

    pub fn scheme(&self) -> &str {
        &self.text[..self.scheme_end]
    }

    /// A page must not choose credentials: its links have those of its own URL, and to other origins none.
    fn take_userinfo_of(&mut self, base: &Url) {
        let (from, host) = (self.scheme_end + "://".len(), self.parts.host);
        let known = &base[Position::BeforeUsername..Position::BeforeHost];
        if known.is_empty() && from == host.0 as usize {
            return;
        }
        let same = base.scheme() == self.scheme()
            && base[Position::BeforeHost..Position::AfterPort] == self.text[host.0 as usize..host.1 as usize];
        let wanted = if same { known } else { "" };
        self.text.replace_range(from..host.0 as usize, wanted);
        let moved = |at: u32| at - host.0 + (from + wanted.len()) as u32;
        self.parts = Parts { host: (moved(host.0), moved(host.1)), query: moved(self.parts.query) };
    }
}

/// Parse an absolute http(s) URL, or a relative one against `base`; the fragment is dropped. What has a base is a link:
/// its userinfo is that of the base where they are of one origin, else none.
pub fn parse_http(input: &str, base: Option<&Url>) -> Result<Href, Refusal> {
    let mut href = parse(input, base, false)?;
    if matches!(href.scheme(), "http" | "https") {
        if let Some(base) = base {
            href.take_userinfo_of(base);
        }
        Ok(href)
    } else {
        Err(Refusal::Scheme(href.scheme().into()))
    }
}

/// Parse a URL of any scheme.
pub fn parse(input: &str, base: Option<&Url>, fragment: bool) -> Result<Href, Refusal> {
    let input = fewer_slashes(input, base);
    let options = Url::options().base_url(base);
    match options.parse(&input) {
        Ok(url) => Ok(Href::new(&url, fragment)),
        Err(ParseError::IdnaError) => {
            ascii_domain(&input, base, fragment).ok_or(Refusal::Bad(reason(ParseError::IdnaError)))
        }
        Err(error) => Err(Refusal::Bad(reason(error))),
    }
}

fn is_slash(c: char) -> bool {
    matches!(c, '/' | '\\')
}

/// What the parser drops before it begins.
fn cleaned(input: &str) -> String {
    input.trim_matches(|c: char| c <= ' ').chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect()
}

fn fewer_slashes<'i>(input: &'i str, base: Option<&Url>) -> Cow<'i, str> {
    let special = base.is_some_and(|base| matches!(base.scheme(), "http" | "https" | "ws" | "wss" | "ftp"));
    if special && input.trim_start_matches(|c: char| c <= ' ').starts_with(is_slash) {
        let clean = cleaned(input);
        let rest = clean.trim_start_matches(is_slash);
        if clean.len() - rest.len() > 2 {
            return Cow::Owned(format!("//{rest}"));
        }
    }
    Cow::Borrowed(input)
}

/// Parse with the "xn--" labels of an ASCII domain put out of the crate's sight, then put them back.
fn ascii_domain(input: &str, base: Option<&Url>, fragment: bool) -> Option<Href> {
    let mut clean = cleaned(input);
    let scheme = clean.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')));
    let after = scheme.filter(|at| clean[*at..].starts_with(':')).map_or(0, |at| at + 1);
    let start = after + clean[after..].find(|c| !is_slash(c))?;
    let end = clean[start..].find(|c| is_slash(c) || matches!(c, '?' | '#')).map_or(clean.len(), |at| start + at);
    let start = clean[start..end].rfind('@').map_or(start, |at| start + at + 1);
    let host = clean[start..end].to_ascii_lowercase();
    if !host.is_ascii() {
        return None;
    }
    let marks = (b'a'..=b'z').map(|c| format!("xn0{}", c as char));
    let mark = marks.into_iter().find(|mark| !host.contains(mark.as_str()))?;
    let hidden: Vec<String> = host.split('.').map(|label| swap(label, "xn--", &mark)).collect();
    clean.replace_range(start..end, &hidden.join("."));
    let url = Url::options().base_url(base).parse(&clean).ok()?;
    let mut href = Href::new(&url, fragment);
    let range = href.parts.host.0 as usize..href.parts.host.1 as usize;
    let labels: Vec<String> = href.text[range.clone()].split('.').map(|label| swap(label, &mark, "xn--")).collect();
    // Punycode that the crate made itself: the domain was not ASCII (percent-encoded), so its error is kept.
    if href.text[range.clone()].split('.').any(|label| label.starts_with("xn--")) {
        return None;
    }
    href.text.replace_range(range, &labels.join("."));
    Some(href)
}

fn swap(label: &str, from: &str, to: &str) -> String {
    label.strip_prefix(from).map_or_else(|| label.to_owned(), |rest| format!("{to}{rest}"))
}
