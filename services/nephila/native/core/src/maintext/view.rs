//! Measures of a page for the main-text model, and their columns.

use std::cell::Cell;

use nephila_wide::LINES;

use crate::boxes::Box;
use crate::structure::KEPT;
use crate::tags::*;
use crate::text::Line;

use super::texts::Texts;

/// Thousandths; 0 of nothing.
#[inline(always)]
pub fn share(part: u32, whole: u32) -> i16 {
    // Vectors have no division of whole numbers. This one is exact: a quotient below a whole number is below it by
    // 1 / whole at least, which is more than half a step of a f64 where the product of both is below 2^53. NaN is 0.
    (f64::from(part) * 1000.0 / f64::from(whole)) as i32 as i16
}

#[inline(always)]
pub fn fit(value: u32) -> i16 {
    value.min(i16::MAX as u32) as i16
}

/// Lines from one to the other.
#[inline(always)]
pub fn distance(from: u32, to: u32) -> i16 {
    (to as i32 - from as i32).clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

/// A number for each line. Written as a loop: a `collect` that is not inlined is not compiled for wide vectors.
#[inline(always)]
pub fn of_each<I, T: Clone + Default>(lines: &[I], value: impl Fn(&I) -> T) -> Vec<T> {
    let mut values = vec![T::default(); lines.len()];
    for (place, line) in values.iter_mut().zip(lines) {
        *place = value(line);
    }
    values
}

/// The page as it is measured.
pub struct View<'a> {
    pub text: &'a [u8],
    pub lines: &'a [Line],
    /// Numbers of the texts of the lines.
    pub texts: &'a Texts,
    pub boxes: &'a [Box],
    /// Attributes of the boxes of the lines, a column each: loops over them become vector code.
    pub contexts: Vec<u16>,
    pub near: Vec<u32>,
    pub every: Vec<u32>,
    pub shares: Vec<i16>,
    pub kinds: Vec<i16>,
    pub prose: Vec<i32>,
    /// Running sums over the lines: bytes, bytes in links, bytes of prose. The text of a page is below 2^32 bytes.
    pub sums: Vec<[u32; 3]>,
}

/// The columns, one behind the other, each with `stride` numbers.
pub struct Columns {
    /// Kept by the thread for its next page. Numbers behind those of the lines are of any page: nothing depends on them.
    data: Vec<i16>,
    /// Numbers of the columns so far.
    filled: usize,
    /// Lines: the numbers of a column that mean something.
    pub count: usize,
    pub stride: usize,
}

thread_local! {
    static ROOM: Cell<Vec<i16>> = const { Cell::new(Vec::new()) };
}

impl Columns {
    pub fn new(count: usize, columns: usize) -> Self {
        let stride = count.next_multiple_of(LINES);
        let mut data = ROOM.take();
        if data.len() < columns * stride {
            data.resize(columns * stride, 0);
        }
        Columns { data, filled: 0, count, stride }
    }

    /// A number for each line.
    #[inline(always)]
    pub fn put(&mut self, column: impl Iterator<Item = i16>) {
        for (place, value) in self.data[self.filled..][..self.count].iter_mut().zip(column) {
            *place = value;
        }
        self.filled += self.stride;
    }

    pub fn numbers(&self) -> &[i16] {
        &self.data[..self.filled]
    }
}

impl Drop for Columns {
    fn drop(&mut self) {
        let data = std::mem::take(&mut self.data);
        if data.len() * size_of::<i16>() <= KEPT {
            ROOM.set(data);
        }
    }
}

impl<'a> View<'a> {
    #[inline(always)]
    pub fn new(text: &'a [u8], lines: &'a [Line], texts: &'a Texts, boxes: &'a [Box]) -> Self {
        let shares = of_each(lines, |line| share(line.link, line.len));
        let mut prose = of_each(lines, |line| line.len.min(600) as i32);
        for (prose, (line, share)) in prose.iter_mut().zip(lines.iter().zip(&shares)) {
            *prose *= i32::from((line.len >= 80) & (*share < 350));
        }
        let mut sums = Vec::with_capacity(lines.len() + 1);
        let mut sum = [0u32; 3];
        sums.push(sum);
        for (line, prose) in lines.iter().zip(&prose) {
            sum = [sum[0] + line.len, sum[1] + line.link, sum[2] + *prose as u32];
            sums.push(sum);
        }
        let kinds = of_each(lines, |line| KINDS[usize::from(line.tag as u8)]);
        let (mut contexts, mut near, mut every) = (vec![0; lines.len()], vec![0; lines.len()], vec![0; lines.len()]);
        for (at, line) in lines.iter().enumerate() {
            let stand = &boxes[line.place as usize];
            (contexts[at], near[at], every[at]) = (stand.context, stand.near(), stand.every);
        }
        View { text, lines, texts, boxes, contexts, near, every, shares, kinds, prose, sums }
    }

    #[inline]
    pub fn of(&self, line: &Line) -> &'a [u8] {
        &self.text[line.start as usize..(line.start + line.len) as usize]
    }

    #[inline]
    pub fn stand(&self, line: &Line) -> &'a Box {
        &self.boxes[line.place as usize]
    }

    pub fn total(&self, what: usize) -> u32 {
        self.sums[self.lines.len()][what]
    }
}

static KINDS: [i16; 256] = {
    let mut kinds = [0; 256];
    let mut tag = 0;
    while tag < kinds.len() {
        kinds[tag] = kind_of(tag as u8);
        tag += 1;
    }
    kinds
};

const fn kind_of(tag: u8) -> i16 {
    match tag {
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
