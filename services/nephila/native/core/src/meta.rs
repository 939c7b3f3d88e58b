//! Attributes that describe the page: html, base, link, meta, rel, class and id.

use std::borrow::Cow;

use crate::entities;
use crate::maintext::Subject;
use crate::page::{Head, Page, MAX_META};
use crate::tags::*;
use crate::values::{spelled_value, trimmed, value, MAX_VALUE};
use crate::tokenizer::is_space;

/// Names of metas that are kept, beside those that start with one of `PREFIXES`.
const NAMES: [&str; 8] =
    ["author", "date", "pubdate", "publishdate", "last-modified", "keywords", "generator", "application-name"];
const DATES: [&str; 3] = ["datepublished", "datecreated", "datemodified"];
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

/// Words of classes of the date of a change.
const CHANGES: [&[u8]; 3] = [b"updat", b"modif", b"revis"];
/// Bytes of all versions in other languages that are noted: the default limit of a value in rows.
const MAX_HREFLANG: usize = 2_000;
/// The longest language tag that RFC 5646 requires software to accept.
const MAX_TAG: usize = 35;
/// Types of schema.org of a product and of a list; a page of more products is a list.
const PRODUCTS: [&[u8]; 3] = [b"Product", b"ProductGroup", b"IndividualProduct"];
const LISTS: [&[u8]; 4] = [b"CollectionPage", b"ItemList", b"OfferCatalog", b"SearchResultsPage"];
const MAX_PRODUCTS: u32 = 3;
const TYPE: &[u8] = b"\"@type\"";

/// Whether the content of a meta is a reference, whose characters are part of it.
fn is_reference(content: &str) -> bool {
    content.starts_with('/') || content.contains("://")
}

impl Page<'_> {
    #[inline(always)]
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
                self.note_language();
            }
            _ => self.meta(),
        }
    }

    /// Note <link rel=alternate hreflang=… href=…>. Versions beyond `MAX_HREFLANG` bytes are left out.
    fn note_language(&mut self) {
        let Some(lang) = self.decoded(b"hreflang").map(value).filter(|lang| is_tag(lang)) else { return };
        if !self.has_rel(b"alternate") {
            return;
        }
        let Some(href) = self.decoded(b"href").map(value) else { return };
        let size = self.head.hreflang.len() + lang.len() + href.len() + 2;
        if !href.is_empty() && !href.contains(char::is_whitespace) && size <= MAX_HREFLANG {
            if !self.head.hreflang.is_empty() {
                self.head.hreflang.push('\n');
            }
            self.head.hreflang += &lang;
            self.head.hreflang.push(' ');
            self.head.hreflang += &href;
        }
    }

    /// Whether the script just opened holds structured data.
    pub fn is_json_ld(&self) -> bool {
        self.tok.attr(b"type").is_some_and(|kind| trimmed(kind).eq_ignore_ascii_case(b"application/ld+json"))
    }

    fn has_rel(&self, wanted: &[u8]) -> bool {
        self.decoded(b"rel")
            .is_some_and(|rel| rel.split(|b| is_space(*b)).any(|word| word.eq_ignore_ascii_case(wanted)))
    }

    fn meta(&mut self) {
        let Some(content) = self.decoded(b"content") else { return };
        let name = self.decoded(b"property").or_else(|| self.decoded(b"name"));
        let name = name.or_else(|| self.decoded(b"itemprop").filter(|name| is_date(trimmed(name))));
        let kind = name.as_deref().map_or(Kind::Other, |name| kind_of(trimmed(name), self.agent));
        let refresh = self.decoded(b"http-equiv").is_some_and(|equiv| equiv.eq_ignore_ascii_case(b"refresh"));
        if !refresh && kind == Kind::Other {
            return;
        }
        // From here on it is one of the few that are kept.
        let (content, name) = (value(content), name.map(value));
        if refresh {
            self.refresh(&content);
        }
        let head = &mut self.head;
        match kind {
            Kind::Robots if head.robots.len() + content.len() < MAX_VALUE => {
                if !head.robots.is_empty() {
                    head.robots.push(',');
                }
                head.robots.push_str(&content.to_ascii_lowercase());
            }
            Kind::Description => {
                head.description.get_or_insert(spelled_value(content));
            }
            Kind::Kept if head.meta.len() < MAX_META => {
                head.products += u32::from(is_product_type(name.as_deref().unwrap_or_default(), &content));
                head.says_article |= is_article_type(name.as_deref().unwrap_or_default(), &content);
                let content = if is_reference(&content) { content } else { spelled_value(content) };
                head.meta.push((name.unwrap_or_default().to_ascii_lowercase(), content));
            }
            _ => {}
        }
    }

    pub fn note_time(&mut self) {
        let is_of_change = |name: &[u8]| {
            self.decoded(name).is_some_and(|value| {
                let value = value.to_ascii_lowercase();
                CHANGES.iter().any(|word| memchr::memmem::find(&value, word).is_some())
            })
        };
        if !self.in_template() && !is_of_change(b"class") && !is_of_change(b"itemprop") {
            self.head.time = self.decoded(b"datetime").map(value).filter(|time| !time.is_empty());
        }
    }

    fn refresh(&mut self, content: &str) {
        if let Some(target) = refresh_target(content) {
            if self.head.refresh.is_none() {
                self.head.refresh = Some(target.to_owned());
            }
            self.refresh_link(target.to_owned());
        }
    }
}

/// Whether a text may be the tag of a language, or `x-default`.
fn is_tag(lang: &str) -> bool {
    !lang.is_empty() && lang.len() <= MAX_TAG && lang.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Whether the name of a meta is that of a publication; that of the publisher is another.
fn is_published(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    memchr::memmem::find(&name, b"publish").is_some() && !name.ends_with(b"publisher")
}

/// Dates of schema.org in <meta itemprop>.
fn is_date(name: &[u8]) -> bool {
    DATES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

fn is_article_type(name: &str, content: &str) -> bool {
    name.eq_ignore_ascii_case("og:type") && content.eq_ignore_ascii_case("article")
}

fn is_product_type(name: &str, content: &str) -> bool {
    name.eq_ignore_ascii_case("og:type") && matches!(content, "product" | "og:product")
}

impl Head<'_> {
    pub fn subject(&self) -> Subject {
        match (self.says_thread, self.says_article) {
            (true, _) => Subject::Thread,
            (_, true) => Subject::Article,
            _ if (1..=MAX_PRODUCTS).contains(&self.products) && self.lists == 0 => Subject::Product,
            _ => Subject::Other,
        }
    }

    /// Note the types of the page in JSON-LD, and its dates and authors. O(n).
    pub fn read_json_ld(&mut self, json: &[u8]) {
        self.json_ld.read(json);
        for at in memchr::memmem::find_iter(json, TYPE) {
            let name = type_name(&json[at + TYPE.len()..]);
            self.says_article |= name.ends_with(b"Article") || name.ends_with(b"BlogPosting");
            self.products += u32::from(PRODUCTS.contains(&name));
            self.lists += u32::from(LISTS.contains(&name));
            self.says_thread |= name == b"DiscussionForumPosting" || name == b"QAPage";
        }
    }
}

/// The type that is named behind `"@type"`, the first of a list; empty if none is.
fn type_name(mut value: &[u8]) -> &[u8] {
    for sign in [b':', b'[', b'"'] {
        let from = value.iter().position(|b| !is_space(*b)).unwrap_or(value.len());
        value = &value[from..];
        match value.first() {
            Some(first) if *first == sign => value = &value[1..],
            _ if sign == b'[' => {}
            _ => return b"",
        }
    }
    &value[..memchr::memchr(b'"', &value[..value.len().min(64)]).unwrap_or(0)]
}

/// What a meta is by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Robots,
    Description,
    Kept,
    Other,
}

fn kind_of(name: &[u8], agent: &[u8]) -> Kind {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    let starts = |known: &str| name.get(..known.len()).is_some_and(|head| head.eq_ignore_ascii_case(known.as_bytes()));
    if is("robots") || name.eq_ignore_ascii_case(agent) {
        Kind::Robots
    } else if is("description") {
        Kind::Description
    } else if is_date(name) || NAMES.iter().any(|known| is(known)) || PREFIXES.iter().any(|known| starts(known)) || is_published(name) {
        Kind::Kept
    } else {
        Kind::Other
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
