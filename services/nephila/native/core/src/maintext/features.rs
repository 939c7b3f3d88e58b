//! Features of every text line for the main-text model: the line itself, its place, its neighbours, its containers.
//!
//! The base is the text-density model of the source paper P1 - text per line, smoothed by a Gaussian over the
//! neighbouring lines - widened by links, tags, class words, repeated templates and containers. Whole numbers only.
//! Invariant: the columns are in the order of `FEATURES`, each with one number for each line.
//! O(lines + boxes + bytes).

use crate::boxes::Box;
use crate::text::Line;

use super::view::{Columns, View};
use super::{around, lines, whole, FEATURES};

/// All columns one after the other, in the order of `FEATURES`.
pub fn features(text: &[u8], lines: &[Line], boxes: &[Box], title: &[u8]) -> Vec<i16> {
    let view = View::new(text, lines, boxes);
    let mut out = Columns { data: Vec::with_capacity(lines.len() * FEATURES.len()) };
    let boiler = lines::own(&mut out, &view);
    lines::places(&mut out, &view);
    lines::neighbours(&mut out, &view);
    lines::windows(&mut out, &view);
    around::likes(&mut out, &view);
    around::containers(&mut out, &view);
    whole::headings(&mut out, &view, title, &boiler);
    whole::page(&mut out, &view);
    out.data
}
