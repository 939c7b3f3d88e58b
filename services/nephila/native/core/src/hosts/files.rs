//! Files of the store as files: names, positioned reads, and writing that leaves a whole file or none.
//!
//! Invariant: a file gets its name only when it was written wholly and fsynced; an unfinished file is removed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::fault::{on, wrong, Result};

pub const VERSION: u32 = 1;
pub const RUN_MAGIC: &[u8; 8] = b"NPHQRUN\0";
pub const RUN_END: &[u8; 8] = b"NPHQEND\0";
pub const TABLE_MAGIC: &[u8; 8] = b"NPHQTAB\0";
pub const MANIFEST_MAGIC: &[u8; 8] = b"NPHQMAN\0";
/// Bytes of magic and version.
pub const HEAD: usize = 12;

pub fn head(magic: &[u8; 8]) -> [u8; HEAD] {
    let mut out = [0; HEAD];
    out[..8].copy_from_slice(magic);
    out[8..].copy_from_slice(&VERSION.to_le_bytes());
    out
}

/// A fault unless `data` begins with this magic and our version.
pub fn check_head(what: &Path, data: &[u8], magic: &[u8; 8]) -> Result<()> {
    let what = what.display();
    if data.len() < 8 || &data[..8] != magic {
        return wrong(format!("{what} is not a host store file of nephila; move it away or choose another --out"));
    }
    let Some(version) = data.get(8..12) else {
        return wrong(format!("{what} is damaged at byte {}; restore it from a backup", data.len()));
    };
    let version = u32::from_le_bytes([version[0], version[1], version[2], version[3]]);
    if version != VERSION {
        return wrong(format!(
            "{what} was written in host store format {version}, this program reads {VERSION}; \
             resume with the program version that wrote it"
        ));
    }
    Ok(())
}

pub fn path_of(directory: &Path, number: u32, kind: &str) -> PathBuf {
    directory.join(format!("queue-{number:08}.{kind}"))
}

/// All files of a store with the number in their name.
pub fn numbers(directory: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let mut found = Vec::new();
    for entry in on(directory, fs::read_dir(directory))? {
        let path = on(directory, entry)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let Some((digits, kind)) = name.strip_prefix("queue-").and_then(|rest| rest.split_once('.')) else { continue };
        let ours = matches!(kind, "run" | "hosts" | "run.tmp" | "hosts.tmp");
        if let (true, Ok(number)) = (ours, digits.parse()) {
            found.push((number, path));
        }
    }
    Ok(found)
}

/// Write a file by `body`, fsync it, rename it, fsync the directory. On a fault nothing of it is left.
pub fn write<T>(path: &Path, body: impl FnOnce(&mut BufWriter<File>) -> Result<T>) -> Result<T> {
    let temporary = PathBuf::from(format!("{}.tmp", path.display()));
    let result = write_as(path, &temporary, body);
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn write_as<T>(path: &Path, temporary: &Path, body: impl FnOnce(&mut BufWriter<File>) -> Result<T>) -> Result<T> {
    let mut file = BufWriter::with_capacity(1 << 18, on(path, File::create(temporary))?);
    let made = match body(&mut file) {
        Ok(made) => made,
        Err(fault) => {
            // What is in the buffer must not be written when it is dropped.
            drop(file.into_parts());
            return Err(fault);
        }
    };
    let flushed = file.flush();
    let (inner, _) = file.into_parts();
    on(path, flushed)?;
    on(path, inner.sync_all())?;
    on(path, fs::rename(temporary, path))?;
    sync_directory(path)?;
    Ok(made)
}

fn sync_directory(path: &Path) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    if cfg!(unix) {
        on(directory, File::open(directory).and_then(|file| file.sync_all()))?;
    }
    Ok(())
}

/// Read at an offset without moving the file's position; fewer bytes only at its end.
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match read_once(file, &mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(unix)]
fn read_once(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_once(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}
