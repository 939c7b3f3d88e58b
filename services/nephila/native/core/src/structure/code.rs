//! The bytes of a structure, stored beside the text of its row. Layout: ../../../README.md.
//!
//! Text that stands in the row's text is not repeated: a cursor runs through it. Before each line the cursor steps over
//! what separates lines and cells. Invariant: decoding never panics; whatever does not fit, the length of the text too,
//! is no structure.

use std::cell::RefCell;

use memchr::memmem;

use super::blocks::*;
use super::room::{emptied, KEPT};

/// The first byte.
pub const VERSION: u8 = 1;
/// Bytes of the text in which a piece is searched behind the cursor.
const WINDOW: usize = 1 << 16;
/// A shorter piece is not searched.
const SEARCHED: usize = 12;
/// Most parts of one kind: more are in no page that has `MAX_BYTES`.
const MOST: u64 = 1 << 24;

/// Of zstd: below 1 it leaves out the Huffman codes, which take most of the time for a sixth less.
const LEVEL: i32 = -1;
/// Bytes of a structure.
const MAX_SIZE: u64 = 256 << 20;

/// What a thread needs to make the bytes, kept for the next page.
struct Packer {
    context: zstd_safe::CCtx<'static>,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

thread_local! {
    static PACKER: RefCell<Packer> =
        RefCell::new(Packer { context: zstd_safe::CCtx::create(), plain: Vec::new(), packed: Vec::new() });
}

// What a number in a line begins: its low three bits.
const END: u64 = 0;
const COPY: u64 = 1;
const SKIP: u64 = 2;
const LITERAL: u64 = 3;
const OPEN: u64 = 4;
const CLOSE: u64 = 5;
const LINK: u64 = 6;
const IMAGE: u64 = 7;

fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn is_numbered(kind: ContainerKind) -> bool {
    matches!(kind, ContainerKind::Item | ContainerKind::Note)
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Where a line begins that follows `at`.
fn line_start(text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        at += match rest {
            [b'\n', ..] => 1,
            [b' ', b'|', b' ', ..] => 3,
            _ => return at,
        };
    }
}

struct Encoder<'s, 't> {
    from: &'s Structure<'s>,
    /// The text beside which the structure is stored.
    text: &'t [u8],
    cursor: usize,
    out: Vec<u8>,
}

/// The kept blocks. `base`: what links are relative to, "" for the URL of the row. O(bytes).
pub fn encode(from: &Structure<'_>, base: &str, text: &[u8]) -> Vec<u8> {
    PACKER.with_borrow_mut(|packer| {
        let mut encoder = Encoder { from, text, cursor: 0, out: emptied(std::mem::take(&mut packer.plain)) };
        encoder.run(base);
        packer.plain = encoder.out;
        packer.pack()
    })
}

impl Packer {
    /// The version, then zstd of the plain bytes.
    fn pack(&mut self) -> Vec<u8> {
        let bound = zstd_safe::compress_bound(self.plain.len());
        if self.packed.len() < bound {
            self.packed.resize(bound, 0);
        }
        // Within the bound it cannot fail; without bytes it is no structure.
        let size = self.context.compress(&mut self.packed[..], &self.plain, LEVEL).unwrap_or(0);
        let mut found = Vec::with_capacity(1 + size);
        found.push(VERSION);
        found.extend_from_slice(&self.packed[..size]);
        if bound > KEPT {
            self.packed = Vec::new();
        }
        found
    }
}

fn unpacked(data: &[u8]) -> Option<Vec<u8>> {
    let (version, rest) = data.split_first()?;
    let size = zstd_safe::get_frame_content_size(rest).ok()?.filter(|size| *size <= MAX_SIZE)?;
    let mut found = vec![0; size as usize];
    let written = zstd_safe::decompress(&mut found[..], rest).ok()?;
    (*version == VERSION && written == found.len()).then_some(found)
}

impl Encoder<'_, '_> {
    fn run(&mut self, base: &str) {
        let from = self.from;
        put(self.text.len() as u64, &mut self.out);
        put_text(base, &mut self.out);
        let kept: Vec<&Block> = from.blocks.iter().filter(|block| block.kept).collect();
        let numbers = self.containers(&kept);
        put(kept.len() as u64, &mut self.out);
        for block in kept {
            self.block(block, &numbers);
        }
    }

    /// Write the containers that have a block; their new numbers.
    fn containers(&mut self, kept: &[&Block]) -> Vec<u32> {
        let all = &self.from.containers;
        let mut numbers = vec![NONE; all.len()];
        for block in kept {
            let mut at = block.container;
            while at != NONE && numbers[at as usize] == NONE {
                numbers[at as usize] = 0;
                at = all[at as usize].parent;
            }
        }
        let mut count = 0;
        for number in numbers.iter_mut().filter(|number| **number != NONE) {
            *number = count;
            count += 1;
        }
        put(u64::from(count), &mut self.out);
        for (one, number) in all.iter().zip(&numbers).filter(|(_, number)| **number != NONE) {
            let kind = one.kind as u64 | u64::from(one.ordered) << 2 | (one.task as u64) << 3;
            let up = if one.parent == NONE { 0 } else { number - numbers[one.parent as usize] };
            put(kind | u64::from(up) << 5, &mut self.out);
            if one.ordered && is_numbered(one.kind) {
                put(zigzag(one.number), &mut self.out);
            }
        }
        numbers
    }

    fn block(&mut self, block: &Block, numbers: &[u32]) {
        let kind = match &block.kind {
            Kind::Text { caption } => u64::from(*caption),
            Kind::Heading(level) => 2 + u64::from(*level),
            Kind::Code { .. } => 9,
            Kind::Table(_) => 10,
            Kind::Math => 11,
            Kind::Rule => 12,
        };
        let container = if block.container == NONE { 0 } else { u64::from(numbers[block.container as usize]) + 1 };
        put(kind | container << 4, &mut self.out);
        match &block.kind {
            Kind::Table(rows) => self.table(*rows),
            Kind::Code { language } => {
                put_text(language, &mut self.out);
                self.lines(block.lines);
            }
            _ => self.lines(block.lines),
        }
    }

    fn table(&mut self, rows: Range) {
        let from = self.from;
        put(u64::from(rows.1 - rows.0), &mut self.out);
        for row in from.cells_of(rows) {
            put(row.len() as u64, &mut self.out);
            for cell in row {
                let spans = cell.span > 1 || cell.rows > 1;
                let lines = part(&from.lines, cell.lines);
                put(u64::from(cell.is_head) | u64::from(spans) << 1 | (lines.len() as u64) << 2, &mut self.out);
                if spans {
                    put(u64::from(cell.span), &mut self.out);
                    put(u64::from(cell.rows), &mut self.out);
                }
                lines.iter().for_each(|line| self.line(line));
            }
        }
    }

    fn lines(&mut self, lines: Range) {
        let from = self.from;
        put(u64::from(lines.1 - lines.0), &mut self.out);
        part(&from.lines, lines).iter().for_each(|line| self.line(line));
    }

    fn line(&mut self, line: &Line) {
        let from = self.from;
        let items = from.items_of(line);
        let mut begun = false;
        for (at, item) in items.iter().enumerate() {
            let text = match *item {
                Item::Text(range) => &from.text[range.0 as usize..range.1 as usize],
                Item::Literal(range) => from.pool_of(range).as_bytes(),
                other => {
                    self.mark(other);
                    continue;
                }
            };
            if !begun {
                self.cursor = line_start(self.text, self.cursor);
                begun = true;
            }
            if let Some(found) = self.find(text) {
                if found != self.cursor {
                    put(SKIP | zigzag(found as i64 - self.cursor as i64) << 3, &mut self.out);
                }
                self.cursor = found + text.len();
                if at + 1 == items.len() {
                    return put(END | (text.len() as u64) << 3, &mut self.out);
                }
                put(COPY | (text.len() as u64) << 3, &mut self.out);
            } else {
                put(LITERAL | (text.len() as u64) << 3, &mut self.out);
                self.out.extend_from_slice(text);
            }
        }
        put(END, &mut self.out);
    }

    fn mark(&mut self, item: Item) {
        match item {
            Item::Open(mark) => put(OPEN | (mark as u64) << 3, &mut self.out),
            Item::Close(mark) => put(CLOSE | (mark as u64) << 3, &mut self.out),
            Item::Link(range) => self.reference(LINK, range),
            Item::Image(alt, source) => {
                self.reference(IMAGE, alt);
                put_text(self.from.pool_of(source), &mut self.out);
            }
            Item::Text(_) | Item::Literal(_) => {}
        }
    }

    fn reference(&mut self, kind: u64, range: Range) {
        put(kind | u64::from(range.1 - range.0) << 3, &mut self.out);
        self.out.extend_from_slice(self.from.pool_of(range).as_bytes());
    }

    /// Where the text has a piece: at the cursor, or not far behind it.
    fn find(&self, piece: &[u8]) -> Option<usize> {
        let rest = self.text.get(self.cursor..)?;
        if rest.starts_with(piece) {
            return Some(self.cursor);
        }
        if piece.len() < SEARCHED {
            // Cells and lines that are left out stand between two pieces.
            let next = line_start(self.text, self.cursor + 1);
            return self.text.get(next..)?.starts_with(piece).then_some(next);
        }
        let window = &rest[..rest.len().min(WINDOW)];
        memmem::find(window, piece).map(|at| self.cursor + at)
    }
}

/// Reads numbers and texts; None: the bytes end, or a number is too large.
struct Input<'i>(&'i [u8]);

impl<'i> Input<'i> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(first & 0x7F) << shift;
            if first & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A count of parts, each of which has a byte or more.
    fn count(&mut self) -> Option<usize> {
        self.number().filter(|count| *count <= MOST && *count <= self.0.len() as u64).map(|count| count as usize)
    }

    fn bytes(&mut self, length: u64) -> Option<&'i str> {
        let length = usize::try_from(length).ok().filter(|length| *length <= self.0.len())?;
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        std::str::from_utf8(taken).ok()
    }

    fn text(&mut self) -> Option<&'i str> {
        let length = self.number()?;
        self.bytes(length)
    }
}

struct Decoder<'i, 't> {
    input: Input<'i>,
    into: Structure<'t>,
    cursor: usize,
}

/// The structure that stands beside this text, and its base. None for bytes that are none of it. O(bytes).
pub fn decode<'t>(data: &[u8], text: &'t str) -> Option<(Structure<'t>, String)> {
    let data = unpacked(data)?;
    let mut input = Input(&data);
    if input.number()? != text.len() as u64 {
        return None;
    }
    let base = input.text()?.to_owned();
    let into = Structure { text: text.as_bytes(), ..Structure::default() };
    let mut decoder = Decoder { input, into, cursor: 0 };
    decoder.containers()?;
    let count = decoder.input.count()?;
    for _ in 0..count {
        decoder.block()?;
    }
    decoder.input.0.is_empty().then_some((decoder.into, base))
}

impl Decoder<'_, '_> {
    fn containers(&mut self) -> Option<()> {
        for at in 0..self.input.count()? as u64 {
            let head = self.input.number()?;
            let kind = match head & 3 {
                0 => ContainerKind::Quote,
                1 => ContainerKind::List,
                2 => ContainerKind::Item,
                _ => ContainerKind::Note,
            };
            let task = *[Task::No, Task::Open, Task::Done].get(head as usize >> 3 & 3)?;
            let (ordered, up) = (head & 4 != 0, head >> 5);
            let parent = if up == 0 { NONE } else { at.checked_sub(up)? as u32 };
            let number = if ordered && is_numbered(kind) {
                let value = self.input.number()?;
                (value >> 1) as i64 ^ -((value & 1) as i64)
            } else {
                0
            };
            self.into.containers.push(Container { kind, parent, ordered, number, task, last: NONE });
        }
        Some(())
    }

    fn block(&mut self) -> Option<()> {
        let head = self.input.number()?;
        let kind = match head & 15 {
            0 => Kind::Text { caption: false },
            1 => Kind::Text { caption: true },
            level @ 3..=8 => Kind::Heading(level as u8 - 2),
            9 => Kind::Code { language: self.input.text()?.to_owned() },
            10 => Kind::Table(self.table()?),
            11 => Kind::Math,
            12 => Kind::Rule,
            _ => return None,
        };
        let container = match head >> 4 {
            0 => NONE,
            number if number as usize <= self.into.containers.len() => number as u32 - 1,
            _ => return None,
        };
        let lines = if matches!(kind, Kind::Table(_)) { (0, 0) } else { self.lines()? };
        self.into.blocks.push(Block { kind, container, lines, kept: true });
        Some(())
    }

    fn table(&mut self) -> Option<Range> {
        let from = self.into.rows.len() as u32;
        for _ in 0..self.input.count()? {
            let cells = self.into.cells.len() as u32;
            for _ in 0..self.input.count()? {
                let cell = self.cell()?;
                self.into.cells.push(cell);
            }
            self.into.rows.push((cells, self.into.cells.len() as u32));
        }
        Some((from, self.into.rows.len() as u32))
    }

    fn cell(&mut self) -> Option<Cell> {
        let head = self.input.number()?;
        let (span, rows) = if head & 2 != 0 { (self.input.number()?, self.input.number()?) } else { (1, 1) };
        let small = |span: u64| u32::try_from(span).ok().filter(|span| (1..=64).contains(span));
        let (span, rows) = (small(span)?, small(rows)?);
        let count = (head >> 2) as usize;
        if count > self.input.0.len() {
            return None;
        }
        let lines = self.lines_of(count)?;
        Some(Cell { lines, is_head: head & 1 != 0, span, rows })
    }

    fn lines(&mut self) -> Option<Range> {
        let count = self.input.count()?;
        self.lines_of(count)
    }

    fn lines_of(&mut self, count: usize) -> Option<Range> {
        let from = self.into.lines.len() as u32;
        for _ in 0..count {
            let line = self.line()?;
            self.into.lines.push(line);
        }
        Some((from, self.into.lines.len() as u32))
    }

    fn line(&mut self) -> Option<Line> {
        let (from, mut size, mut begun) = (self.into.items.len() as u32, 0, false);
        let mut open: Vec<Mark> = Vec::new();
        loop {
            let head = self.input.number()?;
            let value = head >> 3;
            if !begun && matches!(head & 7, COPY | SKIP | LITERAL) || head & 7 == END && value > 0 && !begun {
                self.cursor = line_start(self.into.text, self.cursor);
                begun = true;
            }
            match head & 7 {
                END | COPY => {
                    if value > 0 {
                        let range = self.copied(value)?;
                        self.into.items.push(Item::Text(range));
                        size += range.1 - range.0;
                    }
                    if head & 7 == END {
                        break;
                    }
                }
                SKIP => {
                    let by = (value >> 1) as i64 ^ -((value & 1) as i64);
                    self.cursor = usize::try_from((self.cursor as i64).checked_add(by)?).ok()?;
                }
                LITERAL => {
                    let range = self.pooled(value)?;
                    self.into.items.push(Item::Literal(range));
                    size += range.1 - range.0;
                }
                OPEN => {
                    let mark = *MARKS.get(value as usize).filter(|mark| **mark != Mark::Link)?;
                    open.push(mark);
                    self.into.items.push(Item::Open(mark));
                }
                CLOSE => {
                    let mark = *MARKS.get(value as usize)?;
                    open.pop().filter(|opened| *opened == mark)?;
                    self.into.items.push(Item::Close(mark));
                }
                LINK => {
                    let range = self.pooled(value)?;
                    open.push(Mark::Link);
                    self.into.items.push(Item::Link(range));
                }
                IMAGE => {
                    let alt = self.pooled(value)?;
                    let length = self.input.number()?;
                    let source = self.pooled(length)?;
                    self.into.items.push(Item::Image(alt, source));
                }
                _ => return None,
            }
        }
        open.is_empty().then_some(Line { items: (from, self.into.items.len() as u32), number: NONE, size })
    }

    fn copied(&mut self, length: u64) -> Option<Range> {
        let end = self.cursor.checked_add(usize::try_from(length).ok()?)?;
        std::str::from_utf8(self.into.text.get(self.cursor..end)?).ok()?;
        let range = (self.cursor as u32, end as u32);
        self.cursor = end;
        Some(range)
    }

    fn pooled(&mut self, length: u64) -> Option<Range> {
        let text = self.input.bytes(length)?;
        let from = self.into.pool.len() as u32;
        self.into.pool.push_str(text);
        Some((from, self.into.pool.len() as u32))
    }
}
