//! Numbers of the texts of lines: equal lines have one number. Each line is hashed once per page.

use hashbrown::HashMap;

use crate::text::Line;

pub struct Texts {
    /// For each line the number of its text, in the order of first occurrences.
    pub of_lines: Vec<u32>,
    /// Different texts.
    pub count: usize,
}

impl Texts {
    /// O(bytes).
    pub fn of(text: &[u8], lines: &[Line]) -> Self {
        let mut known: HashMap<&[u8], u32, foldhash::fast::RandomState> =
            HashMap::with_capacity_and_hasher(lines.len(), Default::default());
        let mut of_lines = Vec::with_capacity(lines.len());
        for line in lines {
            let next = known.len() as u32;
            let words = &text[line.start as usize..(line.start + line.len) as usize];
            of_lines.push(*known.entry(words).or_insert(next));
        }
        Texts { count: known.len(), of_lines }
    }
}
