//! The line that is being read: its text and marks, properly nested, cut into lines.

use super::blocks::{Item, Line, Mark, Range, NONE};

#[derive(Clone, Copy)]
struct Opened {
    mark: Mark,
    /// Of a link.
    href: Range,
}

/// Collects items, and ranges of them as lines. O(items), since at most a handful of marks are open at a time.
#[derive(Default)]
pub struct Pieces {
    pub items: Vec<Item>,
    lines: Vec<Line>,
    /// Where the open line begins in `items`.
    from: usize,
    number: Option<u32>,
    size: u32,
    pictures: bool,
    open: Vec<Opened>,
}

impl Pieces {
    /// A run of text in a line of the page pass.
    pub fn text(&mut self, item: Item, size: usize, number: u32) {
        if size > 0 {
            self.items.push(item);
            self.size += size as u32;
            self.number.get_or_insert(number);
        }
    }

    pub fn image(&mut self, alt: Range, src: Range) {
        if !self.has(Mark::Code) {
            self.items.push(Item::Image(alt, src));
            self.pictures = true;
        }
    }

    /// White space beside a picture.
    pub fn space(&mut self, item: Item) {
        self.items.push(item);
    }

    pub fn has_text(&self) -> bool {
        self.size > 0
    }

    pub fn is_empty(&self) -> bool {
        self.size == 0 && !self.pictures
    }

    fn has(&self, mark: Mark) -> bool {
        self.open.iter().any(|one| one.mark == mark)
    }

    /// A mark opens; false where it is within such, or within code.
    pub fn open(&mut self, mark: Mark) -> bool {
        if self.has(mark) || self.has(Mark::Code) {
            return false;
        }
        self.begin(Opened { mark, href: (0, 0) });
        true
    }

    /// A link opens; false where it is within such. Code around it ends before it and continues in it.
    pub fn link(&mut self, href: Range) -> bool {
        if self.has(Mark::Link) {
            return false;
        }
        let code = self.open.last().filter(|one| one.mark == Mark::Code).copied();
        if code.is_some() {
            self.end_innermost();
        }
        self.begin(Opened { mark: Mark::Link, href });
        if let Some(code) = code {
            self.begin(code);
        }
        true
    }

    /// A reference to a note opens; the raised number that it is in is none.
    pub fn note(&mut self) -> bool {
        if matches!(self.items.last(), Some(Item::Open(Mark::Sup))) {
            self.items.pop();
            self.open.pop();
        }
        self.open(Mark::Note)
    }

    /// The innermost such mark ends; those within it end before it and continue behind it.
    pub fn close(&mut self, mark: Mark) {
        let Some(place) = self.open.iter().rposition(|one| one.mark == mark) else { return };
        let within: Vec<Opened> = self.open[place + 1..].to_vec();
        while self.open.len() > place {
            self.end_innermost();
        }
        within.into_iter().for_each(|one| self.begin(one));
    }

    fn begin(&mut self, one: Opened) {
        self.items.push(match one.mark {
            Mark::Link => Item::Link(one.href),
            mark => Item::Open(mark),
        });
        self.open.push(one);
    }

    fn end_innermost(&mut self) {
        let Some(one) = self.open.pop() else { return };
        // Nothing is in it.
        match self.items.last() {
            Some(Item::Open(mark)) if *mark == one.mark => drop(self.items.pop()),
            Some(Item::Link(_)) if one.mark == Mark::Link => drop(self.items.pop()),
            _ => self.items.push(Item::Close(one.mark)),
        }
    }

    /// The line ends; marks that are open continue in the next.
    pub fn cut(&mut self) {
        if self.items.len() == self.from {
            return;
        }
        let open = std::mem::take(&mut self.open);
        if self.is_empty() {
            self.items.truncate(self.from);
        } else {
            self.open.clone_from(&open);
            while !self.open.is_empty() {
                self.end_innermost();
            }
            let items = (self.from as u32, self.items.len() as u32);
            self.lines.push(Line { items, number: self.number.unwrap_or(NONE), size: self.size });
        }
        self.from = self.items.len();
        (self.number, self.size, self.pictures) = (None, 0, false);
        open.into_iter().for_each(|one| self.begin(one));
    }

    /// The lines so far, the last one cut.
    pub fn take(&mut self) -> Vec<Line> {
        self.cut();
        std::mem::take(&mut self.lines)
    }

    /// A line of one item, outside of the open line, which is empty.
    pub fn line_of(&mut self, items: &[Item], size: usize, number: u32) -> Line {
        let opened = self.items.split_off(self.from);
        let from = self.items.len() as u32;
        self.items.extend_from_slice(items);
        let line = Line { items: (from, self.items.len() as u32), number, size: size as u32 };
        self.from = self.items.len();
        self.items.extend(opened);
        line
    }
}
