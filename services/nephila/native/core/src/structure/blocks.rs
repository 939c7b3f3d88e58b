//! The structure of a page: its blocks in document order, each with the lists and quotes around it.
//!
//! Invariant: a container's number is larger than its parent's. Text is a range of the text beside the structure; what
//! that text does not have is in `pool`. Lines, cells and rows stand one behind the other in a vector for each kind, and
//! what has them is a range: a page has some allocations, not some for each block.

/// Lists, items and quotes around a block; what is deeper is written at this depth.
pub const MAX_DEPTH: usize = 16;
/// No container, no line.
pub const NONE: u32 = u32::MAX;

/// A range of the text or of the pool in bytes, or of another vector.
pub type Range = (u32, u32);

/// The part of a vector.
pub fn part<T>(all: &[T], range: Range) -> &[T] {
    &all[range.0 as usize..range.1 as usize]
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContainerKind {
    Quote,
    List,
    Item,
    /// A note at the end of the page, with its number.
    Note,
}

/// What a task of a list is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    No,
    Open,
    Done,
}

#[derive(Clone, Debug)]
pub struct Container {
    pub kind: ContainerKind,
    pub parent: u32,
    /// Of a list and of its items.
    pub ordered: bool,
    /// Of an item or note; of a list that of the item before.
    pub number: i64,
    /// Of an item.
    pub task: Task,
    /// Of a list, while it is read: the item before, to which a <dd> belongs.
    pub last: u32,
}

impl Container {
    /// `other`: of a list behind another of its kind.
    pub fn marker(&self, other: bool) -> String {
        let sign = if other { '*' } else { '-' };
        match self.task {
            _ if self.kind == ContainerKind::Note => format!("[^{}]: ", self.number),
            _ if self.ordered => format!("{}{} ", self.number, if other { ')' } else { '.' }),
            Task::No => format!("{sign} "),
            Task::Open => format!("{sign} [ ] "),
            Task::Done => format!("{sign} [x] "),
        }
    }
}

/// The containers around one, outermost first. O(MAX_DEPTH).
pub fn path(containers: &[Container], innermost: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut at = innermost;
    while at != NONE {
        found.push(at);
        at = containers[at as usize].parent;
    }
    found.reverse();
    found
}

/// What text within a line can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    Strong,
    Emphasis,
    Code,
    Link,
    Sup,
    Sub,
    /// TeX.
    Math,
    /// Text of a reference to a note.
    Note,
    Strike,
}

pub const MARKS: [Mark; 9] =
    [Mark::Strong, Mark::Emphasis, Mark::Code, Mark::Link, Mark::Sup, Mark::Sub, Mark::Math, Mark::Note, Mark::Strike];

/// A piece of a line. Marks are nested, and closed in the line in which they are opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    /// A range of the text.
    Text(Range),
    /// A range of the pool.
    Literal(Range),
    Open(Mark),
    Close(Mark),
    /// A link opens: its reference as the page has it.
    Link(Range),
    /// A picture: what is said of it, its reference.
    Image(Range, Range),
}

/// A line of a block: a range of the items.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub items: Range,
    /// Of the line of the page pass; `NONE` of a picture, and of a structure that was stored.
    pub number: u32,
    /// Bytes of its text.
    pub size: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// A range of the lines.
    pub lines: Range,
    pub is_head: bool,
    /// Columns and rows.
    pub span: u32,
    pub rows: u32,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Text {
        /// It is said of a picture.
        caption: bool,
    },
    Heading(u8),
    Code {
        language: String,
    },
    /// TeX, in a line of its own.
    Math,
    /// A range of the rows.
    Table(Range),
    /// A line between two parts, without text.
    Rule,
}

#[derive(Clone, Debug)]
pub struct Block {
    pub kind: Kind,
    /// The innermost container.
    pub container: u32,
    /// A range of the lines; empty of a table.
    pub lines: Range,
    pub kept: bool,
}

/// The blocks of a page beside its text.
#[derive(Default, Debug)]
pub struct Structure<'t> {
    pub text: &'t [u8],
    pub pool: String,
    pub items: Vec<Item>,
    pub lines: Vec<Line>,
    pub cells: Vec<Cell>,
    /// Ranges of the cells.
    pub rows: Vec<Range>,
    pub containers: Vec<Container>,
    pub blocks: Vec<Block>,
}

impl Structure<'_> {
    /// A range of the text. It begins and ends at characters.
    pub fn text_of(&self, range: Range) -> &str {
        std::str::from_utf8(part(self.text, range)).unwrap_or_default()
    }

    pub fn pool_of(&self, range: Range) -> &str {
        &self.pool[range.0 as usize..range.1 as usize]
    }

    pub fn items_of(&self, line: &Line) -> &[Item] {
        part(&self.items, line.items)
    }

    /// The cells of each of these rows.
    pub fn cells_of(&self, rows: Range) -> impl Iterator<Item = &[Cell]> {
        part(&self.rows, rows).iter().map(|row| part(&self.cells, *row))
    }

    /// The text of a line without marks.
    pub fn plain(&self, line: &Line) -> String {
        let mut out = String::with_capacity(line.size as usize);
        for item in self.items_of(line) {
            match *item {
                Item::Text(range) => out.push_str(self.text_of(range)),
                Item::Literal(range) => out.push_str(self.pool_of(range)),
                _ => {}
            }
        }
        out
    }
}
