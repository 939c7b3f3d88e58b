//! Several runs as one, in key order: the newest run that has a key decides.

use std::path::PathBuf;
use std::sync::Arc;

use super::leaf::Key;
use super::run::{Outcome, Run, Section};

/// Keys given on at a time.
const CHUNK: usize = 4096;

struct Cursor {
    run: Arc<Run>,
    section: Section,
    /// Age of the run: the newest has the highest.
    age: usize,
    page: usize,
    keys: Vec<Key>,
    at: usize,
}

impl Cursor {
    /// At the first key from `first` on; None where there is none.
    fn new(run: &Arc<Run>, section: Section, age: usize, first: Key) -> Outcome<Option<Cursor>> {
        let page = run.page_for(section, first);
        if page >= run.pages(section) {
            return Ok(None);
        }
        let keys = run.page(section, page)?;
        let at = keys.partition_point(|key| *key < first);
        let mut cursor = Cursor { run: run.clone(), section, age, page, keys, at };
        Ok(cursor.settle()?.then_some(cursor))
    }

    /// Turn pages until there is a key; is there one?
    fn settle(&mut self) -> Outcome<bool> {
        while self.at >= self.keys.len() {
            self.page += 1;
            if self.page >= self.run.pages(self.section) {
                return Ok(false);
            }
            self.keys = self.run.page(self.section, self.page)?;
            self.at = 0;
        }
        Ok(true)
    }

    fn key(&self) -> Key {
        self.keys[self.at]
    }
}

/// Give each key from `first` to `last` that the runs (oldest first) mention to `take`, in order, with whether it is
/// there after all of them. O(n · runs).
pub fn scan(runs: &[Arc<Run>], first: Key, last: Key, take: &mut dyn FnMut(Key, bool) -> Outcome<()>) -> Outcome<()> {
    let mut cursors = Vec::new();
    for (age, run) in runs.iter().enumerate() {
        for section in [Section::Keys, Section::Removed] {
            cursors.extend(Cursor::new(run, section, age, first)?);
        }
    }
    let ranged = runs.iter().any(|run| !run.ranges.is_empty());
    while let Some(key) = cursors.iter().map(Cursor::key).min() {
        if key > last {
            break;
        }
        let (mut age, mut there) = (0, false);
        let mut index = 0;
        while index < cursors.len() {
            let cursor = &mut cursors[index];
            if cursor.key() == key {
                if cursor.age >= age {
                    (age, there) = (cursor.age, cursor.section == Section::Keys);
                }
                cursor.at += 1;
                if !cursor.settle()? {
                    cursors.swap_remove(index);
                    continue;
                }
            }
            index += 1;
        }
        let hidden = ranged && runs[age + 1..].iter().any(|run| run.range_covers(key));
        take(key, there && !hidden)?;
    }
    Ok(())
}

/// Is the key there after all of the runs? Reads a page of each run that may have it, newest first.
pub fn state(runs: &[Arc<Run>], key: Key) -> Outcome<bool> {
    for run in runs.iter().rev() {
        if let Some(there) = run.state(key)? {
            return Ok(there);
        }
    }
    Ok(false)
}

/// One run in place of several that follow each other; `oldest`: no run is older, so removals can be forgotten.
pub fn unite(runs: &[Arc<Run>], oldest: bool, path: PathBuf, number: u64) -> Outcome<Run> {
    let ranges: Vec<(Key, Key)> =
        if oldest { Vec::new() } else { runs.iter().flat_map(|run| run.ranges.clone()).collect() };
    let mut source = |write: &mut dyn FnMut(&[Key]) -> Outcome<()>| {
        let (mut chunk, mut removed) = (Vec::with_capacity(CHUNK), Vec::new());
        scan(runs, 0, Key::MAX, &mut |key, there| {
            if there {
                chunk.push(key);
            } else if !oldest {
                removed.push(key);
            }
            if chunk.len() == CHUNK {
                write(&chunk)?;
                chunk.clear();
            }
            Ok(())
        })?;
        write(&chunk)?;
        Ok(removed)
    };
    Run::write(path, number, &mut source, &ranges)
}

/// Where the newest runs that are worth uniting begin, if more than `most` are there: as many as are, together, larger
/// than the next older one (size tiers: each key is written again O(log n) times).
pub fn worth_uniting(sizes: &[u64], most: usize) -> Option<usize> {
    if sizes.len() <= most {
        return None;
    }
    let mut start = sizes.len() - 2;
    let mut sum = sizes[start] + sizes[start + 1];
    while start > 0 && sizes[start - 1] <= sum {
        start -= 1;
        sum += sizes[start];
    }
    Some(start)
}
