//! Text within a line as Markdown: emphasis, code, links and images.
//!
//! Invariant: white space never stands inside of a marker, where the marker would be invalid. O(characters), since at
//! most a handful of marks are open at a time.

use super::chars::{collapsed, find_markup, is_control, is_space, push_readable};

/// A mark that is open: where it begins in the text, and what stands around its content.
struct Open {
    at: usize,
    before: &'static str,
    behind: String,
}

/// Collects a line. Marks are properly nested.
#[derive(Default)]
pub struct Inline {
    marked: String,
    open: Vec<Open>,
    /// Where code or a formula begins.
    verbatim: Option<usize>,
}

impl Inline {
    /// A run of text.
    pub fn text(&mut self, text: &str) {
        if self.verbatim.is_some() {
            return self.marked.push_str(text);
        }
        // First without controls: what they part may be markup.
        let mut clean = String::with_capacity(text.len());
        push_readable(text, &mut clean);
        escape(&clean, &mut self.marked);
    }

    pub fn open(&mut self, (before, behind): (&'static str, &'static str)) {
        self.open.push(Open { at: self.marked.len(), before, behind: behind.into() });
    }

    pub fn close(&mut self) {
        if let Some(one) = self.open.pop() {
            self.wrap(one.at, one.before, &one.behind);
        }
    }

    /// A link begins; `behind`: what follows its text, "" where it is text alone.
    pub fn link(&mut self, behind: String) {
        let before = if behind.is_empty() { "" } else { "[" };
        self.open.push(Open { at: self.marked.len(), before, behind });
    }

    pub fn end_link(&mut self) {
        let Some(one) = self.open.pop() else { return };
        if !one.behind.is_empty() {
            let mut balanced = String::new();
            balance(&self.marked[one.at..], &mut balanced);
            self.marked.truncate(one.at);
            self.marked.push_str(&balanced);
            self.wrap(one.at, one.before, &one.behind);
        }
    }

    pub fn code(&mut self) {
        self.verbatim = Some(self.marked.len());
    }

    pub fn end_code(&mut self) {
        let Some(at) = self.verbatim.take() else { return };
        let content = &self.marked[at..];
        let ticks = "`".repeat(1 + longest_ticks(content));
        let inner = content.trim_matches(is_space);
        let pad = if inner.starts_with('`') || inner.ends_with('`') { " " } else { "" };
        self.wrap(at, &format!("{ticks}{pad}"), &format!("{pad}{ticks}"));
    }

    pub fn math(&mut self) {
        self.code();
    }

    pub fn end_math(&mut self) {
        let Some(at) = self.verbatim.take() else { return };
        let content = self.marked.split_off(at);
        let formula = tex(&content);
        // Two formulas side by side are two; white space stays before its formula.
        if content.starts_with(is_space) || self.marked.ends_with('$') {
            self.marked.push(' ');
        }
        let at = self.marked.len();
        self.marked.push_str(formula);
        self.wrap(at, "$", "$");
    }

    /// A picture.
    pub fn image(&mut self, alt: &str, url: &str) {
        let mut said = String::new();
        escape(&collapsed(alt), &mut said);
        self.marked.push_str("![");
        balance(&said, &mut self.marked);
        self.marked.push_str("](");
        write_url(url, &mut self.marked);
        self.marked.push(')');
    }

    /// The line.
    pub fn take(self) -> String {
        collapsed(&self.marked)
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

/// A formula without the signs around it.
pub fn tex(formula: &str) -> &str {
    let inner = formula.trim_matches(is_space);
    let bare = |open: &str, close: &str| inner.strip_prefix(open)?.strip_suffix(close);
    bare("\\(", "\\)").or_else(|| bare("\\[", "\\]")).unwrap_or(formula)
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
    c.is_alphanumeric()
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

pub fn write_url(url: &str, out: &mut String) {
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
