//! White space and control characters in text, found byte by byte.

/// White space, as Python's `str.split` has it.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Controls but line feed and tab, and marks that change the direction of text: never in Markdown.
pub fn is_control(c: char) -> bool {
    matches!(c, '\0'..='\x08' | '\x0b'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

const SPACE: u8 = 1;
/// A control, or the first byte of characters of which some are controls or white space.
const ODD: u8 = 2;
const MARKUP: u8 = 4;

static CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = ODD;
        byte += 1;
    }
    // Of the others, white space is U+0085, U+00A0 and some below U+1680 to U+3000; controls are as above.
    let odd = [0x7F, 0xC2, 0xD8, 0xE1, 0xE2, 0xE3];
    let mut i = 0;
    while i < odd.len() {
        table[odd[i]] = ODD;
        i += 1;
    }
    let spaces = b" \t\n";
    i = 0;
    while i < spaces.len() {
        table[spaces[i] as usize] = SPACE;
        i += 1;
    }
    let markup = b"\\`*[]_<&~";
    i = 0;
    while i < markup.len() {
        table[markup[i] as usize] = MARKUP;
        i += 1;
    }
    table
};

/// The first byte at or after `from` of some class.
fn find(text: &str, from: usize, class: u8) -> Option<usize> {
    text.as_bytes()[from..].iter().position(|byte| CLASS[*byte as usize] & class != 0).map(|at| from + at)
}

/// The next byte that may be markup.
pub fn find_markup(text: &str, from: usize) -> Option<usize> {
    find(text, from, MARKUP)
}

/// The next control or white space but space, tab and line feed, and whether it is white space.
fn find_odd(text: &str, mut from: usize) -> Option<(usize, char)> {
    while let Some(at) = find(text, from, ODD) {
        let c = text[at..].chars().next()?;
        if is_control(c) || is_space(c) {
            return Some((at, c));
        }
        from = at + c.len_utf8();
    }
    None
}

/// Append text without the controls that part no words. O(n).
pub fn push_readable(text: &str, out: &mut String) {
    push_without(text, |c| is_control(c) && !is_space(c), out);
}

/// Append text without controls. O(n).
pub fn push_clean(text: &str, out: &mut String) {
    push_without(text, is_control, out);
}

fn push_without(text: &str, dropped: impl Fn(char) -> bool, out: &mut String) {
    let (mut from, mut search) = (0, 0);
    while let Some((at, c)) = find_odd(text, search) {
        search = at + c.len_utf8();
        if dropped(c) {
            out.push_str(&text[from..at]);
            from = search;
        }
    }
    out.push_str(&text[from..]);
}

/// White space collapsed and trimmed, without controls. O(n).
pub fn collapsed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    // A word goes up to the next white space; a control in it is left out.
    let mut parted = false;
    let mut add = |run: &str, ends: bool| {
        if !run.is_empty() {
            if parted && !out.is_empty() {
                out.push(' ');
            }
            out.push_str(run);
            parted = false;
        }
        parted |= ends;
    };
    while let Some(at) = find(text, from, SPACE | ODD) {
        let c = text[at..].chars().next().unwrap_or(' ');
        let next = at + c.len_utf8();
        let (space, control) = (is_space(c), is_control(c));
        if space || control {
            add(&text[from..at], space);
        } else {
            add(&text[from..next], false);
        }
        from = next;
    }
    add(&text[from..], false);
    out
}
