//! The filter of wanted media types, evaluated after the head of a response.

/// Patterns with `*`; `refuse` wins over `accept`, and a missing type is wanted.
#[derive(Clone, Debug)]
pub struct MediaFilter {
    accept: Vec<String>,
    refuse: Vec<String>,
}

impl Default for MediaFilter {
    fn default() -> MediaFilter {
        MediaFilter::new(vec!["*".into()], vec![])
    }
}

impl MediaFilter {
    pub fn new(accept: Vec<String>, refuse: Vec<String>) -> MediaFilter {
        let lower = |many: Vec<String>| many.iter().map(|one| one.trim().to_ascii_lowercase()).collect();
        MediaFilter { accept: lower(accept), refuse: lower(refuse) }
    }

    pub fn is_wanted(&self, media_type: &str) -> bool {
        let matches = |many: &[String]| many.iter().any(|one| glob(one.as_bytes(), media_type.as_bytes()));
        media_type.is_empty() || (matches(&self.accept) && !matches(&self.refuse))
    }
}

/// `*` stands for any bytes. O(pattern * text).
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && pattern[p] == text[t] {
            p += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            p = at + 1;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// Essence and charset of a Content-Type, both in lower case and empty where missing. Of a repeated header as in the
/// Fetch standard ("extract a MIME type"): the last valid type counts, with the charset of an earlier equal one.
pub fn media_type(header: &str) -> (String, String) {
    if !header.contains(',') {
        return (essence_of(header), charset_of(header));
    }
    let (mut essence, mut charset, mut first_charset) = (String::new(), String::new(), String::new());
    for value in values_of(header) {
        let (kind, own) = (essence_of(value), charset_of(value));
        if kind.is_empty() || kind == "*/*" {
            continue;
        }
        if kind != essence {
            (essence, first_charset) = (kind, own.clone());
        }
        charset = if own.is_empty() { first_charset.clone() } else { own };
    }
    if essence.is_empty() {
        charset = charset_of(header);
    }
    (essence, charset)
}

/// The charset of a Content-Type, see `media_type`.
pub fn charset(header: &str) -> String {
    media_type(header).1
}

/// "type/subtype" of a Content-Type, see `media_type`.
pub fn essence(header: &str) -> String {
    media_type(header).0
}

/// The values of a joined header: cut at commas outside of quotes.
fn values_of(header: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    header.split(move |letter: char| {
        let cut = letter == ',' && !quoted;
        quoted ^= letter == '"' && !escaped;
        escaped = quoted && letter == '\\' && !escaped;
        cut
    })
}

/// The first charset of one value in lower case; empty without one. Quoted pairs are left as they are.
fn charset_of(value: &str) -> String {
    let blank: &[char] = &['\n', '\r', '\t', ' ', '"', '\''];
    let mut parameters = value.split(';').skip(1).filter_map(|one| one.split_once('='));
    let found = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    found.map_or(String::new(), |(_, value)| value.trim_matches(blank).to_ascii_lowercase())
}

/// "type/subtype" of one value in lower case; empty for an invalid one.
fn essence_of(value: &str) -> String {
    let blank: &[char] = &['\n', '\r', '\t', ' '];
    let named = value.trim_matches(blank).split(';').next().unwrap_or("").trim_end_matches(blank);
    match named.split_once('/') {
        Some((kind, subtype)) if is_token(kind) && is_token(subtype) => named.to_ascii_lowercase(),
        _ => String::new(),
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuse_wins_and_a_missing_type_is_wanted() {
        let many = |texts: &[&str]| texts.iter().map(|one| one.to_string()).collect();
        let filter = MediaFilter::new(many(&["text/*", "*/*+xml", "*/xml"]), many(&["text/css", "image/*"]));
        for wanted in ["", "text/html", "application/rss+xml", "text/xml"] {
            assert!(filter.is_wanted(wanted), "{wanted}");
        }
        for unwanted in ["text/css", "image/svg+xml", "application/zip", "text", "application/xmlx"] {
            assert!(!filter.is_wanted(unwanted), "{unwanted}");
        }
    }

    #[test]
    fn the_charset_of_an_equal_earlier_type_counts() {
        for (header, right) in [
            ("text/html; charset=gbk, text/html", "gbk"),
            ("text/html; charset=gbk, text/html; charset=utf-8", "utf-8"),
            ("text/html; charset=gbk, text/plain", ""),
            ("text/html; charset=gbk, */*; charset=utf-8", "gbk"),
            ("text/html; x=\"a,b\"; charset=gbk", "gbk"),
            ("charset=gbk", ""),
        ] {
            assert_eq!(charset(header), right, "{header}");
        }
    }

    #[test]
    fn the_last_of_repeated_types_counts() {
        assert_eq!(essence("TEXT/Plain;charset=x"), "text/plain");
        assert_eq!(essence("text/html, image/png; q=1"), "image/png");
        assert_eq!(essence("text/html,"), "text/html");
        assert_eq!(essence("text/html, */*"), "text/html");
        assert_eq!(essence("text/html, nonsense"), "text/html");
        assert_eq!(essence("text"), "");
        assert_eq!(essence("te xt/html"), "");
        assert_eq!(essence(""), "");
    }
}
