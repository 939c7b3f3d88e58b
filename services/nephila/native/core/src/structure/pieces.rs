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
    pub lines: Vec<Line>,
    /// Where the lines begin that nobody has taken.
    taken: usize,
    /// Where the open line begins in `items`.
    from: usize,
    number: Option<u32>,
    size: u32,
    pictures: bool,
    open: Vec<Opened>,
}

impl Pieces {
    /// `items` and `lines` are empty.
    pub fn new(items: Vec<Item>, lines: Vec<Line>) -> Self {
        Pieces { items, lines, ..Pieces::default() }
    }

    /// A run of text in a line of the page pass.
    #[inline]
    pub fn text(&mut self, item: Item, size: usize, number: u32) {
        if size > 0 {
            self.items.push(item);
            self.size += size as u32;
            self.number.get_or_insert(number);
        }
    }

    pub fn image(&mut self, attrs: Range) {
        if !self.has(Mark::Code) {
            self.items.push(Item::Image(attrs, attrs));
            self.pictures = true;
        }
    }

    /// A formula that is a picture.
    pub fn formula(&mut self, tex: Item) {
        if self.open(Mark::Math) {
            self.items.push(tex);
            self.close(Mark::Math);
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

    /// Whether the place is right behind the start of a raised text.
    pub fn is_raised(&self) -> bool {
        matches!(self.items.last(), Some(Item::Open(Mark::Sup)))
    }

    /// A reference to a note, in place of the raised number that it is in.
    pub fn note(&mut self, number: Item) {
        if self.is_raised() {
            self.items.pop();
            self.open.pop();
        }
        if self.open(Mark::Note) {
            self.items.push(number);
            self.close(Mark::Note);
            self.pictures = true;
        }
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
        self.items.push(beginning(one));
        self.open.push(one);
    }

    fn end_innermost(&mut self) {
        if let Some(one) = self.open.pop() {
            end(&mut self.items, one.mark);
        }
    }

    /// The line ends; marks that are open continue in the next.
    #[inline]
    pub fn cut(&mut self) {
        if self.items.len() > self.from {
            self.cut_line();
        }
    }

    fn cut_line(&mut self) {
        if self.is_empty() {
            self.items.truncate(self.from);
        } else {
            for one in self.open.iter().rev() {
                end(&mut self.items, one.mark);
            }
            let items = (self.from as u32, self.items.len() as u32);
            self.lines.push(Line { items, number: self.number.unwrap_or(NONE), size: self.size });
        }
        self.from = self.items.len();
        (self.number, self.size, self.pictures) = (None, 0, false);
        self.items.extend(self.open.iter().map(|one| beginning(*one)));
    }

    /// The lines since the last call, the last one cut.
    #[inline]
    pub fn take(&mut self) -> Range {
        self.cut();
        self.take_cut()
    }

    /// Lines beside the open line, which is empty: their numbers, and how many of the pieces of text each has.
    pub fn code(&mut self, lines: &[(u32, u32)], mut pieces: &[Range]) -> Range {
        let opened = self.items.split_off(self.from);
        for (number, count) in lines {
            let (own, rest) = pieces.split_at(*count as usize);
            let from = self.items.len() as u32;
            self.items.extend(own.iter().map(|range| Item::Text(*range)));
            let size = own.iter().map(|range| range.1 - range.0).sum();
            self.lines.push(Line { items: (from, self.items.len() as u32), number: *number, size });
            pieces = rest;
        }
        self.from = self.items.len();
        self.items.extend(opened);
        self.take_cut()
    }

    /// The lines since the last call; the open line stays open.
    fn take_cut(&mut self) -> Range {
        let from = self.taken;
        self.taken = self.lines.len();
        (from as u32, self.taken as u32)
    }
}

fn beginning(one: Opened) -> Item {
    match one.mark {
        Mark::Link => Item::Link(one.href),
        mark => Item::Open(mark),
    }
}

/// A mark ends; it is taken back where nothing is in it.
fn end(items: &mut Vec<Item>, mark: Mark) {
    match items.last() {
        Some(Item::Open(last)) if *last == mark => drop(items.pop()),
        Some(Item::Link(_)) if mark == Mark::Link => drop(items.pop()),
        _ => items.push(Item::Close(mark)),
    }
}
