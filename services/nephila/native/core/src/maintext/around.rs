//! Columns of the surroundings of a line: lines of its template, boxes around it, the box with the most prose.

use hashbrown::HashMap;

use super::view::{distance, fit, of_each, share, Columns, View};

/// Boxes above the line's own that have columns.
const LEVELS: usize = 5;

/// The lines of one template: number, bytes, bytes in links, prose, first and last.
#[derive(Clone, Copy, Default)]
struct Alike {
    lines: u32,
    sums: [u32; 3],
    first: u32,
    last: u32,
}

impl Alike {
    #[inline(always)]
    fn columns(&self, count: u32) -> [i16; 6] {
        [
            fit(self.lines),
            fit(self.sums[0] / self.lines),
            share(self.sums[1], self.sums[0]),
            share(self.first, count),
            fit((self.last - self.first + 1) * 10 / self.lines),
            fit(self.sums[2] / self.lines),
        ]
    }
}

/// Of the lines of the same template: how many, how long, where.
#[inline(always)]
pub fn likes(out: &mut Columns, view: &View<'_>) {
    let count = view.lines.len();
    let mut numbers: HashMap<u64, u32, foldhash::fast::RandomState> = HashMap::default();
    let mut groups: Vec<Alike> = Vec::new();
    let mut mine = Vec::with_capacity(count);
    for (at, line) in view.lines.iter().enumerate() {
        let number = *numbers.entry(view.stand(line).key).or_insert_with(|| {
            groups.push(Alike { first: at as u32, ..Alike::default() });
            groups.len() as u32 - 1
        });
        let group = &mut groups[number as usize];
        group.lines += 1;
        group.sums[0] += line.len;
        group.sums[1] += line.link;
        group.sums[2] += view.prose[at] as u32;
        group.last = at as u32;
        mine.push(number);
    }
    let values = of_each(&groups, |group| group.columns(count as u32));
    let rows = of_each(&mine, |number| values[*number as usize]);
    for what in 0..6 {
        out.put(rows.iter().map(|row| row[what]));
    }
    let mut same = vec![0u32; view.texts.count];
    view.texts.of_lines.iter().for_each(|text| same[*text as usize] += 1);
    out.put(view.texts.of_lines.iter().map(|text| fit(same[*text as usize])));
}

/// Learnt scores of the class words of the box of a line, and of all boxes around it.
#[inline(always)]
pub fn scores(out: &mut Columns, view: &View<'_>) {
    let rows = of_each(view.lines, |line| {
        let stand = view.stand(line);
        let ([least, most], [path_least, path_most, sum]) = (stand.own_scores, stand.path_scores);
        [least, most, path_least, path_most, sum]
    });
    for what in 0..5 {
        out.put(rows.iter().map(|row| row[what]));
    }
}

/// Of the boxes around a line, and of the smallest that holds 30 % and 60 % of the prose.
#[inline(always)]
pub fn containers(out: &mut Columns, view: &View<'_>) {
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
    let measures = of_each(&spans, |span| measure(view, *span));
    let mut level = of_each(view.lines, |line| line.place);
    for _ in 0..LEVELS {
        for at in &mut level {
            *at = view.boxes[*at as usize].parent;
        }
        let rows = of_each(&level, |at| measures[*at as usize]);
        for what in 0..4 {
            out.put(rows.iter().map(|row| row[what]));
        }
    }
    for percent in [30, 60] {
        let (start, stop) = best(view, &spans, percent);
        out.put((0..count).map(|at| outside(at, start, stop)));
        let size = share(stop - start, count);
        out.put((0..count).map(|_| size));
    }
}

#[inline(always)]
fn measure(view: &View<'_>, (first, end): (u32, u32)) -> [i16; 4] {
    if first >= end {
        return [0; 4];
    }
    let (a, b) = (view.sums[first as usize], view.sums[end as usize]);
    let size = b[0] - a[0];
    [fit(size >> 3), share(b[1] - a[1], size), fit(end - first), share(b[2] - a[2], size)]
}

/// Lines of the smallest box (of equal ones the outermost) that holds so much of all prose.
fn best(view: &View<'_>, spans: &[(u32, u32)], percent: u64) -> (u32, u32) {
    let total = u64::from(view.total(2));
    let mut found = (0, view.lines.len() as u32);
    for (first, end) in spans {
        if first < end && end - first < found.1 - found.0 {
            let prose = view.sums[*end as usize][2] - view.sums[*first as usize][2];
            if total > 0 && 100 * u64::from(prose) >= percent * total {
                found = (*first, *end);
            }
        }
    }
    found
}

/// 0 inside, else lines to the near end: negative before it.
#[inline(always)]
fn outside(at: u32, start: u32, stop: u32) -> i16 {
    if at < start {
        distance(start, at)
    } else if at >= stop {
        distance(stop, at + 1)
    } else {
        0
    }
}
