//! Columns of headings and of the whole page.

use crate::boxes::IN_BODY;
use crate::tags::ARTICLE;
use crate::words::*;

use super::view::{distance, fit, of_each, share, Columns, View};

const H1_KIND: i16 = 6;
const H6_KIND: i16 = 10;
/// Where there is no such line.
const NOWHERE: i16 = -32767;

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
const CONTEXT_SHARES: [u16; 3] = [IN_ARTICLE, IN_MAIN, IN_BODY];

#[inline(always)]
pub fn headings(out: &mut Columns, view: &View<'_>, title: &[u8], terms: &[i16]) {
    let count = view.kinds.len();
    let h1 = view.kinds.iter().position(|kind| *kind == H1_KIND);
    for from in [h1, titled(view, &title.to_ascii_lowercase())] {
        out.put((0..count).map(|at| from.map_or(NOWHERE, |from| distance(from as u32, at as u32))));
    }
    let mut rows = Vec::with_capacity(count);
    let (mut last, mut level, mut said) = (None, 0, 0);
    for (at, kind) in view.kinds.iter().enumerate() {
        let since = last.map_or(99, |last| fit((at - last) as u32));
        if (H1_KIND..=H6_KIND).contains(kind) {
            (last, level, said) = (Some(at), *kind, terms[at]);
        }
        rows.push([since, level, said]);
    }
    for what in 0..3 {
        out.put(rows.iter().map(|row| row[what]));
    }
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

#[inline(always)]
pub fn page(out: &mut Columns, view: &View<'_>) {
    let (count, total) = (view.lines.len(), view.total(0));
    let sizes = of_each(view.lines, |line| line.len);
    let contexts = CONTEXT_SHARES.map(|bit| bytes(&sizes, &view.contexts, |context| context & bit != 0));
    let subject = bytes(&sizes, &view.contexts, |context| context & (IN_MAIN | IN_NAV) == IN_MAIN);
    let groups = SHARES.map(|bit| bytes(&sizes, &view.every, |every| every >> bit & 1 != 0));
    let mut values = vec![
        fit(total >> 3),
        share(view.total(1), total),
        fit(count as u32),
        share(view.total(2), total),
        fit(total.checked_div(count as u32).unwrap_or(0)),
    ];
    values.extend(contexts.map(|sum| share(sum, total)));
    values.push(fit(subject >> 3));
    values.push(fit(view.boxes.iter().filter(|stand| stand.tag == ARTICLE).count() as u32));
    values.extend(groups.map(|sum| share(sum, total)));
    for value in values {
        out.put((0..count).map(|_| value));
    }
}

/// Bytes of the lines that `of` is true of.
#[inline(always)]
fn bytes<T: Copy>(sizes: &[u32], column: &[T], of: impl Fn(T) -> bool) -> u32 {
    sizes.iter().zip(column).map(|(size, one)| size & u32::from(of(*one)).wrapping_neg()).sum()
}
