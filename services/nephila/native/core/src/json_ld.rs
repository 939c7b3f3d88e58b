//! Dates, authors, description and image of JSON-LD, so that rows have them: of the first article, else of the first object with any.
//!
//! A reader of JSON without a tree, bounded by bytes, depth and objects; what is no JSON ends it. The fallback has the
//! same rules (../../fallback/json_ld.py).

use memchr::memmem;

const MAX_BYTES: usize = 512 << 10;
const MAX_DEPTH: usize = 32;
const MAX_OBJECTS: usize = 2_000;
const MAX_CHARS: usize = 300;

/// Of one object.
#[derive(Default, Clone)]
struct Facts {
    published: String,
    modified: String,
    author: String,
    description: String,
    image: String,
}

impl Facts {
    fn is_empty(&self) -> bool {
        self.published.is_empty() && self.modified.is_empty() && self.author.is_empty()
    }
}

/// What the scripts of a page have said so far.
#[derive(Default)]
pub struct JsonLd {
    article: Facts,
    other: Facts,
    objects: usize,
}

enum Value<'j> {
    /// As written; few are read.
    Text(&'j [u8]),
    Object { name: String, url: &'j [u8] },
    /// Of an array: its texts and names.
    Texts(Vec<Value<'j>>),
    Other,
}

impl Value<'_> {
    /// Texts and names; of several, with commas.
    fn read(self) -> String {
        match self {
            Value::Text(raw) => unescaped(raw),
            Value::Object { name, .. } => name,
            Value::Texts(values) => values.into_iter().map(Value::read).collect::<Vec<_>>().join(", "),
            Value::Other => String::new(),
        }
    }

    /// A text, the URL of an object, or the first text of an array.
    fn link(self) -> String {
        match self {
            Value::Object { url, .. } => unescaped(url),
            Value::Texts(values) => values.into_iter().next().map_or(String::new(), Value::link),
            text => text.read(),
        }
    }
}

impl JsonLd {
    /// Read one script. O(n).
    pub fn read(&mut self, json: &[u8]) {
        let says = |key: &[u8]| memmem::find(json, key).is_some();
        if json.len() <= MAX_BYTES && (says(b"\"datePublished\"") || says(b"\"dateModified\"") || says(b"\"author\"")) {
            let from = json.iter().position(|byte| matches!(byte, b'{' | b'[')).unwrap_or(json.len());
            // A script that wraps its JSON in CDATA begins with a bracket.
            let from = if json[from..].starts_with(b"[CDATA[") { from + 7 } else { from };
            let mut reader = Reader { json, at: from, facts: self };
            let _ = reader.value(0);
        }
    }

    /// As entries of the metadata, the article's first; its description only if `described`.
    pub fn entries(self, described: bool) -> Vec<(String, String)> {
        let (article, other) = (self.article, self.other);
        let all = [
            ("jsonld:article:published", article.published),
            ("jsonld:article:modified", article.modified),
            ("jsonld:article:author", article.author),
            ("jsonld:article:description", if described { article.description } else { String::new() }),
            ("jsonld:article:image", article.image),
            ("jsonld:published", other.published),
            ("jsonld:modified", other.modified),
            ("jsonld:author", other.author),
        ];
        let all = all.into_iter().map(|(name, value)| (name.to_owned(), value));
        all.filter(|(_, value)| !value.is_empty()).collect()
    }
}

struct Reader<'j, 'f> {
    json: &'j [u8],
    at: usize,
    facts: &'f mut JsonLd,
}

impl<'j> Reader<'j, '_> {
    fn next(&mut self) -> Option<u8> {
        while self.json.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.json.get(self.at).copied()
    }

    fn value(&mut self, depth: usize) -> Option<Value<'j>> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.next()? {
            b'"' => self.text().map(Value::Text),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            _ => {
                let rest = &self.json[self.at..];
                let size = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(rest.len());
                self.at += size;
                (size > 0).then_some(Value::Other)
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value<'j>> {
        self.facts.objects += 1;
        if self.facts.objects > MAX_OBJECTS {
            return None;
        }
        self.at += 1;
        let (mut own, mut is_article, mut has_headline) = (Facts::default(), false, false);
        let (mut name, mut url, mut description, mut image) = (String::new(), &b""[..], &b""[..], Value::Other);
        while self.next()? != b'}' {
            let key = self.text()?;
            if self.next()? != b':' {
                return None;
            }
            self.at += 1;
            let value = self.value(depth + 1)?;
            let plain;
            let key = if memchr::memchr(b'\\', key).is_none() {
                key
            } else {
                plain = unescaped(key);
                plain.as_bytes()
            };
            match (key, value) {
                (b"@type", kind @ Value::Text(_)) => is_article = is_article_type(&kind.read()),
                (b"@type", Value::Texts(kinds)) => {
                    is_article = kinds.into_iter().any(|kind| is_article_type(&kind.read()));
                }
                (b"datePublished", text @ Value::Text(_)) => own.published = text.read().trim().to_owned(),
                (b"dateModified", text @ Value::Text(_)) => own.modified = text.read().trim().to_owned(),
                (b"author", Value::Other) => {}
                (b"author", names) => own.author = names.read(),
                (b"description", Value::Text(raw)) => description = raw,
                (b"image", value) => image = value,
                (b"name", text @ Value::Text(_)) => name = text.read().trim().to_owned(),
                (b"url", Value::Text(raw)) => url = raw,
                (b"headline", _) => has_headline = true,
                _ => {}
            }
            if self.next()? == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        if is_article && self.facts.article.is_empty() {
            own.description = unescaped(description).trim().to_owned();
            own.image = image.link().trim().to_owned();
            self.facts.article = own;
        } else if !is_article {
            let other = &mut self.facts.other;
            if own.published.is_empty() && !has_headline {
                own.author.clear();
            }
            for (place, value) in
                [(&mut other.published, own.published), (&mut other.modified, own.modified), (&mut other.author, own.author)]
            {
                if place.is_empty() {
                    *place = value;
                }
            }
        }
        Some(Value::Object { name, url })
    }

    fn array(&mut self, depth: usize) -> Option<Value<'j>> {
        self.at += 1;
        let mut texts = Vec::new();
        while self.next()? != b']' {
            let value = self.value(depth + 1)?;
            let has_text = match &value {
                Value::Text(raw) => !raw.is_empty(),
                Value::Object { name, .. } => !name.is_empty(),
                _ => false,
            };
            if has_text && texts.len() < 20 {
                texts.push(value);
            }
            if self.next()? == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Some(Value::Texts(texts))
    }

    /// A string as written.
    fn text(&mut self) -> Option<&'j [u8]> {
        if self.json.get(self.at) != Some(&b'"') {
            return None;
        }
        let start = self.at + 1;
        let mut end = start;
        loop {
            end += memchr::memchr2(b'"', b'\\', self.json.get(end..)?)?;
            if self.json[end] == b'"' {
                break;
            }
            end += 2;
        }
        self.at = end + 1;
        let json = self.json;
        Some(&json[start..end])
    }
}

/// The first `MAX_CHARS` characters of a string.
fn unescaped(raw: &[u8]) -> String {
    let raw = String::from_utf8_lossy(&raw[..raw.len().min(8 * MAX_CHARS)]);
    if !raw.contains('\\') {
        return raw.chars().take(MAX_CHARS).collect();
    }
    let mut units: Vec<u16> = Vec::with_capacity(raw.len());
    let mut chars = raw.chars();
    let mut buffer = [0u16; 2];
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next() {
                Some('u') => {
                    let digits: String = chars.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).unwrap_or(0xFFFD));
                    continue;
                }
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('b' | 'f') => ' ',
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        units.extend_from_slice(c.encode_utf16(&mut buffer));
    }
    String::from_utf16_lossy(&units).chars().take(MAX_CHARS).collect()
}

fn is_article_type(kind: &str) -> bool {
    let kind = kind.rsplit('/').next().unwrap_or_default();
    let is_posting = kind.ends_with("Posting") && kind != "JobPosting";
    kind.ends_with("Article") || is_posting || matches!(kind, "Report" | "APIReference")
}
