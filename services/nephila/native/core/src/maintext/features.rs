//! Features of every text line for the main-text model: the line itself, its place, its neighbours, its containers.
//!
//! The base is the text-density model of the source paper P1 - text per line, smoothed by a Gaussian over the
//! neighbouring lines - widened by links, tags, class words, repeated templates and containers. Whole numbers only.
//! Invariant: the columns are in the order of `FEATURES`, each with one number for each line.
//! O(lines + boxes + bytes).

use nephila_wide::Work;

use crate::boxes::Box;
use crate::text::Line;

use super::texts::Texts;
use super::view::{Columns, View};
use super::{around, lines, whole, FEATURES};

/// All columns one after the other, in the order of `FEATURES`.
pub fn features(text: &[u8], lines: &[Line], texts: &Texts, boxes: &[Box], title: &[u8]) -> Columns {
    nephila_wide::widest(Features { text, lines, texts, boxes, title })
}

/// The columns are loops over numbers: AVX2 handles twice as many of them at once.
struct Features<'a> {
    text: &'a [u8],
    lines: &'a [Line],
    texts: &'a Texts,
    boxes: &'a [Box],
    title: &'a [u8],
}

impl Work for Features<'_> {
    type Found = Columns;

    #[inline(always)]
    fn run(self) -> Columns {
        let view = View::new(self.text, self.lines, self.texts, self.boxes);
        let mut out = Columns::new(self.lines.len(), FEATURES.len());
        let terms = lines::own(&mut out, &view);
        lines::places(&mut out, &view);
        lines::neighbours(&mut out, &view, &terms);
        lines::windows(&mut out, &view);
        around::likes(&mut out, &view);
        around::containers(&mut out, &view);
        whole::headings(&mut out, &view, self.title, &terms);
        whole::page(&mut out, &view);
        around::scores(&mut out, &view);
        out
    }
}
