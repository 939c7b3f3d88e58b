//! The promises of a page pass over any bytes: what fuzzing and the tests of the core check.

use crate::encoding;
use crate::pass::{read_page, Options, PagePass};
use crate::urls_py::document_of;

/// Links and bytes of text of a page that is cut at its limits.
const FEW_LINKS: usize = 3;
const SHORT_TEXT: usize = 100;

/// Read the body as a page, in full, without main text, and within small limits. Panics where a promise is broken.
pub fn check(body: &[u8], encoding: &str) {
    let read = |max_links, max_text_bytes, main_text| {
        let document = document_of("http://a.test/b/c?d").expect("a valid URL");
        let options = Options { max_links, max_text_bytes, main_text, ..Options::default() };
        read_page(body, document, encoding, &options).expect("a known encoding")
    };
    let sniffed = encoding::sniff(body, None);
    assert!(sniffed.is_empty() || encoding::to_utf8(body, &sniffed).is_some());
    let whole = read(10_000, 4_000_000, true);
    let (plain, short) = (read(10_000, 4_000_000, false), read(FEW_LINKS, SHORT_TEXT, true));
    for pass in [&whole, &plain, &short] {
        pass.check();
    }
    whole.check_same(&plain);
    short.check_start_of(&whole, FEW_LINKS, SHORT_TEXT);
}

impl PagePass {
    /// The columns fit to each other and to their buffers.
    fn check(&self) {
        let text = std::str::from_utf8(&self.text).expect("UTF-8");
        let mut end = 0;
        for (at, line) in self.lines.iter().enumerate() {
            let start = line.start as usize;
            assert!(line.len > 0 && line.link <= line.len);
            assert_eq!(start, if at == 0 { 0 } else { end + 1 });
            end = start + line.len as usize;
            assert!(!text[start..end].ends_with([' ', '\t', '\x0c']) && !text[start..end].contains(['\n', '\r']));
        }
        assert_eq!(end, text.len());
        assert!(self.main_lines.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(self.main_lines.last().is_none_or(|last| (*last as usize) < self.lines.len()));
        std::str::from_utf8(&self.main_text).expect("UTF-8");
        self.check_links();
    }

    fn check_links(&self) {
        let links = &self.links;
        let (urls, count) = (std::str::from_utf8(&links.urls).expect("UTF-8"), links.ends.len());
        std::str::from_utf8(&links.anchors).expect("UTF-8");
        assert_eq!(
            (links.fingerprints.len(), links.host_spans.len(), links.anchor_ends.len(), links.flags.len()),
            (16 * count, 2 * count, count, count)
        );
        let mut start = 0;
        for (at, end) in links.ends.iter().map(|end| *end as usize).enumerate() {
            let url = &urls[start..end];
            assert!(url.starts_with("http://") || url.starts_with("https://"), "{url}");
            let host = (links.host_spans[2 * at] as usize, links.host_spans[2 * at + 1] as usize);
            assert!(start < host.0 && host.0 < host.1 && host.1 <= end, "{url}");
            start = end;
        }
        assert_eq!(start, urls.len());
        assert!(links.anchor_ends.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(links.anchor_ends.last().map_or(0, |end| *end as usize), links.anchors.len());
    }

    /// The main text and the places of links are all that differs without main text.
    fn check_same(&self, plain: &PagePass) {
        assert_eq!((&self.title, &self.text, &self.meta), (&plain.title, &plain.text, &plain.meta));
        assert_eq!(self.links.urls, plain.links.urls);
        assert_eq!(self.links.anchors, plain.links.anchors);
        assert!(plain.main_lines.is_empty() && plain.main_text.is_empty());
    }

    /// Limits cut the end off, and nothing else.
    fn check_start_of(&self, whole: &PagePass, links: usize, text: usize) {
        assert!(self.links.ends.len() <= links && self.text.len() <= text);
        assert!(whole.text.starts_with(&self.text) && whole.links.urls.starts_with(&self.links.urls));
        assert_eq!(self.title, whole.title);
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    /// Pieces of markup in any order.
    #[test]
    fn any_markup_keeps_the_promises() {
        let pieces = include_str!("../fuzz/page.dict");
        let pieces: Vec<Vec<u8>> =
            pieces.lines().filter_map(|row| Some(bytes(row.strip_prefix('"')?.strip_suffix('"')?))).collect();
        assert!(pieces.len() > 100);
        let mut state = 7_u64;
        let mut below = |most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % most
        };
        for _ in 0..3_000 {
            let size = below(60);
            let page: Vec<u8> = (0..size).flat_map(|_| pieces[below(pieces.len())].clone()).collect();
            check(&page, ["", "utf-16le", "utf-8"][below(12).min(2)]);
        }
    }

    /// A row of the dictionary: `\xNN` is a byte.
    fn bytes(row: &str) -> Vec<u8> {
        let mut parts = row.split("\\x");
        let mut out = parts.next().unwrap_or("").as_bytes().to_vec();
        for part in parts {
            out.push(u8::from_str_radix(&part[..2], 16).expect("two digits"));
            out.extend_from_slice(part[2..].as_bytes());
        }
        out
    }
}
