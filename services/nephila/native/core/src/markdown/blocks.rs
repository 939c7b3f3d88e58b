//! The blocks of a page in document order, each with the lists and quotes around it.

/// Lists, items and quotes around a block; what is deeper is written at this depth.
pub const MAX_DEPTH: usize = 16;
/// No container.
pub const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ContainerKind {
    Quote,
    List,
    Item,
}

pub struct Container {
    pub kind: ContainerKind,
    pub parent: u32,
    /// Of a list and of its items.
    pub ordered: bool,
    /// Of an item; of a list that of the item before.
    pub number: i64,
    /// Of an item: its marker is written.
    pub begun: bool,
    /// Of a list: the item before, to which a <dd> belongs.
    pub last: u32,
}

impl Container {
    pub fn marker(&self) -> String {
        if self.ordered {
            format!("{}. ", self.number)
        } else {
            "- ".into()
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

/// A line of a block.
#[derive(Default)]
pub struct Line {
    /// As the page pass has it: white space collapsed, permalink signs and all.
    pub plain: String,
    /// As Markdown; of code as it is.
    pub written: String,
}

pub struct Cell {
    pub lines: Vec<Line>,
    pub is_head: bool,
    pub span: usize,
}

pub enum Kind {
    Text {
        /// It is said of a picture.
        caption: bool,
    },
    Heading(u8),
    Code {
        language: String,
    },
    Table(Vec<Vec<Cell>>),
}

pub struct Block {
    pub kind: Kind,
    /// The innermost container.
    pub container: u32,
    /// Empty of a table.
    pub lines: Vec<Line>,
    pub kept: bool,
}
