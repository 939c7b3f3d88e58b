//! An outline cut into blocks: two walks over its events, the first finds the tables that only lay a page out.

use std::collections::HashSet;

use super::attributes::{best_of_srcset, clean_language, is_line_numbers, language_of_class, named_language, number};
use super::blocks::{Block, Cell, Container, ContainerKind, Kind, Line, MAX_DEPTH, NONE};
use super::chars::{collapsed, is_space, push_clean};
use super::inline::Inline;
use super::links::Resolver;
use super::outline::{Attributes, Event, Outline};
use crate::tags::*;

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

fn emphasis_of(tag: u8) -> Option<&'static str> {
    match tag {
        STRONG | B => Some("**"),
        EM | I | CITE | DFN => Some("*"),
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
    Link,
    Code,
    Emphasis(&'static str),
    Flush,
    Preformatted,
    Heading,
    Caption,
    Container(usize),
    Line,
    Cell,
    Table,
}

struct Opened {
    id: u32,
    tag: u8,
    attrs: Attributes,
    end: End,
}

pub struct Reader<'o, 'a> {
    outline: &'o Outline<'a>,
    resolver: Resolver<'o>,
    layout: Ids,
    pub blocks: Vec<Block>,
    pub containers: Vec<Container>,
    /// Containers around the place, outermost first.
    around: Vec<u32>,
    opened: Vec<Opened>,
    /// An element whose content is left out.
    skipped: Option<u32>,
    inline: Inline,
    level: u8,
    caption: bool,
    code: Option<String>,
    language: String,
    /// The table of data around the place.
    table: Option<Block>,
    cell: Option<Inline>,
}

impl<'o, 'a> Reader<'o, 'a> {
    pub fn new(outline: &'o Outline<'a>, resolver: Resolver<'o>) -> Self {
        Reader {
            outline,
            resolver,
            layout: layout_tables(outline),
            blocks: Vec::new(),
            containers: Vec::new(),
            around: Vec::new(),
            opened: Vec::new(),
            skipped: None,
            inline: Inline::default(),
            level: 0,
            caption: false,
            code: None,
            language: String::new(),
            table: None,
            cell: None,
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
                Event::Text(from, to) => self.text(&outline.text[from as usize..to as usize]),
                Event::Void { tag: IMG, attrs } => self.image(attrs),
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

    fn inline(&mut self) -> &mut Inline {
        self.cell.as_mut().unwrap_or(&mut self.inline)
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.push_str(text),
            None => self.inline().text(text),
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
                Some(href) => {
                    let url = self.resolver.resolve(&href);
                    if self.inline().link(url, href.starts_with('#')) {
                        End::Link
                    } else {
                        End::Nothing
                    }
                }
                None => End::Nothing,
            },
            CODE | KBD | SAMP | TT if self.inline().code() => End::Code,
            _ => match emphasis_of(tag) {
                Some(marker) if self.level == 0 && self.inline().emphasis(marker) => End::Emphasis(marker),
                _ => End::Nothing,
            },
        })
    }

    fn end(&mut self, end: End) {
        match end {
            End::Nothing => {}
            End::Link => self.inline().end_link(),
            End::Code => self.inline().end_code(),
            End::Emphasis(marker) => self.inline().end_emphasis(marker),
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
            End::Line => self.inline().cut(),
            End::Cell => self.end_cell(),
            End::Table => self.end_table(),
        }
    }

    // ---- blocks

    fn block(&mut self, tag: u8, id: u32, attrs: Attributes) -> Option<End> {
        if let Some(cell) = &mut self.cell {
            cell.cut();
            return Some(End::Line);
        }
        if self.table.is_some() && matches!(tag, TR | TD | TH | TBODY | THEAD | TFOOT | CAPTION) {
            return Some(self.in_table(tag, attrs));
        }
        self.flush();
        Some(match tag {
            _ if is_pre(tag) => {
                self.language = self.language_around(attrs);
                self.code = Some(String::new());
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
            TD if is_line_numbers(self.attr(attrs, "class").as_deref()) => return None,
            _ => End::Flush,
        })
    }

    fn innermost(&self) -> u32 {
        self.around.last().copied().unwrap_or(NONE)
    }

    /// The block ends; it counts only if it has content.
    fn flush(&mut self) {
        let lines = self.inline.take();
        if !lines.is_empty() {
            let kind = if self.level > 0 { Kind::Heading(self.level) } else { Kind::Text { caption: self.caption } };
            self.blocks.push(Block { kind, container: self.innermost(), lines, kept: false });
        }
    }

    fn open_container(&mut self, kind: ContainerKind, ordered: bool, number: i64) -> End {
        let made = self.new_container(kind, ordered, number);
        self.reenter(made)
    }

    fn new_container(&mut self, kind: ContainerKind, ordered: bool, number: i64) -> u32 {
        let parent = self.innermost();
        self.containers.push(Container { kind, parent, ordered, number, begun: false, last: NONE });
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
        let made = self.new_container(ContainerKind::Item, ordered, number);
        if let Some(list) = self.list() {
            list.last = made;
        }
        self.reenter(made)
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
        if self.code.is_some() {
            self.code_line();
        } else if tag == BR || self.cell.is_some() {
            self.inline().cut();
        } else {
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
        if is_block(tag) {
            self.code_line();
        }
        Some(End::Nothing)
    }

    fn code_line(&mut self) {
        if let Some(code) = &mut self.code {
            if !code.is_empty() && !code.ends_with('\n') {
                code.push('\n');
            }
        }
    }

    fn end_preformatted(&mut self) {
        let code = self.code.take().unwrap_or_default().replace("\r\n", "\n").replace('\r', "\n");
        let blank = |line: &&str| line.trim_matches(is_space).is_empty();
        let mut lines: Vec<&str> = code.split('\n').skip_while(blank).collect();
        while lines.last().is_some_and(blank) {
            lines.pop();
        }
        if lines.is_empty() {
            return;
        }
        let written = |line: &str| {
            let mut written = String::new();
            push_clean(line.trim_end_matches(is_space), &mut written);
            written
        };
        let lines = lines.iter().map(|line| Line { plain: collapsed(line), written: written(line) }).collect();
        let kind = Kind::Code { language: std::mem::take(&mut self.language) };
        self.blocks.push(Block { kind, container: self.innermost(), lines, kept: false });
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
        let span = number(self.attr(attrs, "colspan").as_deref()).unwrap_or(1).min(MAX_SPAN) as usize;
        let Some(Block { kind: Kind::Table(rows), .. }) = &mut self.table else { return End::Nothing };
        match tag {
            TR => rows.push(Vec::new()),
            TD | TH => {
                if rows.is_empty() {
                    rows.push(Vec::new());
                }
                if let Some(row) = rows.last_mut() {
                    row.push(Cell { lines: Vec::new(), is_head: tag == TH, span });
                }
                self.cell = Some(Inline::default());
                return End::Cell;
            }
            CAPTION => return End::Flush,
            _ => {}
        }
        End::Nothing
    }

    fn end_cell(&mut self) {
        let Some(mut cell) = self.cell.take() else { return };
        if let Some(Block { kind: Kind::Table(rows), .. }) = &mut self.table {
            if let Some(last) = rows.last_mut().and_then(|row| row.last_mut()) {
                last.lines = cell.take();
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
        let url = self.image_url(attrs);
        if !url.is_empty() {
            let alt = self.attr(attrs, "alt").unwrap_or_default();
            self.inline().image(&alt, &url);
        }
    }

    fn image_url(&mut self, attrs: Attributes) -> String {
        for name in LAZY {
            let raw = self.attr(attrs, name).unwrap_or_default();
            let raw = raw.trim_matches(is_space);
            let is_data = raw.as_bytes().get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"data:"));
            if !raw.is_empty() && !is_data {
                let url = self.resolver.resolve(raw);
                if !url.is_empty() {
                    return url;
                }
            }
        }
        let set = self.attr(attrs, "srcset").filter(|set| !set.is_empty()).or_else(|| self.attr(attrs, "data-srcset"));
        match best_of_srcset(&set.unwrap_or_default()) {
            "" => String::new(),
            best => self.resolver.resolve(best),
        }
    }
}
