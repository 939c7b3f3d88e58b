//! Blocks as Markdown text, each with the markers and indentation of the lists and quotes around it.

use super::blocks::{path, Block, Cell, Container, ContainerKind, Kind, Line};
use super::chars::is_space;
use super::inline::longest_ticks;

/// Bytes; what is beyond is left out: indentation may make the text several times longer than the page.
pub const MAX_BYTES: usize = 32_000_000;

/// The text, without a line end at its end. O(bytes).
pub fn write(blocks: &[Block], containers: &mut [Container]) -> String {
    let mut out = Out::default();
    let mut before: Option<&Block> = None;
    for block in blocks.iter().filter(|block| block.kept && has_lines(block)) {
        let around = path(containers, block.container);
        if let Some(before) = before {
            let common = common(&path(containers, before.container), &around);
            if !is_close(before, block, common, &around, containers) {
                out.blank(&common.iter().map(|at| indentation(&containers[*at as usize])).collect::<String>());
            }
        }
        out.begin(&around, containers);
        write_block(block, &mut out);
        if out.is_full() {
            break;
        }
        before = Some(block);
    }
    out.text
}

/// Lines with what stands before them.
#[derive(Default)]
struct Out {
    text: String,
    /// Before the first line of a block and before the others.
    first: String,
    rest: String,
    begun: bool,
    any: bool,
}

impl Out {
    fn is_full(&self) -> bool {
        self.text.len() > MAX_BYTES
    }

    fn begin(&mut self, around: &[u32], containers: &mut [Container]) {
        self.first.clear();
        self.rest.clear();
        self.begun = false;
        for at in around {
            let container = &mut containers[*at as usize];
            self.rest.push_str(&indentation(container));
            if container.kind == ContainerKind::Item && !container.begun {
                self.first.push_str(&container.marker());
                container.begun = true;
            } else {
                self.first.push_str(&indentation(container));
            }
        }
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
        ContainerKind::Item => " ".repeat(container.marker().len()),
    }
}

fn common<'p>(before: &[u32], around: &'p [u32]) -> &'p [u32] {
    let length = before.iter().zip(around).take_while(|(left, right)| left == right).count();
    &around[..length]
}

/// Whether no blank line parts two blocks: items of one list, or of one within the other.
fn is_close(before: &Block, block: &Block, common: &[u32], around: &[u32], containers: &[Container]) -> bool {
    let text = |block: &Block| matches!(block.kind, Kind::Text { .. });
    let kind = |at: &u32| containers[*at as usize].kind;
    let (Some(own), Some(shared)) = (around.last(), common.last()) else { return false };
    text(before)
        && text(block)
        && kind(own) == ContainerKind::Item
        && !containers[*own as usize].begun
        && kind(shared) != ContainerKind::Quote
}

fn has_lines(block: &Block) -> bool {
    match &block.kind {
        Kind::Text { .. } => block.lines.iter().any(|line| !line.written.is_empty()),
        Kind::Heading(_) => block.lines.iter().any(|line| !line.written.trim_matches(is_space).is_empty()),
        Kind::Code { .. } | Kind::Table(_) => true,
    }
}

fn write_block(block: &Block, out: &mut Out) {
    match &block.kind {
        Kind::Heading(level) => {
            let text: Vec<&str> = block.lines.iter().map(|line| line.written.as_str()).collect();
            let text = text.join(" ");
            out.line(&["#".repeat(usize::from(*level)).as_str(), " ", text.trim_matches(is_space)]);
        }
        Kind::Code { language } => {
            let ticks = block.lines.iter().map(|line| longest_ticks(&line.written)).max().unwrap_or(0);
            let fence = "`".repeat(ticks.max(2) + 1);
            out.line(&[&fence, language]);
            for line in &block.lines {
                out.line(&[&line.written]);
            }
            out.line(&[&fence]);
        }
        Kind::Table(rows) => write_table(rows, out),
        Kind::Text { .. } => {
            let mut lines = block.lines.iter().filter(|line| !line.written.is_empty()).peekable();
            while let Some(line) = lines.next() {
                let (start, mark, rest) = without_opening(&line.written);
                // Two spaces end a line within a paragraph.
                let behind = if lines.peek().is_some() { "  " } else { "" };
                out.line(&[start, mark, rest, behind]);
            }
        }
    }
}

fn write_table(rows: &[Vec<Cell>], out: &mut Out) {
    let width_of = |row: &[Cell]| row.iter().map(|cell| cell.span).sum::<usize>();
    let mut rows = rows.iter().filter(|row| !row.is_empty()).peekable();
    let width = rows.clone().map(|row| width_of(row)).max().unwrap_or(0);
    match rows.next_if(|row| row.iter().all(|cell| cell.is_head)) {
        Some(head) => out.line(&[&row_text(head), &"  |".repeat(width - width_of(head))]),
        None => out.line(&["|", &"  |".repeat(width)]),
    }
    out.line(&["|", &" --- |".repeat(width)]);
    for row in rows {
        if out.is_full() {
            return;
        }
        out.line(&[&row_text(row)]);
    }
}

fn row_text(cells: &[Cell]) -> String {
    let mut text = String::from("|");
    for cell in cells {
        text.push(' ');
        let lines = cell.lines.iter().filter(|line| !line.written.is_empty());
        for (number, Line { written, .. }) in lines.enumerate() {
            text.push_str(if number > 0 { "<br>" } else { "" });
            let mut before = ' ';
            for c in written.chars() {
                if c == '|' && before != '\\' {
                    text.push('\\');
                }
                text.push(c);
                before = c;
            }
        }
        text.push_str(" |");
        // A page may state a span of 0.
        text.push_str(&"  |".repeat(cell.span.saturating_sub(1)));
    }
    text
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
        b'~' => line.starts_with(b"~~~"),
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
