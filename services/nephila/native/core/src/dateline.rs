//! Visible lines that hold the date or the author of the page: those beside the headline with a year or a name, and those
//! with a date behind a label (../../labels.txt). Rows have them as an entry of the metadata, because they are no main
//! text.
//!
//! Readers of rows judge them (kernel/page_facts). The fallback has the same rules (../../fallback/dateline.py).

use std::sync::LazyLock;

use memchr::memmem;

use crate::maintext::page_heading;
use crate::text::Line;

/// Lines behind and before the headline that are looked at.
const BEHIND: usize = 8;
const BEFORE: usize = 3;
/// Lines that are noted.
const MOST: usize = 8;
/// Bytes of such a line, and of a line that is a label alone.
const LONGEST: u32 = 200;
const LONGEST_LABEL: u32 = 32;
/// Places of a year that are looked at for a label.
const MOST_YEARS: usize = 256;
/// A shorter text is in lines of other meaning than the title.
const LEAST_TITLE: usize = 16;
/// The beginning of a line that names its author.
const BY: [&[u8]; 3] = [b"By ", b"by ", b"BY "];
/// Signs of a year in Chinese, Japanese and Korean.
const YEARS: [&str; 2] = ["年", "년"];
const CENTURY: &[u8] = b"20";

static LABELS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    include_str!("../../labels.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
});

/// The lines, a line each: those behind the headline, those before it from the nearest on, those behind a label. O(bytes).
pub fn of_page(text: &[u8], lines: &[Line], title: &[u8]) -> String {
    let page = Lines { text, lines };
    let mut noted: Vec<usize> = Vec::new();
    if let Some(at) = page.headline(title) {
        let beside = (at + 1..lines.len()).take(BEHIND).chain((0..at).rev().take(BEFORE));
        noted.extend(beside.filter(|at| lines[*at].len <= LONGEST && is_dateline(page.words(*at))));
    }
    for at in page.labelled() {
        if !noted.contains(&at) {
            noted.push(at);
        }
    }
    let noted: Vec<&[u8]> = noted.into_iter().take(MOST).map(|at| page.words(at)).collect();
    String::from_utf8_lossy(&noted.join(&b'\n')).into_owned()
}

struct Lines<'a> {
    text: &'a [u8],
    lines: &'a [Line],
}

impl<'a> Lines<'a> {
    fn words(&self, at: usize) -> &'a [u8] {
        let line = &self.lines[at];
        &self.text[line.start as usize..(line.start + line.len) as usize]
    }

    /// The <h1> with which the title begins, else a line with which it begins, else the <h1> of the page.
    fn headline(&self, title: &[u8]) -> Option<usize> {
        let begins = |at: &usize| title.starts_with(self.words(*at));
        let heading = page_heading(self.text, self.lines, title);
        let is_long = |at: &usize| self.lines[*at].len as usize >= LEAST_TITLE;
        heading.filter(begins).or_else(|| (0..self.lines.len()).find(|at| is_long(at) && begins(at))).or(heading)
    }

    /// Lines with a year of this century that begin with a label, or that follow one.
    fn labelled(&self) -> impl Iterator<Item = usize> + '_ {
        let years = memmem::find_iter(self.text, CENTURY).take(MOST_YEARS).filter(|byte| self.is_year(*byte));
        let at = years.map(|byte| self.lines.partition_point(|line| line.start as usize <= byte).wrapping_sub(1));
        at.filter(|at| {
            let is_label = |at: usize, most: u32| self.lines[at].len <= most && begins_with_label(self.words(at));
            self.lines.get(*at).is_some_and(|line| line.len <= LONGEST)
                && (is_label(*at, LONGEST) || *at > 0 && is_label(*at - 1, LONGEST_LABEL))
        })
    }

    /// Whether four digits begin here, and no more.
    fn is_year(&self, byte: usize) -> bool {
        let is_digit = |at: usize| self.text.get(at).is_some_and(u8::is_ascii_digit);
        is_digit(byte + 2) && is_digit(byte + 3) && !is_digit(byte + 4) && !is_digit(byte.wrapping_sub(1))
    }
}

fn begins_with_label(line: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&line[..line.len().min(LONGEST_LABEL as usize)]).to_lowercase();
    LABELS.iter().any(|label| head.starts_with(label))
}

fn is_dateline(line: &[u8]) -> bool {
    BY.iter().any(|word| line.starts_with(word)) || has_year(line)
}

/// Whether a run of four digits is a year, of the Buddhist calendar too, or a sign of one is in the line.
fn has_year(line: &[u8]) -> bool {
    let is_year = |run: &[u8]| run.len() == 4 && [&b"19"[..], CENTURY, b"25"].iter().any(|start| run.starts_with(start));
    line.split(|byte| !byte.is_ascii_digit()).any(is_year)
        || YEARS.iter().any(|sign| memmem::find(line, sign.as_bytes()).is_some())
}
