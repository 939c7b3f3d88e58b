//! Columns of a line itself, of its place and of its neighbours.

use crate::boxes::CONTEXTS;
use crate::words::{self, *};

use super::view::{fit, inner_of, of_each, share, Columns, View};
use super::windows::{flat, gauss, GAUSS_NARROW, GAUSS_WIDE};

/// Of a line its first bytes are looked at for digits, capitals and the like.
const LOOK_BYTES: usize = 256;
/// Bytes that are counted side by side.
const CHUNK: usize = 32;
/// How many lines above (positive) or below.
const NEIGHBOURS: [isize; 4] = [1, -1, 2, -2];
/// The farthest of them.
const FAR: usize = 2;

const NEAR: [u32; 21] = [
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
    GROUP_ITEM,
    GROUP_RELATED,
    GROUP_CAROUSEL,
    GROUP_BYLINE,
    GROUP_PRICE,
    GROUP_POST,
];
const ANY: [u32; 24] = [
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
    GROUP_ITEM,
    GROUP_POST,
    GROUP_ADS,
    GROUP_JOIN,
];
/// Also how many terms a line has.
#[inline(always)]
pub fn own(out: &mut Columns, view: &View<'_>) -> Vec<i16> {
    let lines = view.lines;
    out.put(lines.iter().map(|line| fit(line.len)));
    out.put(view.shares.iter().copied());
    // A closure would not be compiled for wide vectors.
    let mut looks = vec![[0; 3]; lines.len()];
    for (place, line) in looks.iter_mut().zip(lines) {
        *place = look(view.of(line));
    }
    out.put(lines.iter().map(|line| ending(view.of(line))));
    for what in 0..3 {
        out.put(looks.iter().map(|look| look[what]));
    }
    out.put(view.kinds.iter().copied());
    out.put(lines.iter().map(|line| inner_of(line.inner)));
    let counts = of_each(lines, |line| {
        let text = view.of(line);
        words::of_text(&text[..text.len().min(LOOK_BYTES / 2)])
    });
    for group in 0..TEXT_GROUPS {
        out.put(counts.iter().map(|(count, _)| count[group] as i16));
    }
    out.put(lines.iter().map(|line| fit(u32::from(view.stand(line).depth))));
    for bit in 0..CONTEXTS.len() {
        out.put(view.contexts.iter().map(|context| (context >> bit & 1) as i16));
    }
    for bit in NEAR {
        out.put(view.near.iter().map(|near| (near >> bit & 1) as i16));
    }
    for bit in ANY {
        out.put(view.every.iter().map(|every| (every >> bit & 1) as i16));
    }
    of_each(&counts, |(_, terms)| *terms as i16)
}

/// Over the head of a line: thousandths of digits and of capitals, number of signs.
#[inline(always)]
fn look(text: &[u8]) -> [i16; 3] {
    let head = &text[..text.len().min(LOOK_BYTES)];
    // A byte of each sum for every place in a chunk: 256 bytes make sums of at most 8, which fit.
    let mut sums = [[0u8; CHUNK]; 3];
    let mut chunks = head.chunks_exact(CHUNK);
    for chunk in &mut chunks {
        add_kinds(&mut sums, chunk);
    }
    // NULs are of no kind.
    let mut rest = [0u8; CHUNK];
    rest[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    add_kinds(&mut sums, &rest);
    let [digits, capitals, signs] = sums.map(|sums| sums.iter().map(|sum| u32::from(*sum)).sum::<u32>());
    let size = head.len() as u32;
    [share(digits, size), share(capitals, size), signs as i16]
}

#[inline(always)]
fn add_kinds(sums: &mut [[u8; CHUNK]; 3], chunk: &[u8]) {
    for (at, b) in chunk.iter().enumerate().take(CHUNK) {
        let kinds = kinds(*b);
        sums[0][at] += kinds[0];
        sums[1][at] += kinds[1];
        sums[2][at] += kinds[2];
    }
}

/// 1 where a byte is a digit, a capital, a sign.
#[inline(always)]
fn kinds(b: u8) -> [u8; 3] {
    [
        u8::from(b.wrapping_sub(b'0') < 10),
        u8::from(b.wrapping_sub(b'A') < 26),
        u8::from(b == b'|') | u8::from(b == b'>') | u8::from(b == b'/') | u8::from(b == b'@'),
    ]
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

#[inline(always)]
pub fn places(out: &mut Columns, view: &View<'_>) {
    let count = view.lines.len() as u32;
    out.put((0..count).map(fit));
    out.put((0..count).map(|at| fit(count - at)));
    out.put((0..count).map(|at| share(at, count)));
    out.put(view.sums[..count as usize].iter().map(|sums| share(sums[0], view.total(0))));
}

#[inline(always)]
pub fn neighbours(out: &mut Columns, view: &View<'_>, terms: &[i16]) {
    let bytes = of_each(view.lines, |line| fit(line.len));
    let mut padded = vec![-1; bytes.len() + 2 * FAR];
    for column in [&bytes, &view.shares, &view.kinds] {
        padded[FAR..][..column.len()].copy_from_slice(column);
        for above in NEIGHBOURS {
            let from = FAR.saturating_add_signed(-above);
            out.put(padded[from..][..column.len()].iter().copied());
        }
    }
    padded[FAR..][..terms.len()].copy_from_slice(terms);
    for above in [0, 1, -1] {
        out.put(padded[FAR.saturating_add_signed(-above)..][..terms.len()].iter().copied());
    }
}

#[inline(always)]
pub fn windows(out: &mut Columns, view: &View<'_>) {
    let text = of_each(view.lines, |line| (line.len - line.link).min(400) as i32);
    let linked = of_each(view.lines, |line| line.link.min(400) as i32);
    let narrow = |column: &[i32]| gauss(column, &GAUSS_NARROW);
    let wide = |column: &[i32]| gauss(column, &GAUSS_WIDE);
    smoothed(out, narrow(&text), narrow(&linked), narrow(&view.prose));
    smoothed(out, wide(&text), wide(&linked), wide(&view.prose));
    smoothed(out, flat(&text), flat(&linked), flat(&view.prose));
}

#[inline(always)]
fn smoothed(out: &mut Columns, texts: Vec<i32>, links: Vec<i32>, prose: Vec<i32>) {
    out.put(texts.iter().map(|value| fit(*value as u32)));
    out.put(texts.iter().zip(&links).map(|(text, link)| share(*link as u32, (text + link) as u32)));
    out.put(prose.iter().map(|value| fit(*value as u32)));
}
