//! Blocks as Markdown text, each with the markers and indentation of the lists and quotes around it.

use std::collections::HashMap;

use super::chars::{collapsed, is_space, push_clean};
use super::inline::{longest_ticks, tex, write_url, Inline};
use super::links::Resolver;
use super::LinkStyle;
use crate::structure::blocks::{
    part, path, Block, Cell, Container, ContainerKind, Item, Kind, Line, Mark, Structure, Task,
};

/// Bytes; what is beyond is left out: indentation may make the text several times longer than the page.
pub const MAX_BYTES: usize = 32_000_000;

/// The text, without a line end at its end. O(bytes).
pub fn write(structure: &Structure<'_>, resolver: Resolver<'_>, style: LinkStyle) -> String {
    let mut writer = Writer { structure, resolver, style, numbers: HashMap::default(), urls: Vec::new() };
    let (containers, mut out) = (&structure.containers, Out::new(structure.containers.len()));
    let mut before: Option<&Block> = None;
    for block in &structure.blocks {
        let Some(content) = writer.content(block) else { continue };
        let around = path(containers, block.container);
        if let Some(before) = before {
            let above = path(containers, before.container);
            let common = common(&above, &around);
            out.part_lists(above.get(common.len()), around.get(common.len()), containers);
            if !out.is_close(before, block, common, &around, containers) {
                out.blank(&common.iter().map(|at| indentation(&containers[*at as usize])).collect::<String>());
            }
        }
        out.begin(&around, containers);
        match block.kind {
            // Hyphens behind the marker of an item are one rule with it.
            Kind::Rule if out.first != out.rest => out.line(&["___"]),
            _ => content.iter().for_each(|line| out.line(&[line])),
        }
        if out.is_full() {
            break;
        }
        before = Some(block);
    }
    writer.references(&mut out);
    out.text
}

struct Writer<'s, 'r> {
    structure: &'s Structure<'s>,
    resolver: Resolver<'r>,
    style: LinkStyle,
    /// Of link references, by URL.
    numbers: HashMap<String, usize, foldhash::fast::RandomState>,
    urls: Vec<String>,
}

impl Writer<'_, '_> {
    /// The lines of a block; None of an empty one.
    fn content(&mut self, block: &Block) -> Option<Vec<String>> {
        let structure = self.structure;
        let lines = part(&structure.lines, block.lines);
        match &block.kind {
            Kind::Heading(level) => {
                let mut plain = |line| {
                    let mut inline = self.inline(line);
                    inline.unembolden();
                    inline.take()
                };
                let text = lines.iter().map(&mut plain).collect::<Vec<_>>().join(" ");
                let text = text.trim_matches(is_space);
                let (start, mark, signs) = without_closing(text);
                let opening = "#".repeat(usize::from(*level));
                (!text.is_empty()).then(|| vec![format!("{opening} {start}{mark}{signs}")])
            }
            Kind::Rule => Some(vec![String::from("---")]),
            Kind::Code { language } => Some(self.code(lines, language)),
            Kind::Math => {
                let lines = lines.iter().map(|line| self.structure.plain(line)).collect::<Vec<_>>().join("\n");
                let lines = tex(&lines).split('\n').map(collapsed).filter(|line| !line.is_empty());
                Some([String::from("$$")].into_iter().chain(lines).chain([String::from("$$")]).collect())
            }
            Kind::Table(rows) => Some(self.table(structure.cells_of(*rows))),
            Kind::Text { .. } => {
                let lines: Vec<String> = lines.iter().map(|line| self.line(line)).collect();
                let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
                let last = lines.len().checked_sub(1)?;
                // Two spaces end a line within a paragraph.
                let behind = |at| if at < last { "  " } else { "" };
                let parts = |(at, line): (usize, &String)| {
                    let (start, mark, rest) = without_opening(line);
                    [start, mark, rest, behind(at)].concat()
                };
                Some(lines.iter().enumerate().map(parts).collect())
            }
        }
    }

    fn code(&self, lines: &[Line], language: &str) -> Vec<String> {
        let clean = |line: &Line| {
            let mut written = String::new();
            push_clean(self.structure.plain(line).trim_end_matches(is_space), &mut written);
            written
        };
        let lines: Vec<String> = lines.iter().map(clean).collect();
        let fence = "`".repeat(lines.iter().map(|line| longest_ticks(line)).max().unwrap_or(0).max(2) + 1);
        [format!("{fence}{language}")].into_iter().chain(lines).chain([fence.clone()]).collect()
    }

    /// A line with its marks as Markdown.
    fn line(&mut self, line: &Line) -> String {
        self.inline(line).take()
    }

    fn inline(&mut self, line: &Line) -> Inline {
        let mut inline = Inline::default();
        let structure = self.structure;
        for item in structure.items_of(line) {
            match *item {
                Item::Text(range) => inline.text(structure.text_of(range)),
                Item::Literal(range) => inline.text(structure.pool_of(range)),
                Item::Link(range) => {
                    let end = self.end_of_link(structure.pool_of(range));
                    inline.link(end);
                }
                Item::Open(Mark::Code | Mark::Math) => inline.verbatim(),
                Item::Open(mark) => inline.open(mark),
                Item::Close(Mark::Code) => inline.end_code(),
                Item::Close(Mark::Math) => inline.end_math(),
                Item::Close(_) => inline.close(),
                Item::Image(alt, source) => {
                    let url = self.resolver.resolve(structure.pool_of(source));
                    if !url.is_empty() && self.style != LinkStyle::None {
                        inline.image(structure.pool_of(alt), &url);
                    }
                }
            }
        }
        inline
    }

    /// What stands behind the text of a link; "" where it is text alone.
    fn end_of_link(&mut self, reference: &str) -> String {
        if self.style == LinkStyle::None {
            return String::new();
        }
        let url = self.resolver.resolve(reference);
        if url.is_empty() {
            return url;
        }
        if self.style == LinkStyle::Reference {
            let urls = &mut self.urls;
            let number = *self.numbers.entry(url).or_insert_with_key(|url| {
                urls.push(url.clone());
                urls.len()
            });
            return format!("][{number}]");
        }
        let mut end = String::from("](");
        write_url(&url, &mut end);
        end.push(')');
        end
    }

    fn references(&self, out: &mut Out) {
        for (at, url) in self.urls.iter().enumerate() {
            let mut line = format!("[{}]: ", at + 1);
            write_url(url, &mut line);
            if at == 0 {
                out.blank("");
            }
            out.begin(&[], &[]);
            out.line(&[&line]);
        }
    }

    fn table<'c>(&mut self, rows: impl Iterator<Item = &'c [Cell]>) -> Vec<String> {
        let rows = grid(rows);
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut rows = rows.iter().filter(|row| !row.is_empty()).peekable();
        let mut lines = Vec::new();
        match rows.next_if(|row| row.iter().all(|cell| cell.is_none_or(|cell| cell.is_head))) {
            Some(head) => lines.push(self.row(head, width)),
            None => lines.push(format!("|{}", "  |".repeat(width))),
        }
        lines.push(format!("|{}", " --- |".repeat(width)));
        let mut size = 0;
        for row in rows {
            lines.push(self.row(row, width));
            size += lines.last().map_or(0, String::len);
            if size > MAX_BYTES {
                break;
            }
        }
        lines
    }

    fn row(&mut self, cells: &[Option<&Cell>], width: usize) -> String {
        let mut text = String::from("|");
        for cell in cells {
            text.push(' ');
            let lines = cell.map_or(&[][..], |cell| part(&self.structure.lines, cell.lines));
            let lines: Vec<String> = lines.iter().map(|line| self.line(line)).collect();
            let lines = lines.iter().filter(|line| !line.is_empty());
            for (number, written) in lines.enumerate() {
                text.push_str(if number > 0 { "<br>" } else { "" });
                // Before the backslashes of the text are read, those before bars are taken away, in code as well.
                text.push_str(&written.replace('|', "\\|"));
            }
            text.push_str(" |");
        }
        text.push_str(&"  |".repeat(width - cells.len()));
        text
    }
}

/// The cells of each row by column; None where a cell of another column or row spans.
fn grid<'c>(rows: impl Iterator<Item = &'c [Cell]>) -> Vec<Vec<Option<&'c Cell>>> {
    // Of each column how many rows are still spanned.
    let mut spanned: Vec<u32> = Vec::new();
    let mut found = Vec::new();
    for row in rows {
        let mut line: Vec<Option<&Cell>> = Vec::new();
        for cell in row {
            skip_spanned(&mut line, &mut spanned);
            for column in 0..cell.span {
                spanned.resize(spanned.len().max(line.len() + 1), 0);
                spanned[line.len()] = cell.rows - 1;
                line.push((column == 0).then_some(cell));
            }
        }
        skip_spanned(&mut line, &mut spanned);
        found.push(line);
    }
    found
}

fn skip_spanned<'c>(line: &mut Vec<Option<&'c Cell>>, spanned: &mut [u32]) {
    while let Some(left) = spanned.get_mut(line.len()).filter(|left| **left > 0) {
        *left -= 1;
        line.push(None);
    }
}

/// Lines with what stands before them.
struct Out {
    text: String,
    /// Before the first line of a block and before the others.
    first: String,
    rest: String,
    begun: bool,
    any: bool,
    /// Of each container that is an item: its marker is written.
    marked: Vec<bool>,
    /// Of each list: it follows another such list, and has the other marker.
    others: Vec<bool>,
}

impl Out {
    fn new(containers: usize) -> Self {
        let (text, first, rest) = Default::default();
        let (marked, others) = (vec![false; containers], vec![false; containers]);
        Out { text, first, rest, begun: false, any: false, marked, others }
    }

    fn is_full(&self) -> bool {
        self.text.len() > MAX_BYTES
    }

    fn begin(&mut self, around: &[u32], containers: &[Container]) {
        self.first.clear();
        self.rest.clear();
        self.begun = false;
        for at in around {
            let container = &containers[*at as usize];
            self.rest.push_str(&indentation(container));
            if is_item(container) && !std::mem::replace(&mut self.marked[*at as usize], true) {
                let is_other = self.others.get(container.parent as usize).is_some_and(|other| *other);
                self.first.push_str(&container.marker(is_other));
            } else {
                self.first.push_str(&indentation(container));
            }
        }
    }

    /// A list right behind another of its kind has the other marker: with the same it would be one list with it.
    fn part_lists(&mut self, before: Option<&u32>, list: Option<&u32>, containers: &[Container]) {
        let (Some(before), Some(list)) = (before, list) else { return };
        let [one, other] = [before, list].map(|at| &containers[*at as usize]);
        if one.kind == ContainerKind::List && other.kind == one.kind && one.ordered == other.ordered {
            self.others[*list as usize] = !self.others[*before as usize];
        }
    }

    /// Whether no blank line parts two blocks: items of one list, or of one within the other.
    fn is_close(
        &self,
        before: &Block,
        block: &Block,
        common: &[u32],
        around: &[u32],
        containers: &[Container],
    ) -> bool {
        let text = |block: &Block| matches!(block.kind, Kind::Text { .. });
        let kind = |at: &u32| containers[*at as usize].kind;
        let (Some(own), Some(shared)) = (around.last(), common.last()) else { return false };
        // A list that does not begin with 1 ends no paragraph.
        let begins_late = matches!(around.get(common.len()..), Some([list, item, ..])
            if kind(list) == ContainerKind::List
                && containers[*list as usize].ordered
                && containers[*item as usize].number != 1);
        text(before)
            && text(block)
            && !begins_late
            && matches!(kind(own), ContainerKind::Item | ContainerKind::Note)
            && !self.marked[*own as usize]
            && kind(shared) != ContainerKind::Quote
    }

    fn new_line(&mut self) {
        if self.any {
            self.text.push('\n');
        }
        self.any = true;
    }

    fn blank(&mut self, prefix: &str) {
        self.new_line();
        self.text.push_str(prefix.trim_end_matches(' '));
    }

    /// A line of a block, in pieces; none beyond `MAX_BYTES`.
    fn line(&mut self, pieces: &[&str]) {
        if self.is_full() {
            return;
        }
        self.new_line();
        let empty = self.begun && pieces.iter().all(|piece| piece.is_empty());
        let prefix = if self.begun { &self.rest } else { &self.first };
        self.text.push_str(if empty { prefix.trim_end_matches(' ') } else { prefix });
        for piece in pieces {
            self.text.push_str(piece);
        }
        self.begun = true;
    }
}

/// What a container puts before the lines after its first.
fn indentation(container: &Container) -> String {
    match container.kind {
        ContainerKind::Quote => "> ".into(),
        ContainerKind::List => String::new(),
        // A task is "- " with a box in its text.
        ContainerKind::Item if container.task != Task::No && !container.ordered => "  ".into(),
        ContainerKind::Item => " ".repeat(container.marker(false).len()),
        ContainerKind::Note => "    ".into(),
    }
}

fn is_item(container: &Container) -> bool {
    matches!(container.kind, ContainerKind::Item | ContainerKind::Note)
}

fn common<'p>(before: &[u32], around: &'p [u32]) -> &'p [u32] {
    let length = before.iter().zip(around).take_while(|(left, right)| left == right).count();
    &around[..length]
}

/// A heading in three pieces: the second is the backslash that number signs at its end need, which would close it.
fn without_closing(text: &str) -> (&str, &str, &str) {
    let (start, signs) = text.split_at(text.trim_end_matches('#').len());
    let closes = !signs.is_empty() && (start.is_empty() || start.ends_with(' '));
    (start, if closes { "\\" } else { "" }, signs)
}

/// A line of text in three pieces: the second is the backslash that it needs where it would begin a block.
fn without_opening(line: &str) -> (&str, &str, &str) {
    match opening(line.as_bytes()) {
        Some(at) => (&line[..at], "\\", &line[at..]),
        None => (line, "", ""),
    }
}

/// Where a line needs a backslash, so that it begins no heading, quote, list, table, rule or code.
fn opening(line: &[u8]) -> Option<usize> {
    let run = |is: &dyn Fn(u8) -> bool| line.iter().take_while(|byte| is(**byte)).count();
    let parted = |at: usize| line.get(at).is_none_or(|byte| byte.is_ascii_whitespace());
    let found = match *line.first()? {
        b'>' => true,
        b'#' => (1..=6).contains(&run(&|byte| byte == b'#')) && parted(run(&|byte| byte == b'#')),
        b'0'..=b'9' => {
            let digits = run(&|byte| byte.is_ascii_digit());
            let item = digits <= 9 && matches!(line.get(digits), Some(b'.' | b')')) && parted(digits + 1);
            return item.then_some(digits);
        }
        b'+' => parted(1),
        b'-' if parted(1) => true,
        b'=' | b':' | b'|' | b'-' => line.iter().all(|byte| b"=:| -".contains(byte)),
        _ => false,
    };
    found.then_some(0)
}
