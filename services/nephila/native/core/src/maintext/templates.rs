//! Lines of one template belong together: of the entries of a list the model takes some and leaves others, although they
//! differ in nothing but their words.

use hashbrown::HashMap;

use crate::boxes::Box;
use crate::text::Line;

/// Lines of a template; in a smaller one each line may mean something else.
const LEAST_LINES: u32 = 8;

/// The lines of one template.
#[derive(Clone, Copy, Default)]
struct Template {
    lines: u32,
    bytes: u64,
    taken: u64,
}

/// Take all lines of a template of which half of the text is taken, where `least` is the entry of `CHANCES` from which on
/// lines are. O(lines).
pub fn complete(found: &mut [u8], lines: &[Line], boxes: &[Box], least: usize) {
    let key = |line: &Line| boxes[line.place as usize].key;
    let mut templates: HashMap<u64, Template, foldhash::fast::RandomState> = HashMap::default();
    for (entry, line) in found.iter().zip(lines) {
        let template = templates.entry(key(line)).or_default();
        template.lines += 1;
        template.bytes += u64::from(line.len);
        template.taken += if usize::from(*entry) >= least { u64::from(line.len) } else { 0 };
    }
    for (entry, line) in found.iter_mut().zip(lines).filter(|(entry, _)| usize::from(**entry) < least) {
        let template = templates[&key(line)];
        if template.lines >= LEAST_LINES && 2 * template.taken >= template.bytes {
            *entry = least as u8;
        }
    }
}
