//! Run files: queued URLs and state blobs as framed entries, immutable once they have their name.
//!
//! An entry is CRC-32 of the rest, length, sort key (0 for a blob), data: checked whenever its data is read. Invariant
//! of a `Run`: `bytes_left` is the sum of the places in it that slices and blobs still refer to.

use std::collections::BTreeSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::fault::{damaged, on, opened, wrong, Result};
use super::files::{self, HEAD, RUN_END, RUN_MAGIC};

/// Bytes of an entry before its data.
pub const ENTRY: u64 = 16;
pub const START: u64 = HEAD as u64 + 12;
pub const END: u64 = 36;
/// Bytes read where nothing near was read before.
const JUMP: usize = 256;

pub struct Run {
    pub number: u32,
    pub bytes: u64,
    pub id: u64,
    pub path: PathBuf,
    file: File,
    pub bytes_left: u64,
    /// Offsets of entries that were taken out of order and that their slice has not passed yet.
    pub dead: BTreeSet<u64>,
}

fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

fn u64_at(data: &[u8], at: usize) -> u64 {
    u64::from(u32_at(data, at)) | u64::from(u32_at(data, at + 4)) << 32
}

impl Run {
    /// Open a run that must have this size and id. Its entries are checked when they are read.
    pub fn open(directory: &Path, number: u32, bytes: u64, id: u64) -> Result<Run> {
        let path = files::path_of(directory, number, "run");
        let file = opened(&path, File::open(&path))?;
        let size = on(&path, file.metadata())?.len();
        let mut start = [0; START as usize];
        let got = on(&path, files::read_at(&file, &mut start, 0))?;
        files::check_head(&path, &start[..got.min(HEAD)], RUN_MAGIC)?;
        let mut end = [0; END as usize];
        if size != bytes || size < START + END || on(&path, files::read_at(&file, &mut end, size - END))? < end.len() {
            return damaged(&path, size);
        }
        if crc32fast::hash(&end[..32]) != u32_at(&end, 32) {
            return damaged(&path, size - 4);
        }
        if &end[..8] != RUN_END || u64_at(&end, 16) != bytes || u64_at(&end, 24) != id || u64_at(&start, 16) != id {
            return wrong(format!("{} belongs to another host store; restore it from a backup", path.display()));
        }
        Ok(Run { number, bytes, id, path, file, bytes_left: 0, dead: BTreeSet::new() })
    }

    /// Forget the tombstones of a range without references.
    pub fn bury(&mut self, from: u64, to: u64) {
        if self.dead.is_empty() {
            return;
        }
        let passed: Vec<u64> = self.dead.range(from..to).copied().collect();
        for offset in passed {
            self.dead.remove(&offset);
        }
    }
}

/// One entry of a run: its frame and its content.
pub struct Frame<'a> {
    pub key: u64,
    pub whole: &'a [u8],
}

impl Frame<'_> {
    pub fn data(&self) -> &[u8] {
        &self.whole[ENTRY as usize..]
    }
}

/// A piece of one run in memory, so that neighbours are read in one call.
pub struct Window {
    buffer: Vec<u8>,
    chunk: usize,
    run: u32,
    start: u64,
    filled: usize,
}

impl Window {
    pub fn new(chunk: usize) -> Window {
        Window { buffer: Vec::new(), chunk, run: u32::MAX, start: 0, filled: 0 }
    }

    /// `length` bytes at an offset that end at or before `end`.
    fn bytes(&mut self, run: &Run, offset: u64, length: u64, end: u64) -> Result<&[u8]> {
        if offset.checked_add(length).is_none_or(|last| last > end) {
            return damaged(&run.path, offset);
        }
        let here = run.number == self.run && offset >= self.start;
        if !here || offset + length > self.start + self.filled as u64 {
            self.fill(run, offset, length as usize)?;
        }
        let from = (offset - self.start) as usize;
        Ok(&self.buffer[from..from + length as usize])
    }

    fn fill(&mut self, run: &Run, offset: u64, length: usize) -> Result<()> {
        // A jump reads a URL or a few; what goes on where the last piece ended reads a whole chunk.
        let on_the_way = run.number == self.run && (self.start..=self.start + self.filled as u64).contains(&offset);
        let wanted = length.max(if on_the_way { self.chunk } else { self.chunk.min(JUMP) });
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        self.run = u32::MAX;
        let got = on(&run.path, files::read_at(&run.file, &mut self.buffer[..wanted], offset))?;
        if got < length {
            return damaged(&run.path, offset);
        }
        (self.run, self.start, self.filled) = (run.number, offset, got);
        if self.buffer.len() > self.chunk.max(1 << 17) {
            self.buffer.truncate(got);
            self.buffer.shrink_to_fit();
        }
        Ok(())
    }

    /// The sort key and the length of the frame at an offset.
    pub fn key_at(&mut self, run: &Run, offset: u64, end: u64) -> Result<(u64, u64)> {
        let header = self.bytes(run, offset, ENTRY, end)?;
        Ok((u64_at(header, 8), ENTRY + u64::from(u32_at(header, 4))))
    }

    /// The entry at an offset, checked.
    pub fn frame(&mut self, run: &Run, offset: u64, end: u64) -> Result<Frame<'_>> {
        let (key, length) = self.key_at(run, offset, end)?;
        let whole = self.bytes(run, offset, length, end)?;
        if crc32fast::hash(&whole[4..]) != u32_at(whole, 0) {
            return damaged(&run.path, offset);
        }
        Ok(Frame { key, whole })
    }
}

/// Appends entries to a run; `at` is where the next one begins.
pub struct Writer<'a, W: Write> {
    file: &'a mut W,
    path: &'a Path,
    pub at: u64,
    pub entries: u64,
    pub id: u64,
}

impl<'a, W: Write> Writer<'a, W> {
    pub fn new(file: &'a mut W, path: &'a Path) -> Result<Self> {
        let id = RandomState::new().hash_one(path);
        let mut start = [0; START as usize];
        start[..HEAD].copy_from_slice(&files::head(RUN_MAGIC));
        start[16..].copy_from_slice(&id.to_le_bytes());
        on(path, file.write_all(&start))?;
        Ok(Writer { file, path, at: START, entries: 0, id })
    }

    pub fn add(&mut self, key: u64, data: &[u8]) -> Result<()> {
        let mut header = [0; ENTRY as usize];
        header[4..8].copy_from_slice(&(data.len() as u32).to_le_bytes());
        header[8..].copy_from_slice(&key.to_le_bytes());
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header[4..]);
        crc.update(data);
        header[..4].copy_from_slice(&crc.finalize().to_le_bytes());
        on(self.path, self.file.write_all(&header))?;
        on(self.path, self.file.write_all(data))?;
        self.count(ENTRY + data.len() as u64);
        Ok(())
    }

    /// An entry as another run had it.
    pub fn copy(&mut self, frame: &Frame<'_>) -> Result<()> {
        on(self.path, self.file.write_all(frame.whole))?;
        self.count(frame.whole.len() as u64);
        Ok(())
    }

    fn count(&mut self, bytes: u64) {
        self.at += bytes;
        self.entries += 1;
    }

    /// Write the end; the bytes of the file.
    pub fn finish(self) -> Result<u64> {
        let size = self.at + END;
        let mut end = Vec::with_capacity(END as usize);
        end.extend_from_slice(RUN_END);
        for value in [self.entries, size, self.id] {
            end.extend_from_slice(&value.to_le_bytes());
        }
        end.extend_from_slice(&crc32fast::hash(&end).to_le_bytes());
        on(self.path, self.file.write_all(&end))?;
        Ok(size)
    }
}
