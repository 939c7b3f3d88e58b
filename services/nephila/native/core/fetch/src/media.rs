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

/// The last value of a repeated header.
fn last_of(header: &str) -> &str {
    match header.rfind(',').map(|at| header[at + 1..].trim()) {
        Some(last) if !last.is_empty() => last,
        _ => header,
    }
}

/// The first charset of a Content-Type in lower case; empty without one. Quoted pairs are left as they are.
pub fn charset(header: &str) -> String {
    let blank: &[char] = &['\n', '\r', '\t', ' ', '"', '\''];
    let mut parameters = last_of(header).split(';').skip(1).filter_map(|one| one.split_once('='));
    let found = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    found.map_or(String::new(), |(_, value)| value.trim_matches(blank).to_ascii_lowercase())
}

/// "type/subtype" of a Content-Type in lower case, of the last one if it was repeated; empty for an invalid one.
pub fn essence(header: &str) -> String {
    let last = last_of(header);
    let blank: &[char] = &['\n', '\r', '\t', ' '];
    let named = last.trim_matches(blank).split(';').next().unwrap_or("").trim_end_matches(blank);
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
    fn the_last_of_repeated_types_counts() {
        assert_eq!(essence("TEXT/Plain;charset=x"), "text/plain");
        assert_eq!(essence("text/html, image/png; q=1"), "image/png");
        assert_eq!(essence("text/html,"), "");
        assert_eq!(essence("text"), "");
        assert_eq!(essence("te xt/html"), "");
        assert_eq!(essence(""), "");
    }
}
