//! The heading of the page: its <h1> is in the main text, whatever the model takes it for.
//!
//! Articles and threads are left to the model, which knows them well. Shops have it in a box beside the picture, with the price and the buttons. The fallback has the same rule
//! (../../../fallback/main_text.py).

use crate::tags::{F_CHROME, F_MAIN, F_TOOL, H1};
use crate::text::Line;

/// Bytes of a heading; a longer one is text.
const LONGEST: u32 = 400;

fn is_heading(line: &Line) -> bool {
    line.tag as u8 == H1 && line.len <= LONGEST
}

/// Whether a line is in no tool, and in no nav, header, footer or aside but those of the main part.
pub fn is_content(line: &Line) -> bool {
    line.flags & F_TOOL == 0 && (line.flags & (F_CHROME | F_MAIN)) != F_CHROME
}

/// Add the <h1> of the page if the main text has lines and no <h1>. O(lines).
pub fn add(kept: &mut Vec<u32>, text: &[u8], lines: &[Line], title: &[u8]) {
    let has = |line: &Line| is_heading(line) && is_content(line);
    if kept.is_empty() || kept.iter().any(|at| lines.get(*at as usize).is_some_and(has)) {
        return;
    }
    if let Some(at) = of_page(text, lines, title) {
        let before = kept.partition_point(|other| (*other as usize) < at);
        if kept.get(before) != Some(&(at as u32)) {
            kept.insert(before, at as u32);
        }
    }
}

/// The line of the <h1> of the page: the first with which the title begins, or which it has before the name of the site;
/// else, outside of navigation and tools, one at its end, the first in <main>, or the only one. O(lines).
pub fn of_page(text: &[u8], lines: &[Line], title: &[u8]) -> Option<usize> {
    let title = String::from_utf8_lossy(title).to_lowercase();
    let words = |line: &Line| {
        String::from_utf8_lossy(&text[line.start as usize..(line.start + line.len) as usize]).to_lowercase()
    };
    let headings = || lines.iter().enumerate().filter(|(_, line)| is_heading(line));
    let contents = || headings().filter(|(_, line)| is_content(line));
    headings()
        .find(|(_, line)| title.starts_with(&words(line)))
        .or_else(|| headings().find(|(_, line)| title.contains(&words(line)) && !title.ends_with(&words(line))))
        .or_else(|| contents().find(|(_, line)| title.contains(&words(line))))
        .or_else(|| contents().find(|(_, line)| line.flags & F_MAIN != 0))
        .or_else(|| contents().next().filter(|_| contents().nth(1).is_none()))
        .map(|(at, _)| at)
}
