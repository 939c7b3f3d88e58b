//! An outline cut into blocks: two walks over its events, the first finds the tables that only lay a page out.

use std::borrow::Cow;
use std::collections::HashSet;

use super::attributes::{
    best_of_srcset, clean_language, is_formula, is_line_numbers, language_of_class, named_language, number, role_of,
    Role,
};
use super::blocks::{part, Block, Cell, Container, ContainerKind, Item, Kind, Mark, Range, Task, MAX_DEPTH, NONE};
use super::event::{Attributes, Event, DISPLAY};
use super::notes::{self, Notes, Texts};
use super::outline::Outline;
use super::pieces::Pieces;
use super::room::Room;
use crate::encoding::query_in;
use crate::formulas;
use crate::markdown::chars::is_space;
use crate::spelling::spelled_text;
use crate::tags::*;
use crate::text;

/// Columns of a cell.
const MAX_SPAN: i64 = 64;
/// Elements around a <pre> that may name its language.
const AROUND: usize = 3;
/// The section of a row that is in no head or foot.
const BODY_ROW: u8 = 1;
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
        DEL | S | STRIKE => Some(Mark::Strike),
        MATH => Some(Mark::Math),
        _ => None,
    }
}

/// What a table has, to tell whether it is of data.
struct Look {
    id: u32,
    rows: u32,
    cells: u32,
    has_code: bool,
}

/// The tables that are no tables of data: those that hold another or a heading, or have no second cell; those with code,
/// if not most of several rows have two cells.
fn layout_tables(outline: &Outline<'_>) -> Ids {
    let mut layout = Ids::default();
    let mut open: Vec<Look> = Vec::new();
    for event in &outline.events {
        match *event {
            Event::Open { tag, id, .. } => {
                if let Some(table) = open.last_mut() {
                    match tag {
                        TD | TH => table.cells += 1,
                        TR => table.rows += 1,
                        tag if is_pre(tag) => table.has_code = true,
                        tag if tag == TABLE || is_heading(tag) => {
                            layout.insert(table.id);
                        }
                        _ => {}
                    }
                }
                if tag == TABLE {
                    open.push(Look { id, rows: 0, cells: 0, has_code: false });
                }
            }
            Event::Close(id) if open.last().is_some_and(|table| table.id == id) => {
                let plain =
                    |table: Look| table.cells < 2 || table.has_code && (table.rows < 2 || table.cells < 2 * table.rows);
                if open.pop().is_some_and(plain) {
                    layout.insert(id);
                }
            }
            _ => {}
        }
    }
    layout
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
    /// Code in a cell.
    CodeLines,
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

/// Preformatted text that is being read.
#[derive(Default)]
struct Code {
    is_open: bool,
    /// Of each line its number and how many pieces it has; an empty line has none.
    lines: Vec<(u32, u32)>,
    /// Ranges of the text.
    pieces: Vec<Range>,
}

pub struct Reader<'o, 'a> {
    outline: &'o Outline<'a>,
    text: &'o [u8],
    lines: &'o [text::Line],
    layout: Ids,
    pub pool: String,
    pub pieces: Pieces,
    pub cells: Vec<Cell>,
    pub rows: Vec<Range>,
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
    code: Code,
    language: String,
    /// The table of data around the place: its container and its first row.
    table: Option<(u32, u32)>,
    /// Of each of its rows: 0 above the others (in <thead>), 2 below (in <tfoot>), else 1; and of the row that comes next.
    sections: Vec<u8>,
    section: u8,
    in_cell: bool,
    notes: Notes,
}

impl<'o, 'a> Reader<'o, 'a> {
    /// `text` and `lines` are those of the page pass that has written the outline; the vectors of `room` are empty.
    pub fn new(outline: &'o Outline<'a>, text: &'o [u8], lines: &'o [text::Line], room: Room) -> Self {
        Reader {
            outline,
            text,
            lines,
            layout: if outline.has_tables { layout_tables(outline) } else { Ids::default() },
            pool: room.pool,
            pieces: Pieces::new(room.items, room.lines),
            cells: room.cells,
            rows: room.rows,
            blocks: room.blocks,
            containers: room.containers,
            around: Vec::new(),
            opened: Vec::new(),
            skipped: None,
            level: 0,
            caption: false,
            formula: false,
            code: Code::default(),
            language: String::new(),
            table: None,
            sections: Vec::new(),
            section: BODY_ROW,
            in_cell: false,
            notes: Notes::default(),
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
                        let end = self.opened[at].end;
                        // Nearly always the last one.
                        if at + 1 == self.opened.len() {
                            self.opened.truncate(at);
                        } else {
                            self.opened.remove(at);
                        }
                        self.end(end);
                    }
                }
            }
        }
        self.flush();
    }

    fn attr(&self, attrs: Attributes, name: &str) -> Option<Cow<'a, str>> {
        self.outline.attr(attrs, name)
    }

    fn pooled(&mut self, text: &str) -> Range {
        let from = self.pool.len() as u32;
        self.pool.push_str(text);
        (from, self.pool.len() as u32)
    }

    fn text(&mut self, from: u32, to: u32, number: u32) {
        if self.code.is_open {
            return self.code_text(from, to, number);
        }
        // The last line has no line feed: most pieces of text are one line and are not searched.
        let last = self.lines.get(number as usize).map_or(to, |line| line.start.clamp(from, to));
        debug_assert!(!part(self.text, (last, to)).contains(&b'\n'));
        let mut start = from;
        for at in memchr::memchr_iter(b'\n', part(self.text, (from, last))) {
            self.text_piece((start, from + at as u32), number);
            start = from + at as u32 + 1;
            if self.pieces.has_text() {
                self.pieces.cut();
            } else if !self.pieces.is_empty() {
                self.space();
            }
        }
        self.text_piece((start, to), number);
    }

    fn text_piece(&mut self, range: Range, number: u32) {
        self.pieces.text(Item::Text(range), (range.1 - range.0) as usize, number);
    }

    fn space(&mut self) {
        if !self.code.is_open && !self.pieces.is_empty() {
            let space = self.pooled(" ");
            self.pieces.space(Item::Literal(space));
        }
    }

    /// An element opens; None: what is in it is left out.
    fn start(&mut self, tag: u8, id: u32, attrs: Attributes) -> Option<End> {
        if self.code.is_open {
            return self.in_code(tag, attrs);
        }
        if is_block(tag) {
            return self.block(tag, id, attrs);
        }
        Some(match tag {
            A => match self.outline.raw(attrs, b"href") {
                Some(href) if self.note_link(href, attrs) => return None,
                // A heading that leads to a place of its own page is its permalink.
                Some([b'#', ..]) if self.level > 0 => End::Nothing,
                // The attributes stand for the reference until it is known whether the link is kept.
                Some(_) if self.pieces.link(attrs) => End::Mark(Mark::Link),
                _ => End::Nothing,
            },
            MATH if attrs == DISPLAY && self.level == 0 => {
                self.flush();
                self.formula = true;
                End::Formula
            }
            SPAN if self.begin_note_at(attrs) => End::Nothing,
            SPAN if is_formula(self.outline.raw(attrs, b"class").unwrap_or_default())
                && self.pieces.open(Mark::Math) =>
            {
                End::Mark(Mark::Math)
            }
            _ => match mark_of(tag) {
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
            End::CodeLines => {
                self.pieces.close(Mark::Code);
                self.pieces.cut();
            }
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
            // Code of several lines is code in each of them.
            return Some(if is_pre(tag) && self.pieces.open(Mark::Code) { End::CodeLines } else { End::Line });
        }
        if self.table.is_some() && matches!(tag, TR | TD | TH | TBODY | THEAD | TFOOT | CAPTION) {
            return Some(self.in_table(tag, attrs));
        }
        self.flush();
        if let Some(number) = self.note_of(tag, attrs) {
            return Some(self.open_container(ContainerKind::Note, true, number));
        }
        Some(match tag {
            _ if is_pre(tag) => {
                self.language = self.language_around(attrs);
                self.code.is_open = true;
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
                let depth = self.around.len();
                // A list directly in a list belongs to the item before it; without one it is that list.
                if let Some(last) = self.last_item() {
                    self.reenter(last);
                } else if let Some(list) = self.list() {
                    (self.containers[list].ordered, self.containers[list].number) = (tag == OL, start - 1);
                    return Some(End::Flush);
                }
                match self.open_container(ContainerKind::List, tag == OL, start - 1) {
                    End::Container(_) => End::Container(depth),
                    other => other,
                }
            }
            LI | DT => self.item(attrs),
            DD => self.description(attrs),
            TABLE if !self.layout.contains(&id) => {
                self.table = Some((self.innermost(), self.rows.len() as u32));
                End::Table
            }
            DIV | ASIDE | P => self.by_role(tag, attrs),
            TD if is_line_numbers(Some(self.outline.class(attrs))) => return None,
            _ => End::Flush,
        })
    }

    /// A block whose class may give it a meaning.
    fn by_role(&mut self, tag: u8, attrs: Attributes) -> End {
        match self.outline.raw(attrs, b"class").map_or(Role::None, role_of) {
            Role::Admonition if tag != P => self.open_container(ContainerKind::Quote, false, 0),
            Role::Formula if tag == DIV => {
                self.formula = true;
                End::Formula
            }
            Role::Title if tag != ASIDE && self.pieces.open(Mark::Strong) => End::Title,
            _ => End::Flush,
        }
    }

    fn innermost(&self) -> u32 {
        self.around.last().copied().unwrap_or(NONE)
    }

    /// The block ends; it counts only if it has content.
    fn flush(&mut self) {
        let lines = self.pieces.take();
        if lines.0 < lines.1 {
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
    fn list(&self) -> Option<usize> {
        let at = *self.around.last()? as usize;
        (self.containers[at].kind == ContainerKind::List).then_some(at)
    }

    fn item(&mut self, attrs: Attributes) -> End {
        let Some(list) = self.list() else { return self.open_container(ContainerKind::Item, false, 0) };
        let Container { ordered, number: before, .. } = self.containers[list];
        let stated = if ordered { number(self.attr(attrs, "value").as_deref()) } else { None };
        let number = stated.unwrap_or(before + 1);
        let made = self.new_container(ContainerKind::Item, ordered, number);
        // Where nothing refers to them, the numbers of notes are those of their list.
        let names_note = || self.attr(attrs, "id").is_some_and(|id| notes::is_note(id.as_bytes()));
        let is_note = ordered && self.notes.is_empty() && names_note();
        if let Some(number) = self.note_of(LI, attrs).or(is_note.then_some(number)) {
            self.make_note(made, number);
        }
        (self.containers[list].number, self.containers[list].last) = (number, made);
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
        match self.last_item() {
            Some(last) => self.reenter(last),
            None => self.item(attrs),
        }
    }

    /// The item before the place, directly in a list.
    fn last_item(&self) -> Option<u32> {
        self.list().map(|list| self.containers[list].last).filter(|last| *last != NONE)
    }

    /// A line ends: <br>, <hr>, an end tag that makes an empty paragraph.
    fn line_end(&mut self, tag: u8) {
        if tag == BR || self.in_cell {
            self.pieces.cut();
        } else if !self.code.is_open {
            self.flush();
            if tag == HR && self.table.is_none() {
                let empty = self.pieces.take();
                self.blocks.push(Block { kind: Kind::Rule, container: self.innermost(), lines: empty, kept: false });
            }
        }
    }

    // ---- notes

    /// Whether a link refers to a note, or leads back from one: its text is no text.
    fn note_link(&mut self, href: &[u8], attrs: Attributes) -> bool {
        let Some(fragment) = notes::fragment_of(href) else { return false };
        let is_local = href.starts_with(b"#");
        let in_note = self.in_note();
        if in_note || !self.notes.is_empty() && notes::leads_back(fragment) {
            let id = self.attr(attrs, "id").or_else(|| self.attr(attrs, "name"));
            let number = id.and_then(|id| self.notes.number(&id)).or_else(|| self.notes.number_behind(fragment));
            if let Some(number) = number.filter(|_| self.pieces.is_empty() && !in_note) {
                self.begin_note(number);
            }
            return self.in_note() && (is_local || notes::leads_back(fragment));
        }
        let is_named = || {
            let role = self.outline.raw(attrs, b"role").or_else(|| self.outline.raw(attrs, b"data-type"));
            self.outline.class(attrs).contains("footnote") || role.is_some_and(|role| role.ends_with(b"noteref"))
        };
        let refers = if notes::is_note(fragment.as_bytes()) {
            is_local || self.pieces.is_raised() || is_named()
        } else {
            is_local && self.pieces.is_raised()
        };
        let refers = refers && self.level == 0 && !notes::leads_back(fragment);
        match if refers { self.notes.refer(fragment) } else { None } {
            Some(number) => {
                let number = self.pooled(&number.to_string());
                self.pieces.note(Item::Literal(number));
                true
            }
            None => false,
        }
    }

    fn in_note(&self) -> bool {
        self.around.iter().any(|at| self.containers[*at as usize].kind == ContainerKind::Note)
    }

    /// The number of the note whose text a block is.
    fn note_of(&self, tag: u8, attrs: Attributes) -> Option<i64> {
        if self.notes.is_empty() || !matches!(tag, LI | P | DIV | ASIDE | SECTION) || self.in_note() {
            return None;
        }
        self.attr(attrs, "id").and_then(|id| self.notes.number(&id))
    }

    /// Whether the place of a note begins here, within a block.
    fn begin_note_at(&mut self, attrs: Attributes) -> bool {
        if self.notes.is_empty() || !self.pieces.is_empty() || self.in_note() {
            return false;
        }
        let number = self.attr(attrs, "id").and_then(|id| self.notes.number(&id));
        number.map(|number| self.begin_note(number)).is_some()
    }

    /// The innermost block is the text of a note.
    fn begin_note(&mut self, number: i64) {
        let Some(at) = self.opened.iter().rposition(|element| is_block(element.tag)) else { return };
        match self.opened[at].end {
            End::Flush => {
                self.opened[at].end = self.open_container(ContainerKind::Note, true, number);
            }
            End::Container(_) if self.opened[at].tag == LI => {
                if let Some(item) = self.around.last() {
                    self.make_note(*item, number);
                }
            }
            _ => {}
        }
    }

    fn make_note(&mut self, item: u32, number: i64) {
        let item = &mut self.containers[item as usize];
        (item.kind, item.ordered, item.number) = (ContainerKind::Note, true, number);
    }

    /// Notes that no links lead to; and the text of notes without their numbers.
    pub fn find_loose_notes(&mut self) {
        let texts = Texts { text: self.text, pool: &self.pool };
        let mut before = NONE;
        for block in &self.blocks {
            let is_note = |at: u32| at != NONE && self.containers[at as usize].kind == ContainerKind::Note;
            if is_note(block.container) && block.container != before {
                notes::without_label(block, &self.pieces.lines, &mut self.pieces.items, &texts);
            }
            before = block.container;
        }
        if self.notes.is_empty() {
            notes::find_loose(&mut self.blocks, &mut self.containers, &mut self.pieces, &texts);
        }
    }

    // ---- code

    fn in_code(&mut self, tag: u8, attrs: Attributes) -> Option<End> {
        if tag == BUTTON || matches!(tag, SPAN | TD | DIV) && is_line_numbers(Some(self.outline.class(attrs))) {
            return None;
        }
        if tag == CODE && self.language.is_empty() {
            self.language = self.language_of(attrs);
        }
        Some(End::Nothing)
    }

    /// A range of preformatted text: each line of the page pass is one of the code, after its empty lines.
    fn code_text(&mut self, from: u32, to: u32, last: u32) {
        let text = part(self.text, (from, to));
        let mut number = last - memchr::memchr_iter(b'\n', text).count() as u32;
        let mut start = from;
        for at in memchr::memchr_iter(b'\n', text) {
            self.code_piece((start, from + at as u32), number);
            start = from + at as u32 + 1;
            number += 1;
        }
        self.code_piece((start, to), number);
    }

    fn code_piece(&mut self, range: Range, number: u32) {
        let code = &mut self.code;
        if range.0 == range.1 {
            return;
        }
        if code.lines.last().is_none_or(|line| line.0 != number) {
            let blank = if code.lines.is_empty() { 0 } else { self.lines[number as usize].blank };
            code.lines.extend((0..blank).map(|_| (NONE, 0)));
            code.lines.push((number, 0));
        }
        if let Some(line) = code.lines.last_mut() {
            line.1 += 1;
            code.pieces.push(range);
        }
    }

    fn end_preformatted(&mut self) {
        let language = std::mem::take(&mut self.language);
        self.code.is_open = false;
        if self.code.lines.is_empty() {
            return;
        }
        let lines = self.pieces.code(&self.code.lines, &self.code.pieces);
        self.code.lines.clear();
        self.code.pieces.clear();
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
        language_of_class(self.outline.class(attrs))
    }

    // ---- tables

    fn in_table(&mut self, tag: u8, attrs: Attributes) -> End {
        let span = |name| number(self.attr(attrs, name).as_deref()).unwrap_or(1).clamp(1, MAX_SPAN) as u32;
        let (span, down) = (span("colspan"), span("rowspan"));
        let Some((_, first)) = self.table else { return End::Nothing };
        let count = self.cells.len() as u32;
        match tag {
            TR => self.begin_row(count),
            TBODY => self.section = BODY_ROW,
            // Further ones are shown where they stand.
            THEAD if !self.sections.contains(&0) => self.section = 0,
            TFOOT if !self.sections.contains(&2) => self.section = 2,
            THEAD | TFOOT => self.section = BODY_ROW,
            TD | TH => {
                if self.rows.len() as u32 == first {
                    self.begin_row(count);
                }
                let is_head = tag == TH || self.section == 0;
                self.cells.push(Cell { lines: (0, 0), is_head, span, rows: down });
                if let Some(row) = self.rows.last_mut() {
                    row.1 = count + 1;
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

    fn begin_row(&mut self, cells: u32) {
        self.rows.push((cells, cells));
        self.sections.push(self.section);
    }

    /// The rows of the table in the order in which they are shown: a foot may stand before the head.
    fn sort_rows(&mut self, first: u32) {
        let own = &mut self.rows[first as usize..];
        if !self.sections.is_sorted() && own.len() == self.sections.len() {
            let mut rows: Vec<(u8, Range)> = self.sections.iter().copied().zip(own.iter().copied()).collect();
            rows.sort_by_key(|row| row.0);
            own.iter_mut().zip(rows).for_each(|(to, row)| *to = row.1);
        }
        self.sections.clear();
        self.section = BODY_ROW;
    }

    fn end_cell(&mut self) {
        if !std::mem::take(&mut self.in_cell) {
            return;
        }
        let lines = self.pieces.take();
        let row = self.rows.last().filter(|row| row.0 < row.1);
        if let (Some(_), Some(_), Some(last)) = (self.table, row, self.cells.last_mut()) {
            last.lines = lines;
        }
    }

    fn end_table(&mut self) {
        let table = self.table.take();
        self.flush();
        let Some((container, first)) = table else { return };
        self.sort_rows(first);
        let rows = (first, self.rows.len() as u32);
        let mut cells = part(&self.rows, rows).iter().flat_map(|row| part(&self.cells, *row));
        if cells.any(|cell| cell.lines.0 < cell.lines.1) {
            self.blocks.push(Block { kind: Kind::Table(rows), container, lines: (0, 0), kept: false });
        }
    }

    // ---- pictures

    fn image(&mut self, attrs: Attributes) {
        if self.code.is_open {
            return;
        }
        let small = |name| number(self.attr(attrs, name).as_deref()).is_some_and(|pixels| pixels <= 2);
        if small("width") || small("height") || self.outline.class(attrs).starts_with("mwe-math-fallback") {
            return;
        }
        let Some(source) = self.source_of_image(attrs) else { return };
        // LaTeX has a backslash, which may be written as a reference.
        let may_be_tex = |raw: &&[u8]| memchr::memchr2(b'\\', b'&', raw).is_some();
        let alt = self.outline.raw(attrs, b"alt").filter(may_be_tex).and_then(|_| self.attr(attrs, "alt"));
        let alt = alt.unwrap_or_default();
        let tex = formulas::of_picture(&alt, &source);
        if tex.is_empty() {
            return self.pieces.image(attrs);
        }
        let tex = self.pooled(&tex);
        self.pieces.formula(Item::Literal(tex));
    }

    /// References of the links and pictures in the blocks that are kept, in place of the attributes that stand for them.
    pub fn refer(&mut self) {
        for at in 0..self.blocks.len() {
            let Block { ref kind, lines, kept, .. } = self.blocks[at];
            match *kind {
                _ if !kept => {}
                Kind::Table(rows) => self.refer_table(rows),
                _ => self.refer_lines(lines),
            }
        }
    }

    fn refer_table(&mut self, rows: Range) {
        for row in rows.0..rows.1 {
            let cells = self.rows[row as usize];
            for cell in cells.0..cells.1 {
                self.refer_lines(self.cells[cell as usize].lines);
            }
        }
    }

    fn refer_lines(&mut self, lines: Range) {
        for line in lines.0..lines.1 {
            let items = self.pieces.lines[line as usize].items;
            for at in items.0..items.1 {
                self.refer_item(at as usize);
            }
        }
    }

    fn refer_item(&mut self, at: usize) {
        match self.pieces.items[at] {
            Item::Link(attrs) => {
                let href = query_in(self.attr(attrs, "href").unwrap_or_default(), self.outline.queries);
                let href = self.pooled(href.trim_matches(is_space));
                self.pieces.items[at] = Item::Link(href);
            }
            Item::Image(attrs, _) => {
                let alt = spelled_text(self.attr(attrs, "alt").unwrap_or_default());
                let source = query_in(self.source_of_image(attrs).unwrap_or_default(), self.outline.queries);
                self.pieces.items[at] = Item::Image(self.pooled(&alt), self.pooled(&source));
            }
            _ => {}
        }
    }

    fn source_of_image(&self, attrs: Attributes) -> Option<Cow<'a, str>> {
        let is_data = |raw: &str| raw.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"));
        for name in LAZY {
            let Some(raw) = self.attr(attrs, name) else { continue };
            let trimmed = raw.trim_matches(is_space);
            if !trimmed.is_empty() && !is_data(trimmed) {
                return Some(if trimmed.len() == raw.len() { raw } else { Cow::Owned(trimmed.to_owned()) });
            }
        }
        let set = self.attr(attrs, "srcset").filter(|set| !set.is_empty()).or_else(|| self.attr(attrs, "data-srcset"));
        let set = set.unwrap_or_default();
        let best = best_of_srcset(&set);
        (!best.is_empty() && !is_data(best)).then(|| Cow::Owned(best.to_owned()))
    }
}
