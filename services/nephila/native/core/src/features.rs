//! What the main-text model is told of every text line: its own measure, its place, its neighbours and its containers.
//!
//! The base is the text-density model of the source paper P1 - text per line, smoothed by a Gaussian over the
//! neighbouring lines - widened by links, tags, class words, repeated templates and containers. Whole numbers only.
//! Invariant: the columns stand in the order of the twin's `NAMES`, each as long as there are lines.
//! O(lines + boxes + bytes).

use hashbrown::HashMap;

use crate::boxes::{Box, CONTEXTS};
use crate::tags::*;
use crate::text::Line;
use crate::windows::{flat, gauss, GAUSS_NARROW, GAUSS_WIDE};
use crate::words::{self, *};

pub const MAX_LINES: usize = 1 << 16;
/// Of a line its first bytes are looked at for sentence ends, digits and the like.
const LOOK_BYTES: usize = 256;
const TOP: i64 = 32767;
const LEVELS: usize = 5;
const H1_KIND: i16 = 6;
const H6_KIND: i16 = 10;
const NEIGHBOURS: [isize; 4] = [1, -1, 2, -2];

const NEAR: [u32; 15] = [
    GROUP_COMMENT,
    GROUP_ARTICLE,
    GROUP_FOOTER,
    GROUP_NAV,
    GROUP_CONSENT,
    GROUP_DETAIL,
    GROUP_CONTENT,
    GROUP_HERO,
    GROUP_FAQ,
    GROUP_REPLY,
    GROUP_REVIEW,
    GROUP_ADS,
    GROUP_BUTTON,
    GROUP_JOIN,
    GROUP_FORM,
];
const ANY: [u32; 20] = [
    GROUP_CONSENT,
    GROUP_ARTICLE,
    GROUP_HIDDEN,
    GROUP_HEADER,
    GROUP_NAV,
    GROUP_SIDE,
    GROUP_FOOTER,
    GROUP_RELATED,
    GROUP_CAROUSEL,
    GROUP_REVIEW,
    GROUP_COMMENT,
    GROUP_FAQ,
    GROUP_CONTENT,
    GROUP_DETAIL,
    GROUP_SOCIAL,
    GROUP_HERO,
    GROUP_CAPTION,
    GROUP_LIST,
    GROUP_BYLINE,
    GROUP_BUTTON,
];
const SHARES: [u32; 11] = [
    GROUP_COMMENT,
    GROUP_REPLY,
    GROUP_ITEM,
    GROUP_PRICE,
    GROUP_CODE,
    GROUP_REVIEW,
    GROUP_FAQ,
    GROUP_ARTICLE,
    GROUP_CONTENT,
    GROUP_DETAIL,
    GROUP_LIST,
];
/// Index of `CONTEXTS`.
const IN_NAV: u16 = 1;
const IN_ARTICLE: u16 = 1 << 5;
const IN_MAIN: u16 = 1 << 6;

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

fn inner_of(tag: u8) -> i16 {
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

/// Thousandths; 0 of nothing.
#[inline]
fn share(part: u64, whole: u64) -> i64 {
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
fn fit(value: i64) -> i16 {
    value.clamp(-TOP - 1, TOP) as i16
}

/// The page as it is measured.
struct View<'a> {
    text: &'a [u8],
    lines: &'a [Line],
    boxes: &'a [Box],
    shares: Vec<i16>,
    kinds: Vec<i16>,
    prose: Vec<i32>,
    /// Running sums over the lines: bytes, bytes in links, bytes of prose.
    sums: Vec<[u64; 3]>,
}

/// The columns, one behind the other.
struct Columns {
    data: Vec<i16>,
}

impl Columns {
    #[inline]
    fn put(&mut self, column: impl Iterator<Item = i16>) {
        self.data.extend(column);
    }
}

impl<'a> View<'a> {
    fn new(text: &'a [u8], lines: &'a [Line], boxes: &'a [Box]) -> Self {
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
        View { text, lines, boxes, shares, kinds, prose, sums }
    }

    #[inline]
    fn of(&self, line: &Line) -> &'a [u8] {
        &self.text[line.start as usize..(line.start + line.len) as usize]
    }

    #[inline]
    fn stand(&self, line: &Line) -> &'a Box {
        &self.boxes[line.place as usize]
    }

    fn total(&self, what: usize) -> u64 {
        self.sums[self.lines.len()][what]
    }
}

/// All columns one behind the other, in the order of the twin's `NAMES`.
pub fn features(text: &[u8], lines: &[Line], boxes: &[Box], title: &[u8]) -> Vec<i16> {
    let view = View::new(text, lines, boxes);
    let mut out = Columns { data: Vec::with_capacity(lines.len() * 144) };
    own(&mut out, &view);
    places(&mut out, &view);
    neighbours(&mut out, &view);
    windows(&mut out, &view);
    likes(&mut out, &view);
    containers(&mut out, &view);
    headings(&mut out, &view, title);
    page(&mut out, &view);
    out.data
}

fn own(out: &mut Columns, view: &View<'_>) {
    let lines = view.lines;
    out.put(lines.iter().map(|line| fit(i64::from(line.len))));
    out.put(view.shares.iter().copied());
    let looks: Vec<Look> = lines.iter().map(|line| Look::at(view.of(line))).collect();
    out.put(looks.iter().map(|look| look.stops));
    out.put(lines.iter().map(|line| ending(view.of(line))));
    out.put(looks.iter().map(|look| look.digits));
    out.put(looks.iter().map(|look| look.capitals));
    out.put(looks.iter().map(|look| look.signs));
    out.put(view.kinds.iter().copied());
    out.put(lines.iter().map(|line| inner_of(line.inner)));
    let counts: Vec<[u16; TEXT_GROUPS]> = lines
        .iter()
        .map(|line| {
            let text = view.of(line);
            words::of_text(&text[..text.len().min(LOOK_BYTES / 2)])
        })
        .collect();
    for group in 0..TEXT_GROUPS {
        out.put(counts.iter().map(|count| count[group] as i16));
    }
    let stands: Vec<&Box> = lines.iter().map(|line| view.stand(line)).collect();
    out.put(stands.iter().map(|stand| fit(i64::from(stand.depth))));
    for bit in 0..CONTEXTS.len() {
        out.put(stands.iter().map(|stand| (stand.context >> bit & 1) as i16));
    }
    for bit in NEAR {
        out.put(stands.iter().map(|stand| (stand.near() >> bit & 1) as i16));
    }
    for bit in ANY {
        out.put(stands.iter().map(|stand| (stand.every >> bit & 1) as i16));
    }
}

/// Counts over the head of a line.
struct Look {
    stops: i16,
    digits: i16,
    capitals: i16,
    signs: i16,
}

impl Look {
    fn at(text: &[u8]) -> Self {
        let head = &text[..text.len().min(LOOK_BYTES)];
        let (mut digits, mut capitals, mut signs) = (0u16, 0u16, 0u16);
        for b in head {
            digits += u16::from(b.is_ascii_digit());
            capitals += u16::from(b.is_ascii_uppercase());
            signs += u16::from(matches!(b, b'|' | b'>' | b'/' | b'@'));
        }
        let mut stops = 0u16;
        for (b, next) in head.iter().zip(head.iter().skip(1)) {
            stops += u16::from((*next == b' ') & matches!(b, b'.' | b'!' | b'?'));
        }
        if head.iter().any(|b| *b >= 0x80) {
            stops += memchr::memmem::find_iter(head, "。").count() as u16;
        }
        let size = head.len() as u64;
        Look {
            stops: stops as i16,
            digits: share(u64::from(digits), size) as i16,
            capitals: share(u64::from(capitals), size) as i16,
            signs: signs as i16,
        }
    }
}

/// 1 as a sentence ends, 2 a colon, 3 a comma or semicolon, else 0.
fn ending(text: &[u8]) -> i16 {
    let wide = |marks: &[&str]| marks.iter().any(|mark| text.ends_with(mark.as_bytes()));
    let stop = |b: Option<&u8>| matches!(b, Some(b'.' | b'!' | b'?'));
    match text.last() {
        last if stop(last) => 1,
        Some(b'"' | b')') if text.len() > 1 && stop(text.get(text.len() - 2)) => 1,
        Some(b':') => 2,
        Some(b',' | b';') => 3,
        Some(0x80..) if wide(&["。", "！", "？", "…", "”"]) => 1,
        Some(0x80..) if wide(&["："]) => 2,
        _ => 0,
    }
}

fn places(out: &mut Columns, view: &View<'_>) {
    let count = view.lines.len();
    out.put((0..count).map(|at| fit(at as i64)));
    out.put((0..count).map(|at| fit((count - at) as i64)));
    out.put((0..count).map(|at| share(at as u64, count as u64) as i16));
    out.put((0..count).map(|at| share(view.sums[at][0], view.total(0)) as i16));
}

fn neighbours(out: &mut Columns, view: &View<'_>) {
    let bytes: Vec<i16> = view.lines.iter().map(|line| fit(i64::from(line.len))).collect();
    for column in [&bytes, &view.shares, &view.kinds] {
        for above in NEIGHBOURS {
            let at = |line: usize| line.checked_add_signed(-above).and_then(|at| column.get(at)).copied();
            out.put((0..column.len()).map(|line| at(line).unwrap_or(-1)));
        }
    }
}

fn windows(out: &mut Columns, view: &View<'_>) {
    let text: Vec<i32> = view.lines.iter().map(|line| (line.len - line.link).min(400) as i32).collect();
    let linked: Vec<i32> = view.lines.iter().map(|line| line.link.min(400) as i32).collect();
    let smoothings: [fn(&[i32]) -> Vec<i32>; 3] =
        [|column| gauss(column, &GAUSS_NARROW), |column| gauss(column, &GAUSS_WIDE), flat];
    for smooth in smoothings {
        let (texts, links) = (smooth(&text), smooth(&linked));
        out.put(texts.iter().map(|value| fit(i64::from(*value))));
        out.put(texts.iter().zip(&links).map(|(a, b)| share(*b as u64, (*a + *b) as u64) as i16));
        out.put(smooth(&view.prose).iter().map(|value| fit(i64::from(*value))));
    }
}

/// The lines of one template: number, bytes, bytes in links, prose, first and last.
#[derive(Clone, Copy, Default)]
struct Alike {
    lines: u64,
    sums: [u64; 3],
    first: u64,
    last: u64,
}

/// Of the lines that stand in the same template: how many, how long, where.
fn likes(out: &mut Columns, view: &View<'_>) {
    let count = view.lines.len();
    let mut numbers: HashMap<u64, u32, foldhash::fast::RandomState> = HashMap::default();
    let mut groups: Vec<Alike> = Vec::new();
    let mut mine = Vec::with_capacity(count);
    for (at, line) in view.lines.iter().enumerate() {
        let number = *numbers.entry(view.stand(line).key).or_insert_with(|| {
            groups.push(Alike { first: at as u64, ..Alike::default() });
            groups.len() as u32 - 1
        });
        let group = &mut groups[number as usize];
        group.lines += 1;
        group.sums[0] += u64::from(line.len);
        group.sums[1] += u64::from(line.link);
        group.sums[2] += view.prose[at] as u64;
        group.last = at as u64;
        mine.push(number);
    }
    let columns: [fn(&Alike, u64) -> i64; 6] = [
        |group, _| group.lines as i64,
        |group, _| (group.sums[0] / group.lines) as i64,
        |group, _| share(group.sums[1], group.sums[0]),
        |group, count| share(group.first, count),
        |group, _| ((group.last - group.first + 1) * 10 / group.lines) as i64,
        |group, _| (group.sums[2] / group.lines) as i64,
    ];
    for column in columns {
        let values: Vec<i16> = groups.iter().map(|group| fit(column(group, count as u64))).collect();
        out.put(mine.iter().map(|number| values[*number as usize]));
    }
    let mut same: HashMap<&[u8], u32, foldhash::fast::RandomState> = HashMap::with_capacity_and_hasher(count, Default::default());
    for line in view.lines {
        *same.entry(view.of(line)).or_insert(0) += 1;
    }
    out.put(view.lines.iter().map(|line| fit(i64::from(same[view.of(line)]))));
}

/// Of the boxes around a line, and of the smallest that holds 30 % and 60 % of the prose.
fn containers(out: &mut Columns, view: &View<'_>) {
    let count = view.lines.len() as u32;
    let mut spans = vec![(count, 0u32); view.boxes.len()];
    for (at, line) in view.lines.iter().enumerate() {
        let span = &mut spans[line.place as usize];
        *span = (span.0.min(at as u32), at as u32 + 1);
    }
    for at in (1..spans.len()).rev() {
        let (first, end) = spans[at];
        let above = &mut spans[view.boxes[at].parent as usize];
        *above = (above.0.min(first), above.1.max(end));
    }
    spans[0] = (0, count);
    let measures: Vec<[i16; 4]> = spans.iter().map(|span| measure(view, *span)).collect();
    let mut level: Vec<u32> = view.lines.iter().map(|line| line.place).collect();
    for _ in 0..LEVELS {
        for at in &mut level {
            *at = view.boxes[*at as usize].parent;
        }
        for what in 0..4 {
            out.put(level.iter().map(|at| measures[*at as usize][what]));
        }
    }
    for percent in [30, 60] {
        let (start, stop) = best(view, &spans, percent);
        out.put((0..count).map(|at| fit(outside(at, start, stop))));
        let size = share(u64::from(stop - start), u64::from(count)) as i16;
        out.put((0..count).map(|_| size));
    }
}

fn measure(view: &View<'_>, (first, end): (u32, u32)) -> [i16; 4] {
    if first >= end {
        return [0; 4];
    }
    let (a, b) = (view.sums[first as usize], view.sums[end as usize]);
    let size = b[0] - a[0];
    [
        fit((size >> 3) as i64),
        share(b[1] - a[1], size) as i16,
        fit(i64::from(end - first)),
        share(b[2] - a[2], size) as i16,
    ]
}

/// Lines of the smallest box (of equal ones the outermost) that holds so much of all prose.
fn best(view: &View<'_>, spans: &[(u32, u32)], percent: u64) -> (u32, u32) {
    let total = view.total(2);
    let mut found = (0, view.lines.len() as u32);
    for (first, end) in spans {
        if first < end && end - first < found.1 - found.0 {
            let prose = view.sums[*end as usize][2] - view.sums[*first as usize][2];
            if total > 0 && 100 * prose >= percent * total {
                found = (*first, *end);
            }
        }
    }
    found
}

/// 0 inside, else lines to the near end: negative before it.
fn outside(at: u32, start: u32, stop: u32) -> i64 {
    let (at, start, stop) = (i64::from(at), i64::from(start), i64::from(stop));
    if at < start {
        at - start
    } else if at >= stop {
        at - stop + 1
    } else {
        0
    }
}

fn headings(out: &mut Columns, view: &View<'_>, title: &[u8]) {
    let count = view.kinds.len();
    let h1 = view.kinds.iter().position(|kind| *kind == H1_KIND);
    for from in [h1, titled(view, &title.to_ascii_lowercase())] {
        out.put((0..count).map(|at| from.map_or(fit(-TOP), |from| fit(at as i64 - from as i64))));
    }
    let (mut since, mut levels) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let (mut last, mut level) = (None, 0);
    for (at, kind) in view.kinds.iter().enumerate() {
        since.push(last.map_or(99, |last| fit((at - last) as i64)));
        levels.push(level);
        if (H1_KIND..=H6_KIND).contains(kind) {
            (last, level) = (Some(at), *kind);
        }
    }
    out.put(since.into_iter());
    out.put(levels.into_iter());
}

/// The first h1 that the title contains, else the first line that makes three tenths of it.
fn titled(view: &View<'_>, title: &[u8]) -> Option<usize> {
    let mut found = None;
    for (at, line) in view.lines.iter().enumerate() {
        let (kind, size) = (view.kinds[at], line.len as usize);
        if (found.is_some() && kind != H1_KIND) || size < 8 || size > title.len() || 10 * size < 3 * title.len() {
            continue;
        }
        if memchr::memmem::find(title, &view.of(line).to_ascii_lowercase()).is_some() {
            if kind == H1_KIND {
                return Some(at);
            }
            found = Some(at);
        }
    }
    found
}

fn page(out: &mut Columns, view: &View<'_>) {
    let (count, total) = (view.lines.len(), view.total(0));
    let part = |inside: &dyn Fn(&Box) -> bool| -> u64 {
        view.lines.iter().filter(|line| inside(view.stand(line))).map(|line| u64::from(line.len)).sum()
    };
    let mut values = vec![
        (total >> 3) as i64,
        share(view.total(1), total),
        count as i64,
        share(view.total(2), total),
        total.checked_div(count as u64).unwrap_or(0) as i64,
        share(part(&|stand| stand.context & IN_ARTICLE != 0), total),
        share(part(&|stand| stand.context & IN_MAIN != 0), total),
        (part(&|stand| stand.context & (IN_MAIN | IN_NAV) == IN_MAIN) >> 3) as i64,
        view.boxes.iter().filter(|stand| stand.tag == ARTICLE).count() as i64,
    ];
    for bit in SHARES {
        values.push(share(part(&|stand| stand.every >> bit & 1 != 0), total));
    }
    for value in values {
        out.put((0..count).map(|_| fit(value)));
    }
}
