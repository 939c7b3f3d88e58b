//! One queue's URLs in the order they are popped in: its heap and its slices, merged by sort key.

use super::disk::Disk;
use super::fault::Result;
use super::pending::Entry;
use super::run::{Frame, Window};
use super::slices::skip_dead;
use super::store::Slice;

pub enum Url<'a> {
    Memory(&'a Entry),
    Disk(&'a Frame<'a>),
}

impl Url<'_> {
    pub fn key(&self) -> u64 {
        match self {
            Url::Memory(entry) => entry.key,
            Url::Disk(frame) => frame.key,
        }
    }

    pub fn data(&self) -> &[u8] {
        match self {
            Url::Memory(entry) => &entry.data,
            Url::Disk(frame) => frame.data(),
        }
    }
}

/// Pass URLs to `each` until it returns false. `windows` has one for each slot. O(n log n).
pub fn merge(
    pending: &[&Entry],
    mut slices: Vec<Slice>,
    disk: &Disk,
    windows: &mut [Window],
    mut each: impl FnMut(Url<'_>) -> Result<bool>,
) -> Result<()> {
    let mut pending = pending.iter().copied().peekable();
    loop {
        let least = (0..slices.len()).min_by_key(|index| slices[*index].key);
        let memory = pending.peek().map(|entry| entry.key);
        let from_disk = match (memory, least) {
            (None, None) => return Ok(()),
            (Some(key), Some(index)) if slices[index].key < key => index,
            (None, Some(index)) => index,
            (Some(_), _) => {
                if let Some(entry) = pending.next() {
                    if !each(Url::Memory(entry))? {
                        return Ok(());
                    }
                }
                continue;
            }
        };
        let slice = &mut slices[from_disk];
        let window = &mut windows[slice.run as usize];
        let run = disk.run(slice.run);
        let frame = window.frame(run, slice.offset, slice.end)?;
        slice.offset += frame.whole.len() as u64;
        if !each(Url::Disk(&frame))? {
            return Ok(());
        }
        slice.live -= 1;
        if slice.live == 0 {
            slices.swap_remove(from_disk);
        } else {
            (slice.offset, slice.key) = skip_dead(run, window, slice.offset, slice.end)?;
        }
    }
}
