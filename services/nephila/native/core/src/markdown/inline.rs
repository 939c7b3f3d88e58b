//! Text within a line as Markdown: emphasis, code, links and images.
//!
//! Invariants: white space never stands inside of a marker, where the marker would be invalid; asterisks and tildes stand
//! where CommonMark 6.2 reads them as the mark they are (flanking), else the mark is written as HTML. O(characters), since
//! at most a handful of marks are open at a time.

use super::chars::{collapsed, find_markup, is_control, is_space, push_readable};
use crate::structure::blocks::Mark;

/// Rounds in which marks become HTML, each beside those of the round before; then all marks of the line do.
const ROUNDS: usize = 8;

/// Where a mark opens or closes.
struct Sign {
    /// In the text.
    at: usize,
    /// The number of its mark.
    mark: usize,
    is_open: bool,
}

/// A mark of the line.
struct Written {
    mark: Mark,
    /// What follows the text of a link.
    behind: String,
    /// Where it ends in the text.
    end: usize,
    /// Asterisks or tildes would not be read as meant.
    is_html: bool,
}

/// A mark that is open; None: its text stands alone.
struct Open(Option<usize>);

/// Collects a line. Marks are properly nested.
#[derive(Default)]
pub struct Inline {
    /// Text that is not yet escaped: markup may stand across two pieces of it.
    plain: String,
    /// What stands between the signs.
    text: String,
    signs: Vec<Sign>,
    marks: Vec<Written>,
    open: Vec<Open>,
    /// Links that are open.
    links: usize,
    /// Code or a formula that is open.
    verbatim: Option<String>,
    /// Where the text has the end of code.
    behind_code: Option<usize>,
}

impl Inline {
    /// A run of text.
    pub fn text(&mut self, text: &str) {
        match &mut self.verbatim {
            Some(verbatim) => verbatim.push_str(text),
            // Without controls first: what they part may be markup.
            None => push_readable(text, &mut self.plain),
        }
    }

    /// The text so far is complete.
    fn settle(&mut self) {
        if !self.plain.is_empty() {
            escape(&self.plain, self.links > 0, &mut self.text);
            self.plain.clear();
        }
    }

    pub fn open(&mut self, mark: Mark) {
        self.begin(mark, String::new());
    }

    fn begin(&mut self, mark: Mark, behind: String) {
        self.settle();
        self.links += usize::from(mark == Mark::Link);
        self.marks.push(Written { mark, behind, end: 0, is_html: false });
        let number = self.marks.len() - 1;
        self.signs.push(Sign { at: self.text.len(), mark: number, is_open: true });
        self.open.push(Open(Some(number)));
    }

    /// A link begins; `behind`: what follows its text, "" where it is text alone.
    pub fn link(&mut self, behind: String) {
        if behind.is_empty() {
            self.open.push(Open(None));
        } else {
            self.begin(Mark::Link, behind);
        }
    }

    /// The innermost mark ends. White space at its ends moves out; without content it is none.
    pub fn close(&mut self) {
        let Some(Open(Some(mark))) = self.open.pop() else { return };
        self.settle();
        self.links -= usize::from(self.marks[mark].mark == Mark::Link);
        let Some(opening) = self.signs.iter().rposition(|sign| sign.mark == mark) else { return };
        let from = self.signs[opening].at;
        let content = self.text[from..].trim_end_matches(is_space);
        let end = from + content.len();
        let start = end - content.trim_start_matches(is_space).len();
        if start == end {
            self.signs.truncate(opening);
        } else {
            self.marks[mark].end = end;
            self.signs[opening].at = start;
            self.signs.push(Sign { at: end, mark, is_open: false });
        }
    }

    /// Code or a formula begins.
    pub fn verbatim(&mut self) {
        self.settle();
        self.verbatim = Some(String::new());
    }

    pub fn end_code(&mut self) {
        let Some(content) = self.verbatim.take() else { return };
        let mut code = String::with_capacity(content.len());
        push_readable(&content, &mut code);
        let inner = code.trim_matches(is_space);
        if inner.is_empty() {
            return self.text.push_str(&code);
        }
        let lead = &code[..code.len() - code.trim_start_matches(is_space).len()];
        let is_beside = lead.is_empty()
            && self.behind_code == Some(self.text.len())
            && self.signs.last().is_none_or(|sign| sign.at < self.text.len());
        self.text.push_str(lead);
        if is_beside {
            // Backticks beside those of other code are one run.
            self.text.push_str("<code>");
            escape(inner, self.links > 0, &mut self.text);
            self.text.push_str("</code>");
        } else {
            let ticks = "`".repeat(1 + longest_ticks(inner));
            let pad = if inner.starts_with('`') || inner.ends_with('`') { " " } else { "" };
            for part in [&ticks, pad, inner, pad, &ticks] {
                self.text.push_str(part);
            }
            self.behind_code = Some(self.text.len());
        }
        self.text.push_str(&code[lead.len() + inner.len()..]);
    }

    pub fn end_math(&mut self) {
        let Some(content) = self.verbatim.take() else { return };
        let formula = tex(&content);
        let inner = formula.trim_matches(is_space);
        // Two formulas side by side are two; white space stays before its formula.
        if content.starts_with(is_space) || self.text.ends_with('$') {
            self.text.push(' ');
        }
        if !inner.is_empty() {
            for part in ["$", inner, "$"] {
                self.text.push_str(part);
            }
        }
        if formula.ends_with(is_space) {
            self.text.push(' ');
        }
    }

    /// A picture.
    pub fn image(&mut self, alt: &str, url: &str) {
        self.settle();
        self.text.push_str("![");
        escape(&collapsed(alt), true, &mut self.text);
        self.text.push_str("](");
        write_url(url, &mut self.text);
        self.text.push(')');
    }

    /// Bold text that is all of the line is plain: a heading is bold itself.
    pub fn unembolden(&mut self) {
        self.settle();
        let [first, .., last] = &self.signs[..] else { return };
        let around = self.text[..first.at].chars().chain(self.text[last.at..].chars());
        if first.mark == last.mark && self.marks[first.mark].mark == Mark::Strong && around.into_iter().all(is_space) {
            self.signs.pop();
            self.signs.remove(0);
        }
    }

    /// The line.
    pub fn take(mut self) -> String {
        self.settle();
        for round in 0..=ROUNDS {
            if !self.choose(round == ROUNDS) {
                break;
            }
        }
        let mut out = String::with_capacity(self.text.len() + 4 * self.signs.len());
        let mut from = 0;
        for sign in &self.signs {
            out.push_str(&self.text[from..sign.at]);
            from = sign.at;
            let written = self.written(sign);
            if written.starts_with('[') && out.ends_with('!') {
                // "![" would be a picture. A backslash is missed by readers that look for pictures alone.
                out.pop();
                out.push_str("&#33;");
            }
            out.push_str(written);
        }
        out.push_str(&self.text[from..]);
        collapsed(&out)
    }

    /// What a sign writes.
    fn written(&self, sign: &Sign) -> &str {
        let Written { mark, behind, is_html, .. } = &self.marks[sign.mark];
        let (before, after) = match mark {
            Mark::Strong if *is_html => ("<strong>", "</strong>"),
            Mark::Emphasis if *is_html => ("<em>", "</em>"),
            Mark::Strike if *is_html => ("<del>", "</del>"),
            Mark::Strong => ("**", "**"),
            Mark::Emphasis => ("*", "*"),
            Mark::Strike => ("~~", "~~"),
            Mark::Sup => ("<sup>", "</sup>"),
            Mark::Sub => ("<sub>", "</sub>"),
            Mark::Note => ("[^", "]"),
            Mark::Link => ("[", behind.as_str()),
            Mark::Code | Mark::Math => ("", ""),
        };
        if sign.is_open {
            before
        } else {
            after
        }
    }

    /// The asterisk or tilde of a sign; None of another.
    fn delimiter(&self, sign: &Sign) -> Option<u8> {
        let is_plain = !self.marks[sign.mark].is_html;
        match self.marks[sign.mark].mark {
            Mark::Strong | Mark::Emphasis if is_plain => Some(b'*'),
            Mark::Strike if is_plain => Some(b'~'),
            _ => None,
        }
    }

    /// Make HTML of marks that would not be read as meant, of all marks if `all`; whether any was. O(signs).
    fn choose(&mut self, all: bool) -> bool {
        let mut changed = false;
        let mut first = 0;
        while first < self.signs.len() {
            let Some(delimiter) = self.delimiter(&self.signs[first]) else {
                first += 1;
                continue;
            };
            // The run: signs side by side with one character.
            let at = self.signs[first].at;
            let is_same = |sign: &&Sign| sign.at == at && self.delimiter(sign) == Some(delimiter);
            let last = first + self.signs[first..].iter().take_while(is_same).count();
            // What opens right behind what closes is one run with it.
            let closing = self.signs[first..last].iter().take_while(|sign| !sign.is_open).count();
            let end = |number: usize| self.marks[self.signs[number].mark].end;
            let bad = if closing > 0 && first + closing < last {
                first + closing..last
            } else if closing == 0 && end(first) != end(last - 1) {
                // What is left of a run that is closed in parts may be closed by what only opens.
                first + 1..last
            } else if all || !self.is_read(first, last, closing == 0, delimiter) {
                first..last
            } else {
                last..last
            };
            changed |= !bad.is_empty();
            for number in bad {
                let mark = self.signs[number].mark;
                self.marks[mark].is_html = true;
            }
            first = last;
        }
        changed
    }

    /// Whether a run of asterisks or tildes opens or closes by its neighbours (CommonMark 6.2: left- and right-flanking).
    fn is_read(&self, first: usize, last: usize, opens: bool, delimiter: u8) -> bool {
        let at = self.signs[first].at;
        let beside =
            |number: Option<usize>| number.and_then(|number| self.signs.get(number)).filter(|sign| sign.at == at);
        let before = match beside(first.checked_sub(1)) {
            Some(sign) => self.written(sign).chars().next_back(),
            None => self.text[..at].chars().next_back(),
        };
        let behind = match beside(Some(last)) {
            Some(sign) => self.written(sign).chars().next(),
            None => self.text[at..].chars().next(),
        };
        if delimiter == b'~' && [before, behind].contains(&Some('~')) {
            return false;
        }
        let (inside, outside) = if opens { (behind, before) } else { (before, behind) };
        inside.is_some_and(|c| !may_be_punctuation(c)) || outside.is_none_or(|c| is_space(c) || is_punctuation(c))
    }
}

/// Punctuation or a symbol: versions of CommonMark differ in which symbols count.
fn may_be_punctuation(c: char) -> bool {
    !c.is_alphanumeric()
}

/// Punctuation of every version of CommonMark; the characters of common scripts.
fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(c, '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{2043}'
            | '\u{2045}'..='\u{2051}' | '\u{2053}'..='\u{205e}' | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}'
            | '\u{3014}'..='\u{301f}' | '\u{30fb}' | '\u{ff01}'..='\u{ff03}' | '\u{ff05}'..='\u{ff0a}'
            | '\u{ff0c}'..='\u{ff0f}' | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}' | '\u{ff20}' | '\u{ff3b}'..='\u{ff3d}'
            | '\u{ff3f}' | '\u{ff5b}' | '\u{ff5d}' | '\u{ff5f}'..='\u{ff65}')
}

/// A formula without the signs around it.
pub fn tex(formula: &str) -> &str {
    let inner = formula.trim_matches(is_space);
    let bare = |open: &str, close: &str| inner.strip_prefix(open)?.strip_suffix(close);
    bare("\\(", "\\)").or_else(|| bare("\\[", "\\]")).or_else(|| bare("$$", "$$")).unwrap_or(formula)
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

/// A backslash before what would be markup; before closing brackets, too, where the text stands in brackets.
fn escape(text: &str, in_brackets: bool, out: &mut String) {
    let (mut from, mut search) = (0, 0);
    while let Some(at) = find_markup(text, search) {
        search = at + 1;
        let rest = &text.as_bytes()[search..];
        let special = match text.as_bytes()[at] {
            b'_' => !text[..at].chars().next_back().is_some_and(is_word) || !text[at + 1..].starts_with(is_word),
            b'<' => rest.first().is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?')),
            b'&' => is_reference(rest),
            b']' => in_brackets,
            // One that can close: after white space it can only open.
            b'~' => text[..at].chars().next_back().or(out.chars().next_back()).is_some_and(|c| !is_space(c)),
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

pub fn write_url(url: &str, out: &mut String) {
    for (at, c) in url.char_indices().filter(|(_, c)| *c != '\n' && !is_control(*c)) {
        match c {
            '(' => out.push_str("%28"),
            ')' => out.push_str("%29"),
            ' ' => out.push_str("%20"),
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            '\\' => out.push_str("%5C"),
            // Code goes before links.
            '`' => out.push_str("%60"),
            '&' if is_reference(&url.as_bytes()[at + 1..]) => out.push_str("\\&"),
            _ => out.push(c),
        }
    }
}
