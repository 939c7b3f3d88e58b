//! Sections of a reference are main text as a whole: of each function the model takes the sentence that describes it, and
//! leaves its name, its signature, its parameters and its example, which are short, are no sentences, and repeat
//! themselves from section to section.

use hashbrown::HashMap;

use crate::boxes::Box;
use crate::tags::F_HEADING;
use crate::text::Line;

use super::heading::is_content;

/// Bytes of a heading, and of a line between it and the text.
const LONGEST: u32 = 400;
/// Bytes of the first line of text.
const LEAST_BYTES: u32 = 40;
/// Lines between a heading and the text.
const MOST_LINES: usize = 3;
/// Sections of one template that a reference has.
const LEAST_SECTIONS: usize = 6;
/// Boxes that are climbed from a line to its section.
const MOST_LEVELS: u32 = 12;

/// A heading with the lines behind it, up to the next heading or to the end of the box around it.
struct Section {
    begin: usize,
    end: usize,
}

/// Keep sections whose text begins with a kept line, where the page has many of one template. What follows the last kept
/// line is kept where another section follows: the last section may run into the foot of the page. O(lines).
pub fn complete(kept: &mut Vec<u32>, lines: &[Line], boxes: &[Box]) {
    let mut is_kept = vec![false; lines.len()];
    kept.iter().for_each(|at| is_kept[*at as usize] = true);
    let mut templates: HashMap<u64, Vec<Section>, foldhash::fast::RandomState> = HashMap::default();
    let mut begin = 0;
    while begin < lines.len() {
        let end = begin + 1 + length(&lines[begin..], boxes);
        if is_name(&lines[begin]) && begins_with_text(&lines[begin + 1..end], &is_kept[begin + 1..end]) {
            templates.entry(key(&lines[begin], boxes)).or_default().push(Section { begin, end });
        }
        begin = end;
    }
    let before = kept.len();
    for (template, sections) in templates.iter().filter(|(_, sections)| sections.len() >= LEAST_SECTIONS) {
        for section in sections {
            let is_followed = lines.get(section.end).is_some_and(|line| key(line, boxes) == *template);
            let rest = (section.begin..section.end).rev().skip_while(|at| !is_followed && !is_kept[*at]);
            kept.extend(rest.filter(|at| !is_kept[*at] && is_content(&lines[*at])).map(|at| at as u32));
        }
    }
    if kept.len() > before {
        kept.sort_unstable();
    }
}

fn key(line: &Line, boxes: &[Box]) -> u64 {
    boxes[line.place as usize].key
}

/// Whether a line can be the name of a section.
fn is_name(line: &Line) -> bool {
    line.flags & F_HEADING != 0 && line.len <= LONGEST && 2 * line.link < line.len && is_content(line)
}

/// Lines behind the first that belong to its section; 0 if the first is no heading.
fn length(lines: &[Line], boxes: &[Box]) -> usize {
    if lines[0].flags & F_HEADING == 0 {
        return 0;
    }
    let around = boxes[lines[0].place as usize].parent;
    lines[1..].iter().take_while(|line| line.flags & F_HEADING == 0 && is_within(line.place, around, boxes)).count()
}

fn is_within(mut place: u32, around: u32, boxes: &[Box]) -> bool {
    for _ in 0..MOST_LEVELS {
        if place == around {
            return true;
        }
        if boxes[place as usize].depth <= boxes[around as usize].depth {
            return false;
        }
        place = boxes[place as usize].parent;
    }
    false
}

/// Whether the first kept line of a section is text, and stands behind few lines, none of them long.
fn begins_with_text(lines: &[Line], is_kept: &[bool]) -> bool {
    let first = is_kept.iter().take(MOST_LINES + 1).position(|kept| *kept);
    first.is_some_and(|first| {
        lines[first].len >= LEAST_BYTES && lines[..first].iter().all(|line| line.len <= LONGEST && is_content(line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tags::{F_CHROME, F_PRE};

    /// Boxes and lines of so many functions: in a section each a heading, a signature, a description, and code. Then a
    /// line of the foot.
    fn reference(functions: u32) -> (Vec<Line>, Vec<Box>) {
        let (mut lines, mut boxes) = (Vec::new(), vec![Box::default()]);
        let mut add = |len, flags, place| lines.push(Line { len, flags, place, ..Line::default() });
        for _ in 0..functions {
            let section = boxes.len() as u32;
            boxes.push(Box { depth: 1, key: 1, ..Box::default() });
            boxes.push(Box { parent: section, depth: 2, key: 2, ..Box::default() });
            boxes.push(Box { parent: section, depth: 2, key: 3, ..Box::default() });
            add(5, F_HEADING, section + 1);
            add(30, 0, section + 2);
            add(80, 0, section + 2);
            add(20, F_PRE, section + 2);
        }
        add(60, F_CHROME, 0);
        (lines, boxes)
    }

    /// The kept lines, where the descriptions were.
    fn kept(functions: u32) -> Vec<u32> {
        let (lines, boxes) = reference(functions);
        let mut kept: Vec<u32> = (0..functions).map(|number| 4 * number + 2).collect();
        complete(&mut kept, &lines, &boxes);
        kept
    }

    #[test]
    fn sections_of_a_reference_are_kept_as_a_whole() {
        // But for what follows the last description: the last section has no other behind it.
        assert_eq!(kept(8), (0..31).collect::<Vec<u32>>());
    }

    #[test]
    fn a_few_sections_are_no_reference() {
        assert_eq!(kept(5), [2, 6, 10, 14, 18]);
    }

    #[test]
    fn a_section_whose_text_is_left_out_stays_out() {
        let (lines, boxes) = reference(9);
        let mut kept: Vec<u32> = (1..9).map(|number| 4 * number + 2).collect();
        complete(&mut kept, &lines, &boxes);
        assert_eq!(kept.first(), Some(&4));
    }
}
