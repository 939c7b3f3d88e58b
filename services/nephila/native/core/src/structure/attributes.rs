//! What attributes say: numbers, the language of code, line numbers, the largest picture of a srcset.

use std::sync::OnceLock;

use pyo3::prelude::*;
use regex::bytes::Regex;

use crate::markdown::chars::is_space;
use crate::search::may_begin;

/// Names of languages that stand alone in a class.
const LANGUAGES: [&str; 36] = [
    "bash",
    "c",
    "console",
    "cpp",
    "csharp",
    "css",
    "diff",
    "go",
    "haskell",
    "html",
    "ini",
    "java",
    "javascript",
    "js",
    "json",
    "kotlin",
    "lua",
    "make",
    "perl",
    "php",
    "pycon",
    "python",
    "python3",
    "r",
    "ruby",
    "rust",
    "scala",
    "sh",
    "shell",
    "sql",
    "swift",
    "toml",
    "ts",
    "typescript",
    "xml",
    "yaml",
];
const NO_LANGUAGES: [&str; 9] =
    ["default", "none", "text", "plain", "plaintext", "nohighlight", "no", "off", "notranslate"];
const NUMBERS: [&str; 10] = [
    "line-number",
    "linenumber",
    "react-syntax-highlighter-line-number",
    "lineno",
    "linenos",
    "linenodiv",
    "line-numbers-rows",
    "gutter",
    "rouge-gutter",
    "src-line-numbers",
];
/// Bytes of a srcset that are examined.
const MAX_SRCSET: usize = 65_536;

/// A number of at most nine digits.
pub fn number(text: Option<&str>) -> Option<i64> {
    let digits = text?.trim_matches(is_space);
    let plain = digits.len() < 10 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// Whether a class says that an element has the numbers of lines.
pub fn is_line_numbers(class: Option<&str>) -> bool {
    let may_be = |class: &str| may_begin(class.as_bytes(), b"glrs", b"eioru", b"acntu") || !class.is_ascii();
    class.is_some_and(|class| may_be(class) && class.split(is_space).any(|word| NUMBERS.contains(&word)))
}

/// What a class says that a block is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    None,
    /// A note, a warning and the like,
    Admonition,
    /// and its title.
    Title,
    Formula,
}

/// What the first word with a meaning says. O(length).
pub fn role_of(class: &[u8]) -> Role {
    if !may_begin(class, b"acmt", b"adhr", b"eilmrt") {
        return Role::None;
    }
    if is_formula(class) {
        return Role::Formula;
    }
    let role = |word: &[u8]| match word {
        b"admonition" | b"theme-admonition" | b"markdown-alert" | b"callout" => Some(Role::Admonition),
        b"admonition-title" | b"markdown-alert-title" | b"callout-title" => Some(Role::Title),
        word if word.starts_with(b"admonitionHeading") => Some(Role::Title),
        _ => None,
    };
    class.split(u8::is_ascii_whitespace).find_map(role).unwrap_or(Role::None)
}

/// Whether a class is that of a formula in TeX, as Sphinx and pandoc have it.
pub fn is_formula(class: &[u8]) -> bool {
    let rest = class.strip_prefix(b"math");
    class == b"arithmatex"
        || rest.is_some_and(|rest| {
            let mut words = rest.split(u8::is_ascii_whitespace);
            words.next() == Some(b"")
                && words.all(|word| matches!(word, b"inline" | b"display" | b"notranslate" | b"nohighlight"))
        })
}

/// The language that a class names; "" if none.
pub fn language_of_class(class: &str) -> String {
    let found = named_language(class);
    if !found.is_empty() {
        return found;
    }
    let known = |word: &&str| LANGUAGES.contains(word);
    let words = class.to_lowercase();
    words.split(is_space).find(known).unwrap_or_default().into()
}

/// The language behind a word such as "language-"; "" if none.
pub fn named_language(class: &str) -> String {
    static PATTERN: OnceLock<Regex> = OnceLock::new();
    let pattern = PATTERN.get_or_init(|| {
        let pattern = r"(?i-u)(?:^|\s)(?:language|lang|highlight-source|highlight|brush:)[-\s]?\s*([a-z][\w+#.-]*)";
        Regex::new(pattern).expect("the pattern is valid")
    });
    let found = pattern.captures(class.as_bytes()).and_then(|found| found.get(1));
    found.map_or(String::new(), |name| clean_language(&class[name.range()]))
}

/// The name of a language in lower case; "" for what is none.
pub fn clean_language(name: &str) -> String {
    let name: String = name.to_lowercase().chars().take(30).collect();
    let valid = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+#.-".contains(&byte));
    if valid && !NO_LANGUAGES.contains(&name.as_str()) {
        name
    } else {
        String::new()
    }
}

/// URL and descriptors of each candidate of a srcset, by the HTML standard. O(length).
struct Candidates<'s>(&'s str);

impl<'s> Candidates<'s> {
    fn of(srcset: &'s str) -> Self {
        let mut end = srcset.len().min(MAX_SRCSET);
        while !srcset.is_char_boundary(end) {
            end -= 1;
        }
        Candidates(&srcset[..end])
    }
}

impl<'s> Iterator for Candidates<'s> {
    type Item = (&'s str, &'s str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.0.trim_start_matches(|c| is_space(c) || c == ',');
        let (url, rest) = rest.split_at(rest.find(is_space).unwrap_or(rest.len()));
        if url.is_empty() || url.ends_with(',') {
            self.0 = rest;
            return Some((url.trim_end_matches(','), "")).filter(|(url, _)| !url.is_empty());
        }
        // A comma in parentheses ends no candidate.
        let mut inside = false;
        let end = rest.bytes().position(|byte| {
            inside = if inside { byte != b')' } else { byte == b'(' };
            byte == b',' && !inside
        });
        let (descriptors, after) = rest.split_at(end.unwrap_or(rest.len()));
        self.0 = after;
        Some((url, descriptors))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// The URLs of the candidates of a srcset but for those whose descriptors a browser refuses. O(length).
#[pyfunction]
pub fn candidates_of_srcset(srcset: &str) -> Vec<&str> {
    let valid = |(_, descriptors): &(&str, &str)| {
        let mut kinds: Vec<u8> = words(descriptors).filter_map(|word| word.bytes().last()).collect();
        kinds.sort_unstable();
        let plain = |word: &str| {
            let number = &word[..word.len() - 1];
            let (whole, part) = number.rsplit_once('.').unwrap_or(("", number));
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            !part.is_empty() && digits(whole) && digits(part) && (word.ends_with('x') || part == number)
        };
        matches!(kinds[..], [] | [b'w'] | [b'x'] | [b'h', b'w']) && words(descriptors).all(plain)
    };
    Candidates::of(srcset).filter(valid).map(|(url, _)| url).collect()
}

/// The URL of a srcset's largest candidate, the first of equal ones; "" without one. O(length).
#[pyfunction]
pub fn best_of_srcset(srcset: &str) -> &str {
    let (mut best, mut best_size) = ("", 0.0);
    for (url, descriptors) in Candidates::of(srcset) {
        let size = words(descriptors).filter_map(stated_size).last().unwrap_or(1.0);
        if size > best_size {
            (best, best_size) = (url, size);
        }
    }
    best
}

/// "640w", "1.5x": digits, with a fraction or not.
fn stated_size(word: &str) -> Option<f64> {
    let digits = word.strip_suffix(['w', 'x'])?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |text: &str| (1..10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    (plain(whole) && plain(part)).then(|| digits.parse().ok()).flatten()
}
