//! The structure of a page as JSON: a list of blocks, each with its kind, text and links.

use super::chars::collapsed;
use super::links::Resolver;
use crate::structure::blocks::{part, Block, Cell, ContainerKind, Item, Kind, Line, Mark, Structure, Task};

/// UTF-8. O(bytes).
pub fn write(structure: &Structure<'_>, resolver: Resolver<'_>) -> String {
    let mut writer = Writer { structure, resolver, out: String::from("[") };
    // A rule has nothing to say.
    for (at, block) in structure.blocks.iter().filter(|block| !matches!(block.kind, Kind::Rule)).enumerate() {
        writer.out.push_str(if at > 0 { ",{" } else { "{" });
        writer.block(block);
        writer.out.push('}');
    }
    writer.out.push(']');
    writer.out
}

struct Writer<'s, 'r> {
    structure: &'s Structure<'s>,
    resolver: Resolver<'r>,
    out: String,
}

impl Writer<'_, '_> {
    fn block(&mut self, block: &Block) {
        let kind = match &block.kind {
            Kind::Text { caption: true } => "caption",
            Kind::Text { caption: false } => "text",
            Kind::Heading(_) => "heading",
            Kind::Code { .. } => "code",
            Kind::Table(_) => "table",
            Kind::Math => "formula",
            Kind::Rule => "rule",
        };
        self.field("kind", kind);
        match &block.kind {
            Kind::Heading(level) => self.number("level", usize::from(*level)),
            Kind::Code { language } if !language.is_empty() => {
                self.out.push(',');
                self.field("language", language);
            }
            _ => {}
        }
        self.around(block.container);
        let structure = self.structure;
        if let Kind::Table(rows) = block.kind {
            self.out.push_str(",\"rows\":[");
            for (at, row) in structure.cells_of(rows).enumerate() {
                self.out.push_str(if at > 0 { ",[" } else { "[" });
                for (at, cell) in row.iter().enumerate() {
                    self.out.push_str(if at > 0 { ",{" } else { "{" });
                    self.cell(cell);
                    self.out.push('}');
                }
                self.out.push(']');
            }
            self.out.push(']');
            return;
        }
        self.out.push(',');
        let code = matches!(block.kind, Kind::Code { .. });
        let lines = part(&structure.lines, block.lines);
        let text: Vec<String> = lines.iter().map(|line| self.text(line, code)).collect();
        self.field("text", &text.join("\n"));
        self.references(lines);
    }

    /// The depth of the lists and quotes around a block, and what the innermost item is.
    fn around(&mut self, innermost: u32) {
        let (mut at, mut lists, mut quotes) = (innermost as usize, 0, 0);
        let item = self.structure.containers.get(at).map(|one| (one.kind, one.ordered, one.number, one.task));
        while let Some(one) = self.structure.containers.get(at) {
            lists += usize::from(one.kind == ContainerKind::List);
            quotes += usize::from(one.kind == ContainerKind::Quote);
            at = one.parent as usize;
        }
        if lists > 0 {
            self.number("list", lists);
        }
        if quotes > 0 {
            self.number("quote", quotes);
        }
        match item {
            Some((ContainerKind::Note, _, number, _)) => self.number("note", usize::try_from(number).unwrap_or(0)),
            Some((_, true, number, _)) => self.number("number", usize::try_from(number).unwrap_or(0)),
            _ => {}
        }
        match item.map(|one| one.3) {
            Some(Task::Open) => self.out.push_str(",\"done\":false"),
            Some(Task::Done) => self.out.push_str(",\"done\":true"),
            _ => {}
        }
    }

    fn cell(&mut self, cell: &Cell) {
        let lines = part(&self.structure.lines, cell.lines);
        let text: Vec<String> = lines.iter().map(|line| self.text(line, false)).collect();
        self.field("text", &text.join("\n"));
        if cell.is_head {
            self.out.push_str(",\"head\":true");
        }
        if cell.span > 1 {
            self.number("columns", cell.span as usize);
        }
        if cell.rows > 1 {
            self.number("rows", cell.rows as usize);
        }
        self.references(lines);
    }

    fn text(&self, line: &Line, code: bool) -> String {
        let plain = self.structure.plain(line);
        if code {
            plain
        } else {
            collapsed(&plain)
        }
    }

    /// Links and pictures of lines.
    fn references(&mut self, lines: &[Line]) {
        let structure = self.structure;
        let (mut links, mut images) = (Vec::new(), Vec::new());
        for line in lines {
            let mut open: Option<(String, String)> = None;
            for item in structure.items_of(line) {
                match *item {
                    Item::Link(range) => open = Some((self.resolver.resolve(structure.pool_of(range)), String::new())),
                    Item::Close(Mark::Link) => links.extend(open.take().filter(|link| !link.0.is_empty())),
                    Item::Image(alt, source) => {
                        let url = self.resolver.resolve(structure.pool_of(source));
                        images.push((url, structure.pool_of(alt).to_owned()));
                    }
                    Item::Text(range) => {
                        if let Some(link) = &mut open {
                            link.1.push_str(structure.text_of(range));
                        }
                    }
                    Item::Literal(range) => {
                        if let Some(link) = &mut open {
                            link.1.push_str(structure.pool_of(range));
                        }
                    }
                    Item::Open(_) | Item::Close(_) => {}
                }
            }
        }
        images.retain(|image| !image.0.is_empty());
        self.list("links", &links);
        self.list("images", &images);
    }

    fn list(&mut self, name: &str, found: &[(String, String)]) {
        if found.is_empty() {
            return;
        }
        self.out.push_str(",\"");
        self.out.push_str(name);
        self.out.push_str("\":[");
        for (at, (url, text)) in found.iter().enumerate() {
            self.out.push_str(if at > 0 { ",{" } else { "{" });
            self.field("url", url);
            self.out.push(',');
            self.field("text", &collapsed(text));
            self.out.push('}');
        }
        self.out.push(']');
    }

    fn number(&mut self, name: &str, value: usize) {
        self.out.push_str(&format!(",\"{name}\":{value}"));
    }

    fn field(&mut self, name: &str, value: &str) {
        self.out.push_str(&format!("\"{name}\":\""));
        for c in value.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\t' => self.out.push_str("\\t"),
                c if c < ' ' => self.out.push_str(&format!("\\u{:04x}", c as u32)),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}
