//! Checkpoints: new URLs, changed blobs and the runs that the tiers choose become one run; then the table is written.
//!
//! Invariant: until a file has its name nothing in memory changes, so a full disk leaves the store as it was. Hosts are
//! written in the order of their ids, and ids keep that order through a restore: every merge reads its runs forwards.
//! A merge of more than a checkpoint's share stops at a host, and the next checkpoint continues there: pauses are
//! bounded.

use std::io::Write;
use std::path::Path;

use super::fault::Result;
use super::files;
use super::merge::{merge, Url};
use super::pending::ordered;
use super::run::{Run, Window, Writer};
use super::slab::NONE;
use super::store::{Blob, Queue, Slice, Store, LONGEST};
use super::table;
use super::tiers::{self, Size};

/// A merge reads each run in pieces of this size.
const CHUNK: usize = 4 * LONGEST;

/// A run that was written, and who has what in it.
#[derive(Default)]
struct Made {
    bytes: u64,
    id: u64,
    /// Queue, its slice, and whether that holds what it had in the chosen runs.
    slices: Vec<(u32, Slice, bool)>,
    blobs: Vec<(u32, u64, u32)>,
    /// Bytes of older runs in it.
    merged: u64,
    /// The first host whose share of the chosen runs has to wait, or 0.
    stopped: u32,
}

impl Store {
    /// Write what is only in memory; the manifest. O(new + merged + hosts).
    pub fn checkpoint(&mut self) -> Result<Vec<u8>> {
        let (directory, number) = self.disk.next()?;
        self.disk.close_empty();
        let sizes = self.disk.runs().map(|(slot, run)| Size { slot, left: run.bytes_left, bytes: run.bytes });
        let chosen = tiers::choose(sizes, self.fresh_bytes);
        if self.fresh_bytes > 0 || !chosen.is_empty() {
            let path = files::path_of(&directory, number, "run");
            let share = if self.disk.runs().count() < tiers::CROWDED { self.merge_bytes } else { u64::MAX };
            let made = files::write(&path, |file| self.write_run(file, &path, &chosen, share))?;
            let run = Run::open(&directory, number, made.bytes, made.id)?;
            self.disk.written_bytes += made.bytes;
            self.adopt(run, made, &chosen);
        }
        let path = files::path_of(&directory, number, "hosts");
        let (bytes, checksum) = files::write(&path, |file| table::write(self, file, &path))?;
        self.disk.written_bytes += bytes;
        self.disk.name(path);
        Ok(table::manifest(number, bytes, checksum))
    }

    fn write_run<W: Write>(&self, file: &mut W, path: &Path, chosen: &[u16], share: u64) -> Result<Made> {
        let mut writer = Writer::new(file, path)?;
        let mut windows: Vec<Window> = (0..self.disk.slots()).map(|_| Window::new(CHUNK)).collect();
        let mut made = Made::default();
        for id in self.names.alive() {
            let host = &self.hosts[id as usize];
            let mut from = chosen;
            if id < self.merged_to || made.merged >= share {
                from = &[];
                if id >= self.merged_to && made.stopped == 0 {
                    made.stopped = id;
                }
            }
            self.write_blob(id, from, &mut windows, &mut writer, &mut made)?;
            let mut at = host.first;
            while at != NONE {
                let queue = &self.queues[at];
                self.write_queue(at, queue, from, &mut windows, &mut writer, &mut made)?;
                at = queue.next;
            }
        }
        made.id = writer.id;
        made.bytes = writer.finish()?;
        Ok(made)
    }

    fn write_blob<W: Write>(
        &self,
        id: u32,
        chosen: &[u16],
        windows: &mut [Window],
        writer: &mut Writer<'_, W>,
        made: &mut Made,
    ) -> Result<()> {
        let start = writer.at;
        match self.blob(id) {
            Some(Blob::Memory(bytes)) => writer.add(0, bytes)?,
            Some(Blob::Disk { run, length, offset }) if chosen.contains(run) => {
                let end = offset + u64::from(*length);
                writer.copy(&windows[*run as usize].frame(self.disk.run(*run), *offset, end)?)?;
                made.merged += u64::from(*length);
            }
            _ => return Ok(()),
        }
        made.blobs.push((id, start, (writer.at - start) as u32));
        Ok(())
    }

    fn write_queue<W: Write>(
        &self,
        index: u32,
        queue: &Queue,
        chosen: &[u16],
        windows: &mut [Window],
        writer: &mut Writer<'_, W>,
        made: &mut Made,
    ) -> Result<()> {
        if queue.pending == NONE && chosen.is_empty() {
            return Ok(());
        }
        let slices = self.slices_of(queue).map(|slice| self.slices[slice]);
        let slices: Vec<Slice> = slices.filter(|slice| chosen.contains(&slice.run)).collect();
        made.merged += slices.iter().map(|slice| slice.end - slice.offset).sum::<u64>();
        let mut slice = Slice { offset: writer.at, end: 0, key: 0, live: 0, next: NONE, run: 0 };
        merge(&ordered(self.pending(queue)), slices, &self.disk, windows, |url| {
            if slice.live == 0 {
                slice.key = url.key();
            }
            slice.live += 1;
            match url {
                Url::Memory(entry) => writer.add(entry.key, &entry.data)?,
                Url::Disk(frame) => writer.copy(frame)?,
            }
            Ok(true)
        })?;
        slice.end = writer.at;
        if slice.live > 0 {
            made.slices.push((index, slice, !chosen.is_empty()));
        }
        Ok(())
    }

    /// From here on what was written is read from the new run.
    fn adopt(&mut self, run: Run, made: Made, chosen: &[u16]) {
        let slot = self.disk.add(run);
        for (index, slice, merged) in made.slices {
            self.drop_pending(index);
            let slices = self.slices_of(&self.queues[index]).filter(|_| merged);
            let old: Vec<u32> = slices.filter(|slice| chosen.contains(&self.slices[*slice].run)).collect();
            for slice in old {
                self.remove_slice(index, slice);
            }
            self.add_slice(index, Slice { run: slot, ..slice });
        }
        for (host, offset, length) in made.blobs {
            self.disk.run_mut(slot).bytes_left += u64::from(length);
            let blob = Blob::Disk { run: slot, length, offset };
            let index = self.hosts[host as usize].blob;
            if let Blob::Disk { run, length, .. } = std::mem::replace(&mut self.blobs[index], blob) {
                self.disk.run_mut(run).bytes_left -= u64::from(length);
            }
        }
        self.fresh_urls = 0;
        self.fresh_blobs = 0;
        self.fresh_bytes = 0;
        self.merged_to = made.stopped;
        self.disk.close_empty();
    }
}
