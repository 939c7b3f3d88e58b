//! Columns of a line itself, of its place and of its neighbours.

use crate::boxes::CONTEXTS;
use crate::words::{self, *};

use super::view::{fit, inner_of, share, Columns, View};
use super::windows::{flat, gauss, GAUSS_NARROW, GAUSS_WIDE};

/// Of a line its first bytes are looked at for digits, capitals and the like.
const LOOK_BYTES: usize = 256;
/// Bytes that are counted side by side.
const CHUNK: usize = 32;
/// How many lines above (positive) or below.
const NEIGHBOURS: [isize; 4] = [1, -1, 2, -2];

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
/// Also how many words of the first two text groups a line has.
#[inline(always)]
pub fn own(out: &mut Columns, view: &View<'_>) -> Vec<i16> {
    let lines = view.lines;
    out.put(lines.iter().map(|line| fit(i64::from(line.len))));
    out.put(view.shares.iter().copied());
    let looks: Vec<Look> = lines.iter().map(|line| Look::at(view.of(line))).collect();
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
    out.put(lines.iter().map(|line| fit(i64::from(view.stand(line).depth))));
    for bit in 0..CONTEXTS.len() {
        out.put(view.contexts.iter().map(|context| (context >> bit & 1) as i16));
    }
    for bit in NEAR {
        out.put(view.near.iter().map(|near| (near >> bit & 1) as i16));
    }
    for bit in ANY {
        out.put(view.every.iter().map(|every| (every >> bit & 1) as i16));
    }
    counts.iter().map(|count| (count[0] + count[1]) as i16).collect()
}

/// Counts over the head of a line.
struct Look {
    digits: i16,
    capitals: i16,
    signs: i16,
}

impl Look {
    #[inline(always)]
    fn at(text: &[u8]) -> Self {
        let head = &text[..text.len().min(LOOK_BYTES)];
        // A byte of each sum for every place in a chunk: 256 bytes make sums of at most 8, which fit.
        let mut sums = [[0u8; CHUNK]; 3];
        let mut chunks = head.chunks_exact(CHUNK);
        for chunk in &mut chunks {
            for at in 0..CHUNK {
                let kinds = kinds(chunk[at]);
                sums[0][at] += kinds[0];
                sums[1][at] += kinds[1];
                sums[2][at] += kinds[2];
            }
        }
        let mut counts = sums.map(|sums| sums.iter().map(|sum| u64::from(*sum)).sum::<u64>());
        for b in chunks.remainder() {
            let kinds = kinds(*b);
            (0..3).for_each(|kind| counts[kind] += u64::from(kinds[kind]));
        }
        let size = head.len() as u64;
        Look { digits: share(counts[0], size) as i16, capitals: share(counts[1], size) as i16, signs: counts[2] as i16 }
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
    let count = view.lines.len();
    out.put((0..count).map(|at| fit(at as i64)));
    out.put((0..count).map(|at| fit((count - at) as i64)));
    out.put((0..count).map(|at| share(at as u64, count as u64) as i16));
    out.put((0..count).map(|at| share(view.sums[at][0], view.total(0)) as i16));
}

#[inline(always)]
pub fn neighbours(out: &mut Columns, view: &View<'_>) {
    let bytes: Vec<i16> = view.lines.iter().map(|line| fit(i64::from(line.len))).collect();
    for column in [&bytes, &view.shares, &view.kinds] {
        for above in NEIGHBOURS {
            let at = |line: usize| line.checked_add_signed(-above).and_then(|at| column.get(at)).copied();
            out.put((0..column.len()).map(|line| at(line).unwrap_or(-1)));
        }
    }
}

#[inline(always)]
pub fn windows(out: &mut Columns, view: &View<'_>) {
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
