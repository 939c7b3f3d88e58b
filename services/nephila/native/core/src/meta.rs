//! Attributes that say something about the page: html, base, link, meta, rel, class and id.

use std::borrow::Cow;

use crate::entities;
use crate::page::{Page, MAX_META, MAX_VALUE};
use crate::tags::*;
use crate::tokenizer::is_space;

/// Names of metas that are kept, beside those that start with one of `PREFIXES`.
const NAMES: [&str; 8] =
    ["author", "date", "pubdate", "publishdate", "last-modified", "keywords", "generator", "application-name"];
const PREFIXES: [&str; 13] = [
    "og:",
    "article:",
    "twitter:",
    "book:",
    "profile:",
    "video:",
    "music:",
    "product:",
    "dc.",
    "dcterms.",
    "citation_",
    "parsely-",
    "sailthru.",
];

/// Trimmed, at most `MAX_VALUE` bytes, valid UTF-8 because the input is.
pub fn value(bytes: Cow<'_, [u8]>) -> String {
    let from = bytes.iter().position(|b| !is_space(*b)).unwrap_or(bytes.len());
    let mut end = bytes.iter().rposition(|b| !is_space(*b)).map_or(from, |at| at + 1);
    if end - from > MAX_VALUE {
        end = from + MAX_VALUE;
        while bytes[end] & 0xC0 == 0x80 {
            end -= 1;
        }
    }
    String::from_utf8_lossy(&bytes[from..end]).into_owned()
}

impl Page<'_> {
    fn decoded(&self, name: &[u8]) -> Option<Cow<'_, [u8]>> {
        self.tok.attr(name).map(|raw| entities::decode(raw, true, true))
    }

    pub fn html_attrs(&mut self) {
        if self.head.lang.is_none() && !self.in_template() {
            self.head.lang = self.decoded(b"lang").map(value);
        }
    }

    /// rel=nofollow, ugc or sponsored.
    pub fn nofollow(&self) -> bool {
        self.decoded(b"rel").is_some_and(|rel| {
            rel.split(|b| is_space(*b)).any(|word| {
                [&b"nofollow"[..], b"ugc", b"sponsored"].iter().any(|known| word.eq_ignore_ascii_case(known))
            })
        })
    }

    pub fn head_tag(&mut self, tag: u8) {
        if self.in_template() {
            return;
        }
        match tag {
            BASE => {
                if self.head.base.is_none() {
                    self.head.base = self.tok.attr(b"href");
                }
            }
            LINK => {
                if self.head.canonical.is_none() && self.has_rel(b"canonical") {
                    self.head.canonical = self.tok.attr(b"href");
                }
            }
            _ => self.meta(),
        }
    }

    fn has_rel(&self, wanted: &[u8]) -> bool {
        self.decoded(b"rel")
            .is_some_and(|rel| rel.split(|b| is_space(*b)).any(|word| word.eq_ignore_ascii_case(wanted)))
    }

    fn meta(&mut self) {
        let Some(content) = self.decoded(b"content").map(value) else { return };
        if self.decoded(b"http-equiv").is_some_and(|equiv| equiv.eq_ignore_ascii_case(b"refresh")) {
            if let Some(target) = refresh_target(&content) {
                let target = target.to_owned();
                if self.head.refresh.is_none() {
                    self.head.refresh = Some(target.clone());
                }
                self.refresh_link(target);
            }
        }
        let name =
            self.decoded(b"property").or_else(|| self.decoded(b"name")).map(|name| value(name).to_ascii_lowercase());
        let Some(name) = name else { return };
        match name.as_str() {
            "robots" | "nephila" => {
                if self.head.robots.len() + content.len() < MAX_VALUE {
                    if !self.head.robots.is_empty() {
                        self.head.robots.push(',');
                    }
                    self.head.robots.push_str(&content.to_ascii_lowercase());
                }
            }
            "description" => {
                self.head.description.get_or_insert(content);
            }
            _ => {
                let kept = NAMES.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
                if kept && self.head.meta.len() < MAX_META {
                    self.head.meta.push((name, content));
                }
            }
        }
    }
}

/// The URL of a refresh, by the standard's "shared declarative refresh steps"; None without one.
pub fn refresh_target(content: &str) -> Option<&str> {
    let bytes = content.as_bytes();
    let skip = |mut p: usize| {
        while bytes.get(p).is_some_and(|b| is_space(*b)) {
            p += 1;
        }
        p
    };
    let mut p = skip(0);
    let digits = p;
    while bytes.get(p).is_some_and(u8::is_ascii_digit) {
        p += 1;
    }
    if p == digits && bytes.get(p) != Some(&b'.') {
        return None;
    }
    while bytes.get(p).is_some_and(|b| b.is_ascii_digit() || *b == b'.') {
        p += 1;
    }
    if !bytes.get(p).is_some_and(|b| is_space(*b) || matches!(b, b';' | b',')) {
        return None;
    }
    p = skip(p);
    if bytes.get(p).is_some_and(|b| matches!(b, b';' | b',')) {
        p = skip(p + 1);
    }
    if p >= bytes.len() {
        return None;
    }
    let whole = p;
    if bytes.get(p..p + 3).is_some_and(|word| word.eq_ignore_ascii_case(b"url")) {
        let equals = skip(p + 3);
        if bytes.get(equals) != Some(&b'=') {
            return Some(&content[whole..]);
        }
        p = skip(equals + 1);
    }
    if let Some(quote @ (b'"' | b'\'')) = bytes.get(p) {
        p += 1;
        let end = memchr::memchr(*quote, &bytes[p..]).map_or(bytes.len(), |at| p + at);
        return Some(&content[p..end]);
    }
    Some(&content[p..])
}
