//! The table of hosts of one checkpoint, and the manifest that names it. Layouts: ../../../README.md.
//!
//! Invariant: everything that is alive in the runs is reached from here, once. The table is written and read as a
//! stream: it is as long as all names, and must not be in memory a second time.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use super::fault::{damaged, on, opened, wrong, Result};
use super::files::{self, HEAD, MANIFEST_MAGIC, TABLE_MAGIC};
use super::names;
use super::run::{Run, END, START};
use super::store::{Blob, Slice, Store, ARRIVALS, ARRIVAL_MASK, ORDERS};

const SCHEDULED: u8 = 1;
const BLOB: u8 = 2;
/// Bytes that are checksummed and written together.
const PIECE: usize = 1 << 16;

/// Counts and checksums what goes to the file.
struct Sink<'a, W: Write> {
    file: &'a mut W,
    path: &'a Path,
    crc: crc32fast::Hasher,
    bytes: u64,
    row: Vec<u8>,
    ends: Vec<u64>,
}

impl<W: Write> Sink<'_, W> {
    fn varint(&mut self, mut value: u64) {
        while value > 127 {
            self.row.push(value as u8 | 128);
            value >>= 7;
        }
        self.row.push(value as u8);
    }

    /// A place as its distance from the end of the one before in the same run: one or two bytes instead of five.
    fn place(&mut self, run: usize, offset: u64, length: u64) {
        let distance = offset.wrapping_sub(self.ends[run]) as i64;
        self.varint(run as u64);
        self.varint(((distance << 1) ^ (distance >> 63)) as u64);
        self.varint(length);
        self.ends[run] = offset + length;
    }

    fn flush(&mut self, least: usize) -> Result<()> {
        if self.row.len() < least {
            return Ok(());
        }
        self.crc.update(&self.row);
        self.bytes += self.row.len() as u64;
        on(self.path, self.file.write_all(&self.row))?;
        self.row.clear();
        Ok(())
    }
}

/// Write a store's table; its length and checksum.
pub fn write<W: Write>(store: &Store, file: &mut W, path: &Path) -> Result<(u64, u32)> {
    let mut index = vec![0; store.disk.slots()];
    let mut sink = Sink { file, path, crc: crc32fast::Hasher::new(), bytes: 0, row: Vec::new(), ends: Vec::new() };
    sink.row.extend_from_slice(&files::head(TABLE_MAGIC));
    sink.varint(store.arrivals);
    sink.varint(store.disk.runs().count() as u64);
    for (place, (slot, run)) in store.disk.runs().enumerate() {
        index[slot as usize] = place;
        sink.ends.push(0);
        write_run(&mut sink, run)?;
    }
    sink.varint(store.names.len() as u64);
    for host in store.names.alive() {
        write_host(&mut sink, store, host, &index);
        sink.flush(PIECE)?;
    }
    sink.flush(0)?;
    let sum = sink.crc.clone().finalize();
    sink.row.extend_from_slice(&sum.to_le_bytes());
    sink.flush(0)?;
    Ok((sink.bytes, sink.crc.finalize()))
}

fn write_run<W: Write>(sink: &mut Sink<'_, W>, run: &Run) -> Result<()> {
    sink.varint(u64::from(run.number));
    sink.varint(run.bytes);
    sink.row.extend_from_slice(&run.id.to_le_bytes());
    sink.varint(run.dead.len() as u64);
    let mut last = 0;
    for offset in &run.dead {
        sink.varint(offset - last);
        last = *offset;
    }
    sink.flush(0)
}

fn write_host<W: Write>(sink: &mut Sink<'_, W>, store: &Store, id: u32, index: &[usize]) {
    let (name, at) = (store.names.get(id).unwrap_or(b""), store.bench.at(id));
    let blob = if let Some(Blob::Disk { run, length, offset }) = store.blob(id) { Some((run, length, offset)) } else { None };
    sink.varint(name.len() as u64);
    sink.row.extend_from_slice(name);
    sink.row.push(if at.is_some() { SCHEDULED } else { 0 } | if blob.is_some() { BLOB } else { 0 });
    if let Some(at) = at {
        sink.row.extend_from_slice(&at.to_le_bytes());
    }
    if let Some((run, length, offset)) = blob {
        sink.place(index[*run as usize], *offset, u64::from(*length));
    }
    sink.varint(store.queues_of(id).count() as u64);
    for queue in store.queues_of(id) {
        sink.varint(u64::from(queue.job));
        sink.varint(store.slices_of(queue).count() as u64);
        for slice in store.slices_of(queue) {
            write_slice(sink, &store.slices[slice], index);
        }
    }
}

fn write_slice<W: Write>(sink: &mut Sink<'_, W>, slice: &Slice, index: &[usize]) {
    sink.place(index[slice.run as usize], slice.offset, slice.end - slice.offset);
    sink.varint(u64::from(slice.live));
    sink.varint(slice.key >> 40);
    sink.row.extend_from_slice(&slice.key.to_le_bytes()[..5]);
}

/// Reads a table whose checksum was found right; whatever it holds, no length is believed unseen.
struct Source<'a> {
    file: BufReader<File>,
    path: &'a Path,
    at: u64,
    end: u64,
    ends: Vec<u64>,
}

impl Source<'_> {
    fn bad<T>(&self) -> Result<T> {
        damaged(self.path, self.at)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        if buffer.len() as u64 > self.end - self.at {
            return self.bad();
        }
        self.at += buffer.len() as u64;
        on(self.path, self.file.read_exact(buffer))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        self.fill(&mut out)?;
        Ok(out)
    }

    fn varint(&mut self, most: u64) -> Result<u64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let [byte] = self.array()?;
            if shift > 63 {
                return self.bad();
            }
            value |= u64::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                return if value <= most { Ok(value) } else { self.bad() };
            }
        }
    }

    /// (slot, offset, length) of a place within its run.
    fn place(&mut self, slots: &[(u16, u64)]) -> Result<(u16, u64, u64)> {
        let run = self.varint(u64::from(u16::MAX))? as usize;
        let Some((slot, bytes)) = slots.get(run).copied() else { return self.bad() };
        let coded = self.varint(u64::MAX)?;
        let distance = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        let length = self.varint(bytes)?;
        let offset = self.ends[run].wrapping_add(distance as u64);
        let end = offset.checked_add(length).filter(|end| offset >= START && *end <= bytes - END);
        let Some(end) = end else { return self.bad() };
        self.ends[run] = end;
        Ok((slot, offset, length))
    }
}

/// Become what a manifest names. On a fault the store is as it was.
pub fn restore(store: &mut Store, manifest: &[u8]) -> Result<()> {
    let directory = store.disk.directory()?.to_path_buf();
    if store.names.end() > 0 || store.arrivals > 0 {
        return wrong("a host store is restored when it is new");
    }
    let (number, bytes, checksum) = read_manifest(manifest)?;
    let path = files::path_of(&directory, number, "hosts");
    let mut fresh = Store::new(store.disk.fresh(), store.merge_bytes);
    read(&mut fresh, &path, bytes, checksum)?;
    fresh.disk.name(path);
    *store = fresh;
    Ok(())
}

/// Fill an empty store from its table.
fn read(store: &mut Store, path: &Path, bytes: u64, checksum: u32) -> Result<()> {
    check(path, bytes, checksum)?;
    let file = BufReader::with_capacity(1 << 18, opened(path, File::open(path))?);
    let mut source = Source { file, path, at: 0, end: bytes - 4, ends: Vec::new() };
    source.array::<HEAD>()?;
    store.arrivals = source.varint(ARRIVALS)?;
    let mut slots = Vec::new();
    for _ in 0..source.varint(u64::from(u16::MAX))? {
        let run = read_run(&mut source)?;
        let size = run.bytes;
        slots.push((store.disk.add(run), size));
        source.ends.push(0);
    }
    let hosts = source.varint(u64::from(u32::MAX))?;
    // No row is shorter than three bytes: a larger count is damage.
    store.names.reserve(hosts.min(bytes / 3) as usize);
    for _ in 0..hosts {
        read_host(&mut source, store, &slots)?;
    }
    if source.at == source.end {
        Ok(())
    } else {
        source.bad()
    }
}

fn check(path: &Path, bytes: u64, checksum: u32) -> Result<()> {
    let mut file = opened(path, File::open(path))?;
    let size = on(path, file.metadata())?.len();
    let mut crc = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 17];
    let mut first = true;
    loop {
        let got = on(path, file.read(&mut buffer))?;
        if std::mem::take(&mut first) {
            files::check_head(path, &buffer[..got], TABLE_MAGIC)?;
        }
        if got == 0 {
            break;
        }
        crc.update(&buffer[..got]);
    }
    if size != bytes || bytes < HEAD as u64 + 4 || crc.finalize() != checksum {
        return damaged(path, size);
    }
    Ok(())
}

fn read_run(source: &mut Source<'_>) -> Result<Run> {
    let number = source.varint(u64::from(u32::MAX))? as u32;
    let bytes = source.varint(u64::MAX >> 1)?;
    let id = u64::from_le_bytes(source.array()?);
    let mut run = Run::open(source.path.parent().unwrap_or(Path::new(".")), number, bytes, id)?;
    let mut offset = 0u64;
    for _ in 0..source.varint(bytes)? {
        offset = offset.saturating_add(source.varint(bytes)?);
        run.dead.insert(offset);
    }
    Ok(run)
}

fn read_host(source: &mut Source<'_>, store: &mut Store, slots: &[(u16, u64)]) -> Result<()> {
    let mut name = vec![0; source.varint(names::LONGEST as u64)? as usize];
    source.fill(&mut name)?;
    let Ok(name) = String::from_utf8(name) else { return source.bad() };
    if store.names.find(name.as_bytes()).is_some() {
        return source.bad();
    }
    let host = store.add_host(name.as_bytes());
    let [flags] = source.array()?;
    if flags & SCHEDULED != 0 {
        let at = f64::from_le_bytes(source.array()?);
        if at.is_nan() {
            return source.bad();
        }
        store.bench.schedule(host, at);
    }
    if flags & BLOB != 0 {
        let (run, offset, length) = source.place(slots)?;
        let Ok(length) = u32::try_from(length) else { return source.bad() };
        store.disk.run_mut(run).bytes_left += u64::from(length);
        store.set_blob(host, Blob::Disk { run, length, offset });
    }
    for _ in 0..source.varint(65_536)? {
        let job = source.varint(u64::from(u32::MAX))? as u32;
        let queue = store.queue_for(host, job);
        for _ in 0..source.varint(slots.len() as u64)? {
            let slice = read_slice(source, slots)?;
            store.add_slice(queue, slice);
            store.count(job, u64::from(slice.live));
        }
        if store.is_empty(&store.queues[queue]) {
            return source.bad();
        }
    }
    Ok(())
}

fn read_slice(source: &mut Source<'_>, slots: &[(u16, u64)]) -> Result<Slice> {
    let (run, offset, length) = source.place(slots)?;
    let live = source.varint(u64::from(u32::MAX))?;
    let order = source.varint(ORDERS as u64 - 1)?;
    let mut key = [0; 8];
    source.fill(&mut key[..5])?;
    // No URL is shorter than 16 bytes behind its 16 of header.
    if live == 0 || live > length / 32 {
        return source.bad();
    }
    let key = order << 40 | (u64::from_le_bytes(key) & ARRIVAL_MASK);
    Ok(Slice { offset, end: offset + length, key, live: live as u32, next: super::slab::NONE, run })
}

pub fn manifest(number: u32, bytes: u64, checksum: u32) -> Vec<u8> {
    let mut out = files::head(MANIFEST_MAGIC).to_vec();
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&bytes.to_le_bytes());
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_le_bytes());
    out
}

/// (number, bytes, checksum) of the table a manifest names.
pub fn read_manifest(data: &[u8]) -> Result<(u32, u64, u32)> {
    let what = Path::new("the manifest of the host store");
    files::check_head(what, data, MANIFEST_MAGIC)?;
    let Ok(data) = <[u8; HEAD + 20]>::try_from(data) else { return damaged(what, data.len() as u64) };
    let word = |at: usize| u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
    if crc32fast::hash(&data[..HEAD + 16]) != word(HEAD + 16) {
        return damaged(what, HEAD as u64 + 16);
    }
    Ok((word(HEAD), u64::from(word(HEAD + 4)) | u64::from(word(HEAD + 8)) << 32, word(HEAD + 12)))
}
