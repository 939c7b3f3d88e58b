//! An outline cut into blocks: two walks over its events, the first finds the tables that only lay a page out.

use std::collections::HashSet;

use super::attributes::{
    best_of_srcset, clean_language, is_formula, is_line_numbers, is_note, is_note_link, language_of_class,
    named_language, names_admonition, names_title, number,
};
use super::blocks::{Block, Cell, Container, ContainerKind, Item, Kind, Mark, Range, Task, MAX_DEPTH, NONE};
use super::outline::{Attributes, Event, Outline};
use super::pieces::Pieces;
use crate::markdown::chars::is_space;
use crate::tags::*;
use crate::text;

/// Columns of a cell.
const MAX_SPAN: i64 = 64;
/// Elements around a <pre> that may name its language.
const AROUND: usize = 3;
const LAZY: [&str; 4] = ["data-src", "data-original", "data-lazy-src", "src"];

type Ids = HashSet<u32, foldhash::fast::RandomState>;

fn is_pre(tag: u8) -> bool {
    matches!(tag, PRE | LISTING | XMP)
}

fn is_heading(tag: u8) -> bool {
    CATS[tag as usize] & C_HEADING != 0
}

fn is_block(tag: u8) -> bool {
    // <xmp> is a block of the page pass, too.
    CATS[tag as usize] & C_BLOCK != 0 || tag == XMP
}

fn mark_of(tag: u8) -> Option<Mark> {
    match tag {
        STRONG | B => Some(Mark::Strong),
        EM | I | CITE | DFN => Some(Mark::Emphasis),
        CODE | KBD | SAMP | TT => Some(Mark::Code),
        SUP => Some(Mark::Sup),
        SUB => Some(Mark::Sub),
        MATH => Some(Mark::Math),
        _ => None,
    }
}

/// The tables that are no tables of data: those that hold another, a heading or code, or have no second cell.
fn layout_tables(outline: &Outline<'_>) -> Ids {
    let mut found = Ids::default();
    let mut open: Vec<(u32, u32)> = Vec::new();
    for event in &outline.events {
        match *event {
            Event::Open { tag, id, .. } => {
                if let Some((table, cells)) = open.last_mut() {
                    if tag == TABLE || is_heading(tag) || is_pre(tag) {
                        found.insert(*table);
                    } else if matches!(tag, TD | TH) {
                        *cells += 1;
                    }
                }
                if tag == TABLE {
                    open.push((id, 0));
                }
            }
            Event::Close(id) if open.last().is_some_and(|table| table.0 == id) => {
                if open.pop().is_some_and(|table| table.1 < 2) {
                    found.insert(id);
                }
            }
            _ => {}
        }
    }
    found
}

/// What the end of an element does.
#[derive(Clone, Copy)]
enum End {
    Nothing,
    Mark(Mark),
    Flush,
    Preformatted,
    Heading,
    Caption,
    Container(usize),
    Line,
    /// Of an admonition.
    Title,
    Formula,
    Cell,
    Table,
}

struct Opened {
    id: u32,
    tag: u8,
    attrs: Attributes,
    end: End,
}

/// A line of code: ranges of the text, none of an empty line.
struct CodeLine {
    number: u32,
    pieces: Vec<Range>,
}

pub struct Reader<'o, 'a> {
    outline: &'o Outline<'a>,
    text: &'o [u8],
    lines: &'o [text::Line],
    layout: Ids,
    pub pool: String,
    pub pieces: Pieces,
    pub blocks: Vec<Block>,
    pub containers: Vec<Container>,
    /// Containers around the place, outermost first.
    around: Vec<u32>,
    opened: Vec<Opened>,
    /// An element whose content is left out.
    skipped: Option<u32>,
    level: u8,
    caption: bool,
    /// The block is TeX.
    formula: bool,
    code: Option<Vec<CodeLine>>,
    language: String,
    /// The table of data around the place.
    table: Option<Block>,
    in_cell: bool,
}

impl<'o, 'a> Reader<'o, 'a> {
    /// `text` and `lines` are those of the page pass that has written the outline.
    pub fn new(outline: &'o Outline<'a>, text: &'o [u8], lines: &'o [text::Line]) -> Self {
        Reader {
            outline,
            text,
            lines,
            layout: layout_tables(outline),
            pool: String::new(),
            pieces: Pieces::default(),
            blocks: Vec::new(),
            containers: Vec::new(),
            around: Vec::new(),
            opened: Vec::new(),
            skipped: None,
            level: 0,
            caption: false,
            formula: false,
            code: None,
            language: String::new(),
            table: None,
            in_cell: false,
        }
    }

    /// All blocks. O(bytes).
    pub fn read(&mut self) {
        let outline = self.outline;
        for event in &outline.events {
            if let Some(skipped) = self.skipped {
                if matches!(*event, Event::Close(id) if id == skipped) {
                    self.skipped = None;
                }
                continue;
            }
            match *event {
                Event::Text(from, to, number) => self.text(from, to, number),
                Event::Space => self.space(),
                Event::Void { tag: IMG, attrs } => self.image(attrs),
                Event::Void { tag: INPUT, attrs } => self.task(attrs),
                Event::Void { tag, .. } => self.line_end(tag),
                Event::Open { tag, id, attrs } => match self.start(tag, id, attrs) {
                    Some(end) => self.opened.push(Opened { id, tag, attrs, end }),
                    None => self.skipped = Some(id),
                },
                Event::Close(id) => {
                    if let Some(at) = self.opened.iter().rposition(|element| element.id == id) {
                        let element = self.opened.remove(at);
                        self.end(element.end);
                    }
                }
            }
        }
        self.flush();
    }

    fn attr(&self, attrs: Attributes, name: &str) -> Option<std::borrow::Cow<'a, str>> {
        self.outline.attr(attrs, name)
    }

    fn pooled(&mut self, text: &str) -> Range {
        let from = self.pool.len() as u32;
        self.pool.push_str(text);
        (from, self.pool.len() as u32)
    }

    fn text(&mut self, from: u32, to: u32, number: u32) {
        if self.code.is_some() {
            return self.code_text(from, to, number);
        }
        let mut start = from as usize;
        for piece in self.text[from as usize..to as usize].split(|byte| *byte == b'\n') {
            if start > from as usize && self.pieces.has_text() {
                self.pieces.cut();
            } else if start > from as usize && !self.pieces.is_empty() {
                self.space();
            }
            let range = (start as u32, (start + piece.len()) as u32);
            self.pieces.text(Item::Text(range), piece.len(), number);
            start += piece.len() + 1;
        }
    }

    fn space(&mut self) {
        if self.code.is_none() && !self.pieces.is_empty() {
            let space = self.pooled(" ");
            self.pieces.space(Item::Literal(space));
        }
    }

    /// An element opens; None: what is in it is left out.
    fn start(&mut self, tag: u8, id: u32, attrs: Attributes) -> Option<End> {
        if self.code.is_some() {
            return self.in_code(tag, attrs);
        }
        if is_block(tag) {
            return self.block(tag, id, attrs);
        }
        Some(match tag {
            A => match self.attr(attrs, "href") {
                Some(href) if is_note_link(&href) && self.pieces.note() => End::Mark(Mark::Note),
                Some(href) => {
                    let href = self.pooled(href.trim_matches(is_space));
                    if self.pieces.link(href) {
                        End::Mark(Mark::Link)
                    } else {
                        End::Nothing
                    }
                }
                None => End::Nothing,
            },
            SPAN if is_formula(&self.attr(attrs, "class").unwrap_or_default()) && self.pieces.open(Mark::Math) => {
                End::Mark(Mark::Math)
            }
            _ => match mark_of(tag) {
                // A heading is emphasis itself.
                Some(Mark::Strong | Mark::Emphasis) if self.level > 0 => End::Nothing,
                Some(mark) if self.pieces.open(mark) => End::Mark(mark),
                _ => End::Nothing,
            },
        })
    }

    fn end(&mut self, end: End) {
        match end {
            End::Nothing => {}
            End::Mark(mark) => self.pieces.close(mark),
            End::Flush => self.flush(),
            End::Preformatted => self.end_preformatted(),
            End::Heading => {
                self.flush();
                self.level = 0;
            }
            End::Caption => {
                self.flush();
                self.caption = false;
            }
            End::Container(depth) => {
                self.flush();
                self.around.truncate(depth);
            }
            End::Line => self.pieces.cut(),
            End::Title => {
                self.pieces.close(Mark::Strong);
                self.flush();
            }
            End::Formula => {
                self.flush();
                self.formula = false;
            }
            End::Cell => self.end_cell(),
            End::Table => self.end_table(),
        }
    }

    // ---- blocks

    fn block(&mut self, tag: u8, id: u32, attrs: Attributes) -> Option<End> {
        if self.in_cell {
            self.pieces.cut();
            return Some(End::Line);
        }
        if self.table.is_some() && matches!(tag, TR | TD | TH | TBODY | THEAD | TFOOT | CAPTION) {
            return Some(self.in_table(tag, attrs));
        }
        self.flush();
        Some(match tag {
            _ if is_pre(tag) => {
                self.language = self.language_around(attrs);
                self.code = Some(Vec::new());
                End::Preformatted
            }
            _ if is_heading(tag) => {
                self.level = tag - H1 + 1;
                End::Heading
            }
            FIGCAPTION | CAPTION => {
                self.caption = true;
                End::Caption
            }
            BLOCKQUOTE => self.open_container(ContainerKind::Quote, false, 0),
            UL | OL | MENU | DIR | DL => {
                let start = number(self.attr(attrs, "start").as_deref()).unwrap_or(1);
                self.open_container(ContainerKind::List, tag == OL, start - 1)
            }
            LI | DT => self.item(attrs),
            DD => self.description(attrs),
            TABLE if !self.layout.contains(&id) => {
                let kind = Kind::Table(Vec::new());
                self.table = Some(Block { kind, container: self.innermost(), lines: Vec::new(), kept: false });
                End::Table
            }
            DIV | ASIDE if names_admonition(&self.attr(attrs, "class").unwrap_or_default()) => {
                self.open_container(ContainerKind::Quote, false, 0)
            }
            DIV if is_formula(&self.attr(attrs, "class").unwrap_or_default()) => {
                self.formula = true;
                End::Formula
            }
            P | DIV if names_title(&self.attr(attrs, "class").unwrap_or_default()) => {
                if self.pieces.open(Mark::Strong) {
                    End::Title
                } else {
                    End::Flush
                }
            }
            TD if is_line_numbers(self.attr(attrs, "class").as_deref()) => return None,
            _ => End::Flush,
        })
    }

    fn innermost(&self) -> u32 {
        self.around.last().copied().unwrap_or(NONE)
    }

    /// The block ends; it counts only if it has content.
    fn flush(&mut self) {
        let lines = self.pieces.take();
        if !lines.is_empty() {
            let kind = match self.level {
                0 if self.formula => Kind::Math,
                0 => Kind::Text { caption: self.caption },
                level => Kind::Heading(level),
            };
            self.blocks.push(Block { kind, container: self.innermost(), lines, kept: false });
        }
    }

    fn open_container(&mut self, kind: ContainerKind, ordered: bool, number: i64) -> End {
        let made = self.new_container(kind, ordered, number);
        self.reenter(made)
    }

    fn new_container(&mut self, kind: ContainerKind, ordered: bool, number: i64) -> u32 {
        let parent = self.innermost();
        self.containers.push(Container { kind, parent, ordered, number, task: Task::No, last: NONE });
        self.containers.len() as u32 - 1
    }

    fn reenter(&mut self, container: u32) -> End {
        let depth = self.around.len();
        if depth >= MAX_DEPTH {
            return End::Flush;
        }
        self.around.push(container);
        End::Container(depth)
    }

    /// The list that is the innermost container.
    fn list(&mut self) -> Option<&mut Container> {
        let at = *self.around.last()? as usize;
        self.containers.get_mut(at).filter(|one| one.kind == ContainerKind::List)
    }

    fn item(&mut self, attrs: Attributes) -> End {
        let stated = number(self.attr(attrs, "value").as_deref());
        let Some(list) = self.list() else { return self.open_container(ContainerKind::Item, false, 0) };
        list.number = stated.filter(|_| list.ordered).unwrap_or(list.number + 1);
        let (ordered, number) = (list.ordered, list.number);
        let is_note = ordered && self.attr(attrs, "id").is_some_and(|id| is_note(&id));
        let kind = if is_note { ContainerKind::Note } else { ContainerKind::Item };
        let made = self.new_container(kind, ordered, number);
        if let Some(list) = self.list() {
            list.last = made;
        }
        self.reenter(made)
    }

    /// A box at the start of an item makes a task of it.
    fn task(&mut self, attrs: Attributes) {
        let Some(item) = self.around.last().map(|at| &mut self.containers[*at as usize]) else { return };
        let is_box = self.outline.attr(attrs, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("checkbox"));
        if item.kind == ContainerKind::Item && is_box && self.pieces.is_empty() {
            item.task = if self.outline.attr(attrs, "checked").is_some() { Task::Done } else { Task::Open };
        }
    }

    /// A <dd> continues the item of its <dt>.
    fn description(&mut self, attrs: Attributes) -> End {
        match self.list().map(|list| list.last) {
            Some(last) if last != NONE => self.reenter(last),
            _ => self.item(attrs),
        }
    }

    /// A line ends: <br>, <hr>, an end tag that makes an empty paragraph.
    fn line_end(&mut self, tag: u8) {
        if tag == BR || self.in_cell {
            self.pieces.cut();
        } else if self.code.is_none() {
            self.flush();
        }
    }

    // ---- code

    fn in_code(&mut self, tag: u8, attrs: Attributes) -> Option<End> {
        if matches!(tag, SPAN | TD | DIV) && is_line_numbers(self.attr(attrs, "class").as_deref()) {
            return None;
        }
        if tag == CODE && self.language.is_empty() {
            self.language = self.language_of(attrs);
        }
        Some(End::Nothing)
    }

    /// A range of preformatted text: each line of the page pass is one of the code, after its empty lines.
    fn code_text(&mut self, from: u32, to: u32, last: u32) {
        let text = self.text;
        let part = &text[from as usize..to as usize];
        let breaks = memchr::memchr_iter(b'\n', part).count() as u32;
        let mut number = last - breaks;
        let mut start = from;
        for (at, piece) in part.split(|byte| *byte == b'\n').enumerate() {
            number += u32::from(at > 0);
            self.code_piece((start, start + piece.len() as u32), number);
            start += piece.len() as u32 + 1;
        }
    }

    fn code_piece(&mut self, range: Range, number: u32) {
        let Some(code) = &mut self.code else { return };
        if range.0 == range.1 {
            return;
        }
        if code.last().is_none_or(|line| line.number != number) {
            let blank = if code.is_empty() { 0 } else { self.lines[number as usize].blank };
            for _ in 0..blank {
                code.push(CodeLine { number: NONE, pieces: Vec::new() });
            }
            code.push(CodeLine { number, pieces: Vec::new() });
        }
        if let Some(line) = code.last_mut() {
            line.pieces.push(range);
        }
    }

    fn end_preformatted(&mut self) {
        let code = self.code.take().unwrap_or_default();
        let language = std::mem::take(&mut self.language);
        if code.is_empty() {
            return;
        }
        let mut lines = Vec::with_capacity(code.len());
        for line in code {
            let items: Vec<Item> = line.pieces.iter().map(|range| Item::Text(*range)).collect();
            let size = line.pieces.iter().map(|range| (range.1 - range.0) as usize).sum();
            lines.push(self.pieces.line_of(&items, size, line.number));
        }
        self.blocks.push(Block { kind: Kind::Code { language }, container: self.innermost(), lines, kept: false });
    }

    /// What a <pre> or the elements around it call its language.
    fn language_around(&self, attrs: Attributes) -> String {
        let mut found = self.language_of(attrs);
        for above in self.opened.iter().rev().take(AROUND) {
            if !found.is_empty() || !matches!(above.tag, DIV | FIGURE | TD | PRE | SECTION) {
                break;
            }
            found = named_language(&self.attr(above.attrs, "class").unwrap_or_default());
        }
        found
    }

    fn language_of(&self, attrs: Attributes) -> String {
        for name in ["data-lang", "data-language"] {
            if let Some(said) = self.attr(attrs, name).filter(|said| !said.is_empty()) {
                return clean_language(&said);
            }
        }
        language_of_class(&self.attr(attrs, "class").unwrap_or_default())
    }

    // ---- tables

    fn in_table(&mut self, tag: u8, attrs: Attributes) -> End {
        let span = |name| number(self.attr(attrs, name).as_deref()).unwrap_or(1).clamp(1, MAX_SPAN) as u32;
        let (span, down) = (span("colspan"), span("rowspan"));
        let Some(Block { kind: Kind::Table(rows), .. }) = &mut self.table else { return End::Nothing };
        match tag {
            TR => rows.push(Vec::new()),
            TD | TH => {
                if rows.is_empty() {
                    rows.push(Vec::new());
                }
                if let Some(row) = rows.last_mut() {
                    row.push(Cell { lines: Vec::new(), is_head: tag == TH, span, rows: down });
                }
                // Text between cells stands before the table.
                self.flush();
                self.in_cell = true;
                return End::Cell;
            }
            CAPTION => return End::Flush,
            _ => {}
        }
        End::Nothing
    }

    fn end_cell(&mut self) {
        if !std::mem::take(&mut self.in_cell) {
            return;
        }
        let lines = self.pieces.take();
        if let Some(Block { kind: Kind::Table(rows), .. }) = &mut self.table {
            if let Some(last) = rows.last_mut().and_then(|row| row.last_mut()) {
                last.lines = lines;
            }
        }
    }

    fn end_table(&mut self) {
        let table = self.table.take();
        self.flush();
        self.blocks.extend(table.filter(|table| match &table.kind {
            Kind::Table(rows) => rows.iter().flatten().any(|cell| !cell.lines.is_empty()),
            _ => false,
        }));
    }

    // ---- pictures

    fn image(&mut self, attrs: Attributes) {
        if self.code.is_some() {
            return;
        }
        let small = |name| number(self.attr(attrs, name).as_deref()).is_some_and(|pixels| pixels <= 2);
        if small("width") || small("height") {
            return;
        }
        let Some(source) = self.source_of_image(attrs) else { return };
        let alt = self.attr(attrs, "alt").unwrap_or_default();
        let (alt, source) = (self.pooled(&alt), self.pooled(&source));
        self.pieces.image(alt, source);
    }

    fn source_of_image(&self, attrs: Attributes) -> Option<String> {
        let is_data = |raw: &str| raw.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"));
        for name in LAZY {
            let raw = self.attr(attrs, name).unwrap_or_default();
            let raw = raw.trim_matches(is_space);
            if !raw.is_empty() && !is_data(raw) {
                return Some(raw.to_owned());
            }
        }
        let set = self.attr(attrs, "srcset").filter(|set| !set.is_empty()).or_else(|| self.attr(attrs, "data-srcset"));
        let set = set.unwrap_or_default();
        Some(best_of_srcset(&set)).filter(|best| !best.is_empty() && !is_data(best)).map(str::to_owned)
    }
}
