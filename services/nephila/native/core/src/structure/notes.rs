//! Notes of a page: which links refer to one, where their texts are, what leads back.

use std::collections::HashMap;

use super::blocks::{part, Block, Container, ContainerKind, Item, Kind, Line, Mark, Task, NONE};
use super::pieces::Pieces;

/// Notes of a page; a page with more is no text.
const MOST: usize = 10_000;
/// Digits of the number of a note.
const DIGITS: usize = 4;

/// What ids of notes begin with.
const NAMES: [&str; 13] = [
    "easy-footnote-bottom",
    "footnote",
    "cite_note",
    "endnote",
    "sidenote",
    "_ftn",
    "_edn",
    "ftn",
    "edn",
    "note",
    "fn",
    "en",
    "ft",
];

/// Whether an id is that of a note: a name of notes, and what tells it from others.
pub fn is_note(id: &[u8]) -> bool {
    // The first letters of the names, and of the prefix.
    if !matches!(id.first(), Some(b'_' | b'c' | b'e' | b'f' | b'n' | b's' | b'u')) {
        return false;
    }
    let Ok(id) = std::str::from_utf8(id) else { return false };
    let id = id.strip_prefix("user-content-").unwrap_or(id);
    let Some(rest) = NAMES.iter().find_map(|name| id.strip_prefix(name)) else { return false };
    let rest = rest.trim_start_matches([':', '-', '_', '.']);
    let is_short = id.starts_with("en") || id.starts_with("ft") || id.starts_with("note");
    !rest.is_empty() && !leads_back(rest) && (!is_short || rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a fragment, or its end, is that of a reference, to which a note leads back.
pub fn leads_back(fragment: &str) -> bool {
    ["ref", "anchor", "marker", "back", "fnr"].iter().any(|name| fragment.contains(name)) || fragment.ends_with("-link")
}

/// The fragment of a reference; None without one.
pub fn fragment_of(href: &[u8]) -> Option<&str> {
    let at = memchr::memchr(b'#', href)?;
    std::str::from_utf8(&href[at + 1..]).ok().filter(|fragment| !fragment.is_empty())
}

/// The numbers of notes by the fragments that lead to them, in the order of the page.
#[derive(Default)]
pub struct Notes(HashMap<String, i64, foldhash::fast::RandomState>);

impl Notes {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of a note that is referred to; None of too many.
    pub fn refer(&mut self, fragment: &str) -> Option<i64> {
        if let Some(number) = self.0.get(fragment) {
            return Some(*number);
        }
        let number = self.0.len() as i64 + 1;
        (self.0.len() < MOST).then(|| *self.0.entry(fragment.to_owned()).or_insert(number))
    }

    /// The number of the note with this id.
    pub fn number(&self, id: &str) -> Option<i64> {
        self.0.get(id).copied()
    }

    /// The number of the note that leads back by this fragment.
    pub fn number_behind(&self, fragment: &str) -> Option<i64> {
        self.number(&fragment.replace("ref", "")).filter(|_| fragment.contains("ref"))
    }
}

/// The number at the start of a text, as a note has it: "1", "[1]", "1.", "(1)"; its bytes, white space behind it included.
pub fn label(text: &str) -> Option<(i64, usize)> {
    let bare = text.trim_start().trim_start_matches(['[', '(']);
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &bare[digits..];
    let number = bare[..digits].parse().ok().filter(|_| (1..=DIGITS).contains(&digits))?;
    let end = rest.trim_start_matches([']', ')', '.', ':']).trim_start();
    let is_parted = rest.is_empty() || !rest.starts_with(|c: char| c.is_alphanumeric() || c == ',');
    is_parted.then(|| (number, text.len() - end.len()))
}

/// The numbered texts behind a heading or a rule to which raised numbers of the text refer become notes. O(items).
pub fn find_loose(blocks: &mut [Block], containers: &mut Vec<Container>, pieces: &mut Pieces, text: &Texts<'_>) {
    let Some(start) = blocks.iter().rposition(|block| begins_notes(block, &pieces.lines, &pieces.items, text)) else {
        return;
    };
    let first = start + 1;
    let mut numbers: Vec<(usize, i64)> = Vec::new();
    for (at, block) in blocks.iter().enumerate().skip(first) {
        if matches!(block.kind, Kind::Heading(_)) {
            break;
        }
        let number = marked_number(block, &pieces.lines, &pieces.items, text);
        if number == Some(numbers.len() as i64 + 1) {
            numbers.extend(number.map(|number| (at, number)));
        }
    }
    let Some(last) = numbers.last().map(|number| number.1) else { return };
    // Each must be referred to, or the numbers are something else.
    let mut references: Vec<(usize, i64)> = Vec::new();
    for block in &blocks[..start] {
        for line in part(&pieces.lines, block.lines) {
            for at in line.items.0 as usize..(line.items.1 as usize).saturating_sub(2) {
                if let [Item::Open(Mark::Sup), item, Item::Close(Mark::Sup)] = pieces.items[at..at + 3] {
                    let raised = text.of(&item);
                    if let Some((number, _)) = label(raised).filter(|label| label.1 == raised.len() && label.0 <= last)
                    {
                        references.push((at, number));
                    }
                }
            }
        }
    }
    if !(1..=last).all(|number| references.iter().any(|reference| reference.1 == number)) {
        return;
    }
    for (at, _) in references {
        pieces.items[at] = Item::Open(Mark::Note);
        pieces.items[at + 2] = Item::Close(Mark::Note);
    }
    for (position, (at, number)) in numbers.iter().enumerate() {
        let parent = blocks[*at].container;
        containers.push(Container {
            kind: ContainerKind::Note,
            parent,
            ordered: true,
            number: *number,
            task: Task::No,
            last: NONE,
        });
        let note = containers.len() as u32 - 1;
        let end = numbers.get(position + 1).map_or(blocks.len(), |next| next.0);
        for block in &mut blocks[*at..end] {
            if matches!(block.kind, Kind::Heading(_) | Kind::Rule) || block.container != parent {
                break;
            }
            block.container = note;
        }
        without_label(&blocks[*at], &pieces.lines, &mut pieces.items, text);
    }
}

/// The texts of items.
pub struct Texts<'t> {
    pub text: &'t [u8],
    pub pool: &'t str,
}

impl Texts<'_> {
    pub fn of(&self, item: &Item) -> &str {
        match *item {
            Item::Text(range) => std::str::from_utf8(part(self.text, range)).unwrap_or_default(),
            Item::Literal(range) => &self.pool[range.0 as usize..range.1 as usize],
            _ => "",
        }
    }
}

fn begins_notes(block: &Block, lines: &[Line], items: &[Item], text: &Texts<'_>) -> bool {
    match block.kind {
        Kind::Rule => true,
        Kind::Heading(_) => {
            let own =
                || part(lines, block.lines).iter().flat_map(|line| part(items, line.items)).map(|item| text.of(item));
            let first = own().find_map(|text| text.trim_start().bytes().next());
            if !matches!(first, Some(b'n' | b'N' | b'f' | b'F' | b'e' | b'E')) {
                return false;
            }
            let title: String = own().collect();
            let title = title.trim().trim_end_matches(':');
            ["notes", "footnotes", "endnotes", "footnote"].iter().any(|name| title.eq_ignore_ascii_case(name))
        }
        _ => false,
    }
}

/// The number that a block begins with, raised or bold.
fn marked_number(block: &Block, lines: &[Line], items: &[Item], text: &Texts<'_>) -> Option<i64> {
    let line = part(lines, block.lines).first().filter(|_| matches!(block.kind, Kind::Text { .. }))?;
    let own = part(items, line.items);
    let marks = own.iter().take_while(|item| matches!(item, Item::Open(Mark::Sup | Mark::Strong))).count();
    own.get(marks).filter(|_| marks > 0).and_then(|item| label(text.of(item))).map(|label| label.0)
}

/// Take the number away that the text of a note begins with.
pub fn without_label(block: &Block, lines: &[Line], items: &mut [Item], text: &Texts<'_>) {
    let Some(line) = part(lines, block.lines).first() else { return };
    let own = &mut items[line.items.0 as usize..line.items.1 as usize];
    let Some(item) = own.iter_mut().find(|item| matches!(item, Item::Text(_) | Item::Literal(_))) else { return };
    let Some((_, size)) = label(text.of(item)) else { return };
    match item {
        Item::Text(range) | Item::Literal(range) => range.0 += size as u32,
        _ => {}
    }
}
