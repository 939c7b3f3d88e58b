//! A run: an immutable file of sorted keys, with what was removed when it was written.
//!
//! Layout (integers little-endian, keys as their 16 bytes): magic, version u32, 0 u32 · keys · removed keys · removed
//! ranges (first and last key) · a row for each page of 4,096 bytes of each of the three (first key, CRC-32) · foot:
//! three counts u64, CRC-32 of the rows, version u32, magic. The size follows from the counts, so a torn file is seen
//! at once; every page is compared with its CRC-32 when it is read. Meaning of a run: first the ranges are removed,
//! then the removed keys, then its keys are added; a newer run overrides it.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::leaf::Key;

pub const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"NEPHSEEN";
const HEAD: u64 = 16;
const FOOT: usize = 40;
const ROW: usize = 20;
const PAGE: usize = 4096;

/// What a run file is known by: enough to refuse any other file under its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamp {
    pub number: u64,
    pub counts: [u64; 3],
    pub crc: u32,
}

/// Why a file could not be used.
#[derive(Debug)]
pub enum Trouble {
    /// The content is wrong: one line that names the file and the damage.
    Damage(String),
    Disk(String, std::io::Error),
}

pub type Outcome<T> = Result<T, Trouble>;

fn disk(path: &Path) -> impl FnOnce(std::io::Error) -> Trouble + '_ {
    move |error| Trouble::Disk(path.display().to_string(), error)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Keys = 0,
    Removed = 1,
    Ranges = 2,
}

/// Bytes of a record, by section.
const RECORD: [u64; 3] = [16, 16, 32];

pub struct Run {
    pub stamp: Stamp,
    pub path: PathBuf,
    file: File,
    /// First key and CRC-32 of each page, by section.
    rows: [Vec<(Key, u32)>; 3],
    /// Sorted, and apart from each other.
    pub ranges: Vec<(Key, Key)>,
    pub synced: std::sync::atomic::AtomicBool,
}

/// Gives sorted keys, piece by piece, to the function it is called with, and returns the sorted removed keys.
pub type Source<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&[Key]) -> Outcome<()>) -> Outcome<Vec<Key>>;

pub fn path_of(directory: &Path, name: &str, number: u64) -> PathBuf {
    directory.join(format!("seen-{name}-{number:08}.run"))
}

impl Stamp {
    fn pages(&self, section: usize) -> u64 {
        (self.counts[section] * RECORD[section]).div_ceil(PAGE as u64)
    }

    fn body(&self, section: usize) -> u64 {
        HEAD + (0..section).map(|before| self.counts[before] * RECORD[before]).sum::<u64>()
    }

    fn size(&self) -> u64 {
        self.body(3) + (0..3).map(|section| self.pages(section)).sum::<u64>() * ROW as u64 + FOOT as u64
    }
}

impl Run {
    /// Write a run and make it durable no further than the operating system; `sync` does the rest.
    pub fn write(path: PathBuf, number: u64, keys: Source, ranges: &[(Key, Key)]) -> Outcome<Run> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).map_err(disk(&path))?;
        let written = Writer::new(&file).fill(&path, number, keys, ranges);
        match written {
            Ok((stamp, rows, ranges)) => Ok(Run { stamp, path, file, rows, ranges, synced: false.into() }),
            Err(trouble) => {
                let _ = std::fs::remove_file(&path);
                Err(trouble)
            }
        }
    }

    /// Open a run and compare it with its stamp; the pages are compared when they are read.
    pub fn open(path: PathBuf, stamp: Stamp) -> Outcome<Run> {
        let damage = |what: String| Trouble::Damage(format!("{}: {what}", path.display()));
        let file = match File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(damage("missing".into())),
            other => other.map_err(disk(&path))?,
        };
        let size = file.metadata().map_err(disk(&path))?.len();
        if size != stamp.size() {
            return Err(damage(format!("torn: {size} bytes, not {}", stamp.size())));
        }
        let mut foot = [0; FOOT];
        file.read_exact_at(&mut foot, size - FOOT as u64).map_err(disk(&path))?;
        let version = u32::from_le_bytes(foot[28..32].try_into().unwrap());
        if &foot[32..] != MAGIC {
            return Err(damage("not a run of the trie".into()));
        }
        if version != VERSION {
            return Err(damage(format!("version {version}, this program reads {VERSION}")));
        }
        let pages = [0, 1, 2].map(|section| stamp.pages(section) as usize);
        let mut table = vec![0; pages.iter().sum::<usize>() * ROW];
        file.read_exact_at(&mut table, stamp.body(3)).map_err(disk(&path))?;
        if foot[..28] != foot_of(&stamp)[..28] || crc32fast::hash(&table) != stamp.crc {
            return Err(damage("wrong checksum of its table".into()));
        }
        let mut rows =
            table.chunks_exact(ROW).map(|row| (key_at(row), u32::from_le_bytes(row[16..].try_into().unwrap())));
        let rows = pages.map(|count| rows.by_ref().take(count).collect());
        let mut run = Run { stamp, path, file, rows, ranges: Vec::new(), synced: true.into() };
        for page in 0..pages[2] {
            let bytes = run.read(Section::Ranges, page)?;
            run.ranges.extend(bytes.chunks_exact(32).map(|range| (key_at(range), key_at(&range[16..]))));
        }
        Ok(run)
    }

    /// Make the file durable; the directory is the caller's.
    pub fn sync(&self) -> Outcome<()> {
        if !self.synced.load(std::sync::atomic::Ordering::Relaxed) {
            self.file.sync_all().map_err(disk(&self.path))?;
            self.synced.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    }

    pub fn pages(&self, section: Section) -> usize {
        self.rows[section as usize].len()
    }

    fn read(&self, section: Section, page: usize) -> Outcome<Vec<u8>> {
        let at = section as usize;
        let rest = (self.stamp.counts[at] * RECORD[at]) as usize - page * PAGE;
        let mut bytes = vec![0; rest.min(PAGE)];
        let from = self.stamp.body(at) + (page * PAGE) as u64;
        self.file.read_exact_at(&mut bytes, from).map_err(disk(&self.path))?;
        if crc32fast::hash(&bytes) != self.rows[at][page].1 {
            return Err(Trouble::Damage(format!("{}: wrong checksum at byte {from}", self.path.display())));
        }
        Ok(bytes)
    }

    /// The sorted keys of a page.
    pub fn page(&self, section: Section, page: usize) -> Outcome<Vec<Key>> {
        Ok(self.read(section, page)?.chunks_exact(16).map(key_at).collect())
    }

    /// The last page that begins at or before a key; 0 if none does.
    pub fn page_for(&self, section: Section, key: Key) -> usize {
        self.rows[section as usize].partition_point(|(first, _)| *first <= key).saturating_sub(1)
    }

    fn has(&self, section: Section, key: Key) -> Outcome<bool> {
        if self.rows[section as usize].first().is_none_or(|(first, _)| key < *first) {
            return Ok(false);
        }
        Ok(self.page(section, self.page_for(section, key))?.binary_search(&key).is_ok())
    }

    /// Does a removed range cover the key?
    pub fn range_covers(&self, key: Key) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= key);
        after > 0 && key <= self.ranges[after - 1].1
    }

    /// Whether this run adds or removes a key, if it has it.
    pub fn state(&self, key: Key) -> Outcome<Option<bool>> {
        if self.has(Section::Keys, key)? {
            return Ok(Some(true));
        }
        if self.range_covers(key) || self.has(Section::Removed, key)? {
            return Ok(Some(false));
        }
        Ok(None)
    }

    pub fn nbytes(&self) -> usize {
        self.rows.iter().map(|rows| rows.capacity() * 32).sum::<usize>()
            + self.ranges.capacity() * 32
            + std::mem::size_of::<Self>()
    }
}

pub fn key_at(bytes: &[u8]) -> Key {
    Key::from_be_bytes(bytes[..16].try_into().unwrap())
}

/// The same ranges, sorted and apart from each other.
fn united(ranges: &[(Key, Key)]) -> Vec<(Key, Key)> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    let mut apart: Vec<(Key, Key)> = Vec::with_capacity(sorted.len());
    for (first, last) in sorted {
        match apart.last_mut() {
            Some(before) if first <= before.1 => before.1 = before.1.max(last),
            _ => apart.push((first, last)),
        }
    }
    apart
}

fn foot_of(stamp: &Stamp) -> [u8; FOOT] {
    let mut foot = [0; FOOT];
    for (place, count) in foot.chunks_exact_mut(8).zip(stamp.counts) {
        place.copy_from_slice(&count.to_le_bytes());
    }
    foot[24..28].copy_from_slice(&stamp.crc.to_le_bytes());
    foot[28..32].copy_from_slice(&VERSION.to_le_bytes());
    foot[32..].copy_from_slice(MAGIC);
    foot
}

type Written = (Stamp, [Vec<(Key, u32)>; 3], Vec<(Key, Key)>);

struct Writer<'a> {
    out: BufWriter<&'a File>,
    page: Vec<u8>,
    rows: [Vec<(Key, u32)>; 3],
    counts: [u64; 3],
}

impl<'a> Writer<'a> {
    fn new(file: &'a File) -> Self {
        let out = BufWriter::with_capacity(1 << 16, file);
        Writer { out, page: Vec::with_capacity(PAGE), rows: Default::default(), counts: [0; 3] }
    }

    fn fill(mut self, path: &Path, number: u64, keys: Source, ranges: &[(Key, Key)]) -> Outcome<Written> {
        let mut head = [0; HEAD as usize];
        head[..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        self.out.write_all(&head).map_err(disk(path))?;
        let removed = keys(&mut |keys| self.section(Section::Keys, keys).map_err(disk(path)))?;
        self.end_page(Section::Keys).map_err(disk(path))?;
        self.section(Section::Removed, &removed).map_err(disk(path))?;
        self.end_page(Section::Removed).map_err(disk(path))?;
        let ranges = united(ranges);
        for (first, last) in &ranges {
            self.section(Section::Ranges, &[*first]).map_err(disk(path))?;
            self.page.extend(last.to_be_bytes());
        }
        self.end_page(Section::Ranges).map_err(disk(path))?;
        let rows = self.rows.iter().flatten();
        let table: Vec<u8> =
            rows.flat_map(|(key, crc)| [&key.to_be_bytes()[..], &crc.to_le_bytes()].concat()).collect();
        let stamp = Stamp { number, counts: self.counts, crc: crc32fast::hash(&table) };
        self.out.write_all(&table).map_err(disk(path))?;
        self.out.write_all(&foot_of(&stamp)).map_err(disk(path))?;
        self.out.flush().map_err(disk(path))?;
        drop(self.out);
        Ok((stamp, self.rows, ranges))
    }

    fn section(&mut self, section: Section, keys: &[Key]) -> std::io::Result<()> {
        for key in keys {
            if self.page.len() >= PAGE {
                self.end_page(section)?;
            }
            if self.page.is_empty() {
                self.rows[section as usize].push((*key, 0));
            }
            self.page.extend(key.to_be_bytes());
        }
        self.counts[section as usize] += keys.len() as u64;
        Ok(())
    }

    fn end_page(&mut self, section: Section) -> std::io::Result<()> {
        if let (false, Some(row)) = (self.page.is_empty(), self.rows[section as usize].last_mut()) {
            row.1 = crc32fast::hash(&self.page);
            self.out.write_all(&self.page)?;
            self.page.clear();
        }
        Ok(())
    }
}
