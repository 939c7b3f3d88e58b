//! Measures of a page for the main-text model, and their columns.

use nephila_wide::LINES;

use crate::boxes::Box;
use crate::tags::*;
use crate::text::Line;

const TOP: i64 = 32767;

/// Thousandths; 0 of nothing.
#[inline]
pub fn share(part: u64, whole: u64) -> i64 {
    if whole == 0 {
        return 0;
    }
    // The narrow division is the faster one by far.
    match (u32::try_from(part * 1000), u32::try_from(whole)) {
        (Ok(part), Ok(whole)) => i64::from(part / whole),
        _ => (part * 1000 / whole) as i64,
    }
}

#[inline]
pub fn fit(value: i64) -> i16 {
    value.clamp(-TOP - 1, TOP) as i16
}

/// The page as it is measured.
pub struct View<'a> {
    pub text: &'a [u8],
    pub lines: &'a [Line],
    pub boxes: &'a [Box],
    /// Attributes of the boxes of the lines, a column each: loops over them become vector code.
    pub contexts: Vec<u16>,
    pub near: Vec<u32>,
    pub every: Vec<u32>,
    pub shares: Vec<i16>,
    pub kinds: Vec<i16>,
    pub prose: Vec<i32>,
    /// Running sums over the lines: bytes, bytes in links, bytes of prose.
    pub sums: Vec<[u64; 3]>,
}

/// The columns, one behind the other, each padded to `stride` numbers.
pub struct Columns {
    pub data: Vec<i16>,
    /// Lines: the numbers of a column that mean something.
    pub count: usize,
    pub stride: usize,
}

impl Columns {
    pub fn new(count: usize, columns: usize) -> Self {
        let stride = count.next_multiple_of(LINES);
        Columns { data: Vec::with_capacity(columns * stride), count, stride }
    }

    #[inline(always)]
    pub fn put(&mut self, column: impl Iterator<Item = i16>) {
        self.data.extend(column);
        self.data.resize(self.data.len().next_multiple_of(LINES), 0);
    }
}

impl<'a> View<'a> {
    #[inline(always)]
    pub fn new(text: &'a [u8], lines: &'a [Line], boxes: &'a [Box]) -> Self {
        let shares: Vec<i16> =
            lines.iter().map(|line| share(u64::from(line.link), u64::from(line.len)) as i16).collect();
        let prose: Vec<i32> = lines
            .iter()
            .zip(&shares)
            .map(|(line, share)| if line.len >= 80 && *share < 350 { line.len.min(600) as i32 } else { 0 })
            .collect();
        let mut sums = Vec::with_capacity(lines.len() + 1);
        let mut sum = [0u64; 3];
        sums.push(sum);
        for (line, prose) in lines.iter().zip(&prose) {
            sum = [sum[0] + u64::from(line.len), sum[1] + u64::from(line.link), sum[2] + *prose as u64];
            sums.push(sum);
        }
        let kinds = lines.iter().map(|line| kind_of(line.tag)).collect();
        let stands = || lines.iter().map(|line| &boxes[line.place as usize]);
        let contexts = stands().map(|stand| stand.context).collect();
        let near = stands().map(Box::near).collect();
        let every = stands().map(|stand| stand.every).collect();
        View { text, lines, boxes, contexts, near, every, shares, kinds, prose, sums }
    }

    #[inline]
    pub fn of(&self, line: &Line) -> &'a [u8] {
        &self.text[line.start as usize..(line.start + line.len) as usize]
    }

    #[inline]
    pub fn stand(&self, line: &Line) -> &'a Box {
        &self.boxes[line.place as usize]
    }

    pub fn total(&self, what: usize) -> u64 {
        self.sums[self.lines.len()][what]
    }
}

fn kind_of(tag: u16) -> i16 {
    match tag as u8 {
        P => 1,
        LI => 2,
        TD => 3,
        TH => 4,
        DIV => 5,
        H1 => 6,
        H2 => 7,
        H3 => 8,
        H4 => 9,
        H5 | H6 => 10,
        SECTION => 11,
        ARTICLE => 12,
        BLOCKQUOTE => 13,
        PRE => 14,
        DD => 15,
        DT => 16,
        FIGCAPTION => 17,
        NAV => 18,
        HEADER => 19,
        FOOTER => 20,
        ASIDE => 21,
        FORM => 22,
        MAIN => 23,
        UL | OL => 24,
        SUMMARY => 25,
        ADDRESS => 27,
        TR | TABLE => 28,
        _ => 0,
    }
}

pub fn inner_of(tag: u8) -> i16 {
    match tag {
        A => 1,
        SPAN => 2,
        STRONG | B => 3,
        EM | I => 4,
        BUTTON => 5,
        LABEL => 6,
        TIME => 7,
        CODE => 8,
        _ => 0,
    }
}
