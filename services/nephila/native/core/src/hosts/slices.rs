//! The part of a queue that is in runs: slices, consumed from their front, with tombstones for URLs taken from their
//! middle.
//!
//! Invariant: slices of a queue are linked by rising key of their first living entry. A fault while reading changes
//! nothing.

use super::fault::Result;
use super::run::{Run, Window, ENTRY};
use super::slab::NONE;
use super::store::{Slice, Store, KEY};

impl Store {
    /// The first URL of a slice.
    pub fn read(&mut self, slice: u32) -> Result<Vec<u8>> {
        let Slice { run, offset, end, .. } = self.slices[slice];
        Ok(self.window.frame(self.disk.run(run), offset, end)?.data().to_vec())
    }

    /// Pass the first entry of a slice, and the tombstones behind it. On a fault nothing has changed.
    pub fn advance(&mut self, queue: u32, slice: u32, length: u64) -> Result<()> {
        let old = self.slices[slice];
        if old.live == 1 {
            self.remove_slice(queue, slice);
            return Ok(());
        }
        let run = self.disk.run(old.run);
        let (offset, key) = skip_dead(run, &mut self.window, old.offset + length, old.end)?;
        let run = self.disk.run_mut(old.run);
        run.bytes_left -= offset - old.offset;
        run.bury(old.offset, offset);
        self.slices[slice] = Slice { offset, key, live: old.live - 1, ..old };
        if old.next != NONE && self.slices[old.next].key < key {
            self.detach(queue, slice);
            self.attach(queue, slice);
        }
        Ok(())
    }

    pub fn remove_slice(&mut self, queue: u32, slice: u32) {
        let old = self.slices[slice];
        let run = self.disk.run_mut(old.run);
        run.bytes_left -= old.end - old.offset;
        run.bury(old.offset, old.end);
        self.detach(queue, slice);
        self.slices.remove(slice);
    }

    /// Into the list of its queue, by sort key.
    fn attach(&mut self, queue: u32, slice: u32) {
        let key = self.slices[slice].key;
        let (mut before, mut at) = (NONE, self.queues[queue].slices);
        while at != NONE && self.slices[at].key < key {
            (before, at) = (at, self.slices[at].next);
        }
        self.slices[slice].next = at;
        self.lead(queue, before, slice);
    }

    fn detach(&mut self, queue: u32, slice: u32) {
        let (mut before, mut at) = (NONE, self.queues[queue].slices);
        while at != slice {
            (before, at) = (at, self.slices[at].next);
        }
        self.lead(queue, before, self.slices[slice].next);
    }

    fn lead(&mut self, queue: u32, before: u32, slice: u32) {
        match before {
            NONE => self.queues[queue].slices = slice,
            _ => self.slices[before].next = slice,
        }
    }

    pub fn add_slice(&mut self, queue: u32, slice: Slice) {
        self.disk.run_mut(slice.run).bytes_left += slice.end - slice.offset;
        let index = self.slices.add(slice);
        self.attach(queue, index);
    }

    pub fn take_from(&mut self, queue: u32, slice: u32, url_key: &[u8], most: usize) -> Result<Option<Vec<u8>>> {
        let old = self.slices[slice];
        let run = self.disk.run(old.run);
        let (mut at, mut seen) = (old.offset, 0);
        let mut packed = None;
        while at < old.end && seen < most {
            let frame = self.window.frame(run, at, old.end)?;
            if frame.data().get(..KEY) == Some(url_key) && !run.dead.contains(&at) {
                packed = Some(frame.data().to_vec());
                break;
            }
            at += frame.whole.len() as u64;
            seen += 1;
        }
        let Some(packed) = packed else { return Ok(None) };
        if at == old.offset {
            self.advance(queue, slice, ENTRY + packed.len() as u64)?;
        } else {
            self.disk.run_mut(old.run).dead.insert(at);
            self.slices[slice].live -= 1;
        }
        Ok(Some(packed))
    }
}

/// The first living entry at or behind an offset: where it is and its sort key.
pub fn skip_dead(run: &Run, window: &mut Window, mut offset: u64, end: u64) -> Result<(u64, u64)> {
    loop {
        let (key, length) = window.key_at(run, offset, end)?;
        if run.dead.is_empty() || !run.dead.contains(&offset) {
            return Ok((offset, key));
        }
        offset += length;
    }
}
