//! Text within a block: emphasis, code, links and images, cut into lines.
//!
//! Invariants: markup is closed in the line in which it is opened; white space never stands inside of a marker, where
//! the marker would be invalid. O(characters), since at most four kinds of markup are open at a time.

use super::blocks::Line;
use super::chars::{collapsed, find_markup, is_control, is_space};

/// What permalinks of headings are shown as.
const SIGNS: &str = "¶#§∞⚓⁋☍🔗⛓\u{FFFC}";

struct Link {
    /// Where it begins in `marked` and in `plain`.
    at: usize,
    plain_at: usize,
    url: String,
    /// It leads to its own page.
    own: bool,
}

/// Collects a block's text and cuts it into lines.
#[derive(Default)]
pub struct Inline {
    lines: Vec<Line>,
    plain: String,
    marked: String,
    /// Markers of the emphasis that is open and where it begins in `marked`, outermost first.
    open: Vec<(&'static str, usize)>,
    /// Where code begins in `marked`.
    code: Option<usize>,
    link: Option<Link>,
}

impl Inline {
    /// A run of text.
    pub fn text(&mut self, text: &str) {
        self.plain.push_str(text);
        if self.code.is_some() {
            self.marked.push_str(text);
        } else {
            escape(text, &mut self.marked);
        }
    }

    /// Emphasis begins; false where it is within such already.
    pub fn emphasis(&mut self, marker: &'static str) -> bool {
        if self.code.is_some() || self.open.iter().any(|(other, _)| *other == marker) {
            return false;
        }
        self.open.push((marker, self.marked.len()));
        true
    }

    /// Emphasis ends, unless its link has closed it. What was opened in it continues.
    pub fn end_emphasis(&mut self, marker: &'static str) {
        let Some(place) = self.open.iter().rposition(|(other, _)| *other == marker) else { return };
        let inner: Vec<&'static str> = self.open[place + 1..].iter().map(|(marker, _)| *marker).collect();
        while self.open.len() > place {
            self.close_innermost();
        }
        self.open.extend(inner.into_iter().map(|marker| (marker, self.marked.len())));
    }

    fn close_innermost(&mut self) {
        if let Some((marker, at)) = self.open.pop() {
            self.wrap(at, marker, marker);
        }
    }

    /// Code begins; false where it is within such already.
    pub fn code(&mut self) -> bool {
        if self.code.is_some() {
            return false;
        }
        self.code = Some(self.marked.len());
        true
    }

    pub fn end_code(&mut self) {
        let Some(at) = self.code.take() else { return };
        let content = &self.marked[at..];
        let ticks = "`".repeat(1 + longest_ticks(content));
        let inner = content.trim_matches(is_space);
        let pad = if inner.starts_with('`') || inner.ends_with('`') { " " } else { "" };
        self.wrap(at, &format!("{ticks}{pad}"), &format!("{pad}{ticks}"));
    }

    /// A link begins; false where it is within such, or within code.
    pub fn link(&mut self, url: String, own: bool) -> bool {
        if self.link.is_some() || self.code.is_some() {
            return false;
        }
        self.link = Some(Link { at: self.marked.len(), plain_at: self.plain.len(), url, own });
        true
    }

    /// The link ends. A permalink's sign is left out; what has no text is no link.
    pub fn end_link(&mut self) {
        let Some(Link { at, plain_at, url, own }) = self.link.take() else { return };
        let said = self.plain[plain_at..].trim_matches(is_space);
        if own && !said.is_empty() && said.chars().all(|c| SIGNS.contains(c)) && said.chars().count() <= 3 {
            self.marked.truncate(at);
        } else if !url.is_empty() {
            let mut balanced = String::new();
            balance(&self.marked[at..], &mut balanced);
            self.marked.truncate(at);
            self.marked.push_str(&balanced);
            let mut behind = String::from("](");
            write_url(&url, &mut behind);
            behind.push(')');
            self.wrap(at, "[", &behind);
        }
        self.open.retain(|one| one.1 <= at);
    }

    /// A picture.
    pub fn image(&mut self, alt: &str, url: &str) {
        if self.code.is_some() {
            return;
        }
        let mut said = String::new();
        escape(&collapsed(alt), &mut said);
        self.marked.push_str("![");
        balance(&said, &mut self.marked);
        self.marked.push_str("](");
        write_url(url, &mut self.marked);
        self.marked.push(')');
    }

    /// The line ends; markup that is open continues in the next.
    pub fn cut(&mut self) {
        if self.marked.is_empty() && self.plain.is_empty() {
            return;
        }
        let code = self.code.is_some();
        if !code && self.link.is_none() && self.open.is_empty() {
            return self.cut_plain();
        }
        let opened: Vec<&'static str> = self.open.iter().map(|(marker, _)| *marker).collect();
        self.end_code();
        let from = self.link.as_ref().map_or(0, |link| link.at);
        while self.open.last().is_some_and(|one| one.1 >= from) {
            self.close_innermost();
        }
        let link = self.link.as_ref().map(|link| (link.url.clone(), link.own));
        self.end_link();
        while !self.open.is_empty() {
            self.close_innermost();
        }
        self.cut_plain();
        self.link = link.map(|(url, own)| Link { at: 0, plain_at: 0, url, own });
        self.open.extend(opened.into_iter().map(|marker| (marker, 0)));
        self.code = code.then_some(0);
    }

    /// The line ends, and no markup is open.
    fn cut_plain(&mut self) {
        let (plain, written) = (collapsed(&self.plain), collapsed(&self.marked));
        if !plain.is_empty() || !written.is_empty() {
            self.lines.push(Line { plain, written });
        }
        self.plain.clear();
        self.marked.clear();
    }

    /// The lines so far, the last one cut.
    pub fn take(&mut self) -> Vec<Line> {
        self.cut();
        std::mem::take(&mut self.lines)
    }

    fn wrap(&mut self, at: usize, before: &str, behind: &str) {
        let content = &self.marked[at..];
        let end = at + content.trim_end_matches(is_space).len();
        let start = end - self.marked[at..end].trim_start_matches(is_space).len();
        if start < end {
            self.marked.insert_str(end, behind);
            self.marked.insert_str(start, before);
        }
    }
}

/// The longest run of backticks.
pub fn longest_ticks(text: &str) -> usize {
    let (mut run, mut most) = (0, 0);
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        most = most.max(run);
    }
    most
}

/// A backslash before what would be markup.
fn escape(text: &str, out: &mut String) {
    let (mut from, mut search) = (0, 0);
    while let Some(at) = find_markup(text, search) {
        search = at + 1;
        let rest = &text.as_bytes()[search..];
        let special = match text.as_bytes()[at] {
            b'_' => !text[..at].chars().next_back().is_some_and(is_word) || !text[at + 1..].starts_with(is_word),
            b'<' => rest.first().is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?')),
            b'&' => is_reference(rest),
            b'~' => rest.first() == Some(&b'~'),
            _ => true,
        };
        if special {
            out.push_str(&text[from..at]);
            out.push('\\');
            from = at;
        }
    }
    out.push_str(&text[from..]);
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Whether what follows an ampersand makes a character reference of it.
fn is_reference(rest: &[u8]) -> bool {
    let name = rest.strip_prefix(b"#").unwrap_or(rest);
    let length = name.iter().take(33).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    (1..=32).contains(&length) && name.get(length) == Some(&b';')
}

/// Text within brackets, which no bracket in it may close; those of a picture are whole.
fn balance(text: &str, out: &mut String) {
    if !text.contains(']') || text.contains("![") {
        return out.push_str(text);
    }
    let mut before = ' ';
    for c in text.chars() {
        if c == ']' && before != '\\' {
            out.push('\\');
        }
        out.push(c);
        before = c;
    }
}

fn write_url(url: &str, out: &mut String) {
    for c in url.chars().filter(|c| *c != '\n' && !is_control(*c)) {
        match c {
            '(' => out.push_str("%28"),
            ')' => out.push_str("%29"),
            ' ' => out.push_str("%20"),
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            '\\' => out.push_str("%5C"),
            _ => out.push(c),
        }
    }
}
