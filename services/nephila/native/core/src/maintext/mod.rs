//! The lines of the main text of a page: features, model, blocks as a whole, the cut that promises the best F1, and no
//! copy of another part.
//!
//! Invariant: whole numbers only. A page of no text has none; lines beyond `MAX_LINES` are treated as the last line
//! before them.

mod around;
mod article;
mod blocks;
mod ending;
mod entries;
mod features;
mod forest;
mod furniture;
mod heading;
mod joined;
mod lines;
mod sections;
mod templates;
mod texts;
mod view;
mod whole;
mod windows;

use crate::boxes::Box;
use crate::tags::{F_PRE, F_TOOL, PRE, TD, TH};
use crate::text::Line;

use features::features;
pub use forest::NAMES as FEATURES;
pub use heading::of_page as page_heading;
use forest::{chances, CHANCES};
use texts::Texts;

const MAX_LINES: usize = 1 << 16;

/// 1,024ths: below 0.2 nothing is main text,
const LEAST: u16 = 205;
/// and from even odds on everything is.
const ENOUGH: u16 = 512;
/// Percent of the text of a page: the model is unsure of a page of which less would stay,
const LEAST_STAYS: u64 = 20;
/// so each of its lines outside of bars, which may be longer than the text, is some entries of `CHANCES` more probable:
/// 1.2 in log-odds.
const LIFTED: u8 = 12;
/// Around a product stand others, reviews and advice: its lines are so many entries of `CHANCES` less probable, 0.2 in
/// log-odds.
const DOUBTED: u8 = 2;
/// A line of so many bytes is recognised as a copy by its text.
const ONCE: u32 = 32;

/// What a page calls itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Article,
    /// Posts of several people.
    Thread,
    Product,
    Other,
}

/// The lines that are main text: their numbers, rising, and their text.
#[derive(Default)]
pub struct Main {
    pub lines: Vec<u32>,
    pub text: Vec<u8>,
    /// The comments of readers below an article, which are no part of the text: a line each.
    pub comments: Vec<u8>,
}

/// The main text of a page by the model. O(bytes + lines + boxes).
pub fn main_text(text: &[u8], lines: &[Line], boxes: &[Box], title: &[u8], subject: Subject) -> Main {
    if lines.is_empty() {
        return Main::default();
    }
    let known = &lines[..lines.len().min(MAX_LINES)];
    let texts = Texts::of(text, known);
    choose(chances(&features(text, known, &texts, boxes, title)), text, lines, &texts, boxes, title, subject)
}

/// The main text by the chances of the first `MAX_LINES` lines (entries of `CHANCES`); there is a line.
fn choose(
    mut found: Vec<u8>,
    text: &[u8],
    lines: &[Line],
    texts: &Texts,
    boxes: &[Box],
    title: &[u8],
    subject: Subject,
) -> Main {
    let (known, places) = (&lines[..found.len()], blocks::places(boxes));
    blocks::level(&mut found, known, boxes, &places);
    let subject = if subject == Subject::Article && article::is_none(&found, known, cut(&found, known)) {
        Subject::Other
    } else {
        subject
    };
    match subject {
        Subject::Other => entries::lift(&mut found, text, known, boxes),
        Subject::Product => found.iter_mut().for_each(|entry| *entry = entry.saturating_sub(DOUBTED)),
        _ => {}
    }
    let mut least = cut(&found, known);
    match subject {
        Subject::Article => least = article::stricter(&found, known, least),
        Subject::Other | Subject::Product if is_little(&found, known, least) => {
            let outside = found.iter_mut().zip(known).filter(|(_, line)| heading::is_content(line));
            outside.for_each(|(entry, _)| *entry = (*entry + LIFTED).min(CHANCES.len() as u8 - 1));
            least = cut(&found, known);
        }
        _ => {}
    }
    if subject == Subject::Other {
        templates::complete(&mut found, known, boxes, least);
    }
    let taken = |at: usize| usize::from(found[at]) >= least;
    let mut said = Said { boxes, first: vec![NOWHERE; texts.count] };
    let mut kept = Vec::with_capacity(lines.len() / 2);
    let mut at = 0;
    while at < known.len() {
        let end = at + blocks::run(&known[at..], &places);
        if taken(at)
            && known[at].flags & F_TOOL == 0
            && !is_data(&known[at], text)
            && said.is_new(&known[at..end], &texts.of_lines[at..end])
        {
            kept.extend(at as u32..end as u32);
        }
        at = end;
    }
    if taken(known.len() - 1) {
        kept.extend(known.len() as u32..lines.len() as u32);
    }
    if matches!(subject, Subject::Other | Subject::Product) {
        heading::add(&mut kept, text, known, title);
    }
    if subject == Subject::Other {
        sections::complete(&mut kept, lines, boxes);
    }
    furniture::leave_out(&mut kept, text, lines, subject);
    let mut comments = Vec::new();
    if subject == Subject::Article {
        let apart = article::leave_out(&mut kept, lines, boxes);
        comments = joined::joined(text, lines, &apart, &places);
        ending::leave_out(&mut kept, text, lines);
    }
    Main { text: joined::joined(text, lines, &kept, &places), lines: kept, comments }
}

/// Whether the lines from an entry on are less than `LEAST_STAYS` of the text. O(lines).
fn is_little(found: &[u8], lines: &[Line], least: usize) -> bool {
    let (mut all, mut stays) = (0u64, 0u64);
    for (entry, line) in found.iter().zip(lines) {
        all += u64::from(line.len);
        stays += if usize::from(*entry) >= least { u64::from(line.len) } else { 0 };
    }
    100 * stays < LEAST_STAYS * all
}

/// The features of the first `MAX_LINES` lines, as the model is trained on them.
pub fn table(text: &[u8], lines: &[Line], boxes: &[Box], title: &[u8]) -> Vec<i16> {
    let known = &lines[..lines.len().min(MAX_LINES)];
    let columns = features(text, known, &Texts::of(text, known), boxes, title);
    columns.numbers().chunks(columns.stride.max(1)).flat_map(|column| &column[..columns.count]).copied().collect()
}

/// The main text by other scores (thousandths of log-odds) than the model's: how a new one is judged.
pub fn by_scores(
    text: &[u8],
    lines: &[Line],
    boxes: &[Box],
    scores: &[i32],
    title: &[u8],
    subject: Subject,
) -> Main {
    let known = lines.len().min(MAX_LINES);
    if known == 0 || scores.len() != known {
        return Main::default();
    }
    let texts = Texts::of(text, &lines[..known]);
    choose(scores.iter().map(|score| forest::entry(*score)).collect(), text, lines, &texts, boxes, title, subject)
}

/// Whether a line is JSON that a page prints by mistake; code is none.
fn is_data(line: &Line, text: &[u8]) -> bool {
    let words = &text[line.start as usize..(line.start + line.len) as usize];
    matches!((words.first(), words.last()), (Some(b'{' | b'['), Some(b'}' | b']')))
        && line.flags & F_PRE == 0
        && memchr::memmem::find(words, b"\":").is_some()
}

/// No box: more than `MAX_BOXES`.
const NOWHERE: u32 = u32::MAX;

/// The main text so far: for each text the box of its first occurrence.
struct Said<'a> {
    boxes: &'a [Box],
    first: Vec<u32>,
}

impl Said<'_> {
    /// Whether a line or a block has text that no earlier part of the page has: pages hold
    /// copies of their parts for phones and for noscript. Verses, notes and rows repeat themselves rightly, in boxes of
    /// one template; so do code and cells.
    fn is_new(&mut self, lines: &[Line], texts: &[u32]) -> bool {
        let (mut long, mut copies) = (0, 0);
        for (line, text) in lines.iter().zip(texts).filter(|(line, _)| line.len >= ONCE) {
            let first = &mut self.first[*text as usize];
            if *first == NOWHERE {
                *first = line.place;
            }
            let key = |place: u32| self.boxes[place as usize].key;
            long += 1;
            copies += u32::from(!matches!(line.tag as u8, PRE | TD | TH) && key(*first) != key(line.place));
        }
        long == 0 || copies < long
    }
}

/// The entry of `CHANCES` from which on lines are taken: where the expected F1 of bytes is highest.
fn cut(found: &[u8], lines: &[Line]) -> usize {
    let mut sizes = [0u64; CHANCES.len()];
    for (chance, line) in found.iter().zip(lines) {
        sizes[usize::from(*chance)] += u64::from(line.len);
    }
    let total: u64 = sizes.iter().zip(&CHANCES).map(|(size, chance)| size * u64::from(*chance)).sum();
    let (mut best, mut best_of, mut least) = (0u128, 1u128, CHANCES.len());
    let (mut taken, mut right) = (0u64, 0u64);
    for at in (0..CHANCES.len()).rev().filter(|at| sizes[*at] > 0) {
        taken += sizes[at] << 10;
        right += sizes[at] * u64::from(CHANCES[at]);
        let of = u128::from(taken + total);
        if u128::from(right) * best_of > best * of {
            (best, best_of, least) = (u128::from(right), of, at);
        }
    }
    let first = |chance: u16| CHANCES.iter().position(|have| *have >= chance).unwrap_or(0);
    least.max(first(LEAST)).min(first(ENOUGH))
}
