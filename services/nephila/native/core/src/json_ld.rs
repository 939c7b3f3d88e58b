//! Dates and authors of JSON-LD, so that rows have them: of the first article, else of the first object with any.
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

enum Value {
    Text(String),
    /// Of an object, or of several.
    Name(String),
    /// An array of texts.
    Texts(Vec<String>),
    Other,
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

    /// As entries of the metadata, the article's first.
    pub fn entries(self) -> Vec<(String, String)> {
        let of = |prefix: &str, facts: Facts| {
            [("published", facts.published), ("modified", facts.modified), ("author", facts.author)]
                .map(|(name, value)| (format!("{prefix}{name}"), value))
        };
        let all = of("jsonld:article:", self.article).into_iter().chain(of("jsonld:", self.other));
        all.filter(|(_, value)| !value.is_empty()).collect()
    }
}

struct Reader<'j, 'f> {
    json: &'j [u8],
    at: usize,
    facts: &'f mut JsonLd,
}

impl Reader<'_, '_> {
    fn next(&mut self) -> Option<u8> {
        while self.json.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.json.get(self.at).copied()
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
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

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.facts.objects += 1;
        if self.facts.objects > MAX_OBJECTS {
            return None;
        }
        self.at += 1;
        let (mut own, mut name, mut is_article, mut has_headline) = (Facts::default(), String::new(), false, false);
        while self.next()? != b'}' {
            let key = self.text()?;
            if self.next()? != b':' {
                return None;
            }
            self.at += 1;
            let value = self.value(depth + 1)?;
            match (key.as_str(), value) {
                ("@type", Value::Text(kind)) => is_article = is_article_type(&kind),
                ("@type", Value::Texts(kinds)) => is_article = kinds.iter().any(|kind| is_article_type(kind)),
                ("datePublished", Value::Text(text)) => own.published = text.trim().to_owned(),
                ("dateModified", Value::Text(text)) => own.modified = text.trim().to_owned(),
                ("author", Value::Text(text) | Value::Name(text)) => own.author = text,
                ("author", Value::Texts(names)) => own.author = names.join(", "),
                ("name", Value::Text(text)) => name = text.trim().to_owned(),
                ("headline", _) => has_headline = true,
                _ => {}
            }
            if self.next()? == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        if is_article && self.facts.article.is_empty() {
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
        Some(Value::Name(name))
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut texts = Vec::new();
        while self.next()? != b']' {
            if let Value::Text(text) | Value::Name(text) = self.value(depth + 1)? {
                if !text.is_empty() && texts.len() < 20 {
                    texts.push(text);
                }
            }
            if self.next()? == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Some(Value::Texts(texts))
    }

    /// A string; only the start of a long one.
    fn text(&mut self) -> Option<String> {
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
        let raw = &self.json[start..end];
        Some(unescaped(&raw[..raw.len().min(8 * MAX_CHARS)]).chars().take(MAX_CHARS).collect())
    }
}

fn unescaped(raw: &[u8]) -> String {
    let raw = String::from_utf8_lossy(raw);
    if !raw.contains('\\') {
        return raw.into_owned();
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
    String::from_utf16_lossy(&units)
}

fn is_article_type(kind: &str) -> bool {
    let kind = kind.rsplit('/').next().unwrap_or_default();
    let is_posting = kind.ends_with("Posting") && kind != "JobPosting";
    kind.ends_with("Article") || is_posting || matches!(kind, "Report" | "APIReference")
}
