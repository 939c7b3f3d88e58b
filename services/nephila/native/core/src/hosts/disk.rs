//! The directory of a store and the runs it has open.
//!
//! Invariant: a slot holds the same run as long as any slice or blob names it. Files that the last manifest names, or
//! that are open, are never deleted; a read-only directory is never written.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::fault::{on, wrong, Result};
use super::files;
use super::run::Run;

#[derive(Default)]
pub struct Disk {
    directory: Option<PathBuf>,
    read_only: bool,
    slots: Vec<Option<Run>>,
    /// The files that the last checkpoint or restore named.
    named: Option<HashSet<PathBuf>>,
    pub written_bytes: u64,
}

impl Disk {
    pub fn new(directory: &str, read_only: bool) -> Disk {
        let directory = (!directory.is_empty()).then(|| PathBuf::from(directory));
        Disk { directory, read_only, ..Disk::default() }
    }

    /// The same directory with nothing open.
    pub fn fresh(&self) -> Disk {
        Disk { directory: self.directory.clone(), read_only: self.read_only, ..Disk::default() }
    }

    pub fn directory(&self) -> Result<&Path> {
        self.directory.as_deref().map_or_else(|| wrong("this host store has no directory"), Ok)
    }

    /// The directory, made when it is not there, and the number for the next files in it.
    pub fn next(&self) -> Result<(PathBuf, u32)> {
        let directory = self.directory()?;
        if self.read_only {
            return wrong("this host store is read-only");
        }
        on(directory, fs::create_dir_all(directory))?;
        let last = files::numbers(directory)?.into_iter().map(|(number, _)| number).max().unwrap_or(0);
        Ok((directory.to_path_buf(), last + 1))
    }

    /// A run by its slot, which something refers to.
    pub fn run(&self, slot: u16) -> &Run {
        self.slots[slot as usize].as_ref().expect("a slot that is referred to holds a run")
    }

    pub fn run_mut(&mut self, slot: u16) -> &mut Run {
        self.slots[slot as usize].as_mut().expect("a slot that is referred to holds a run")
    }

    pub fn runs(&self) -> impl Iterator<Item = (u16, &Run)> + '_ {
        self.slots.iter().enumerate().filter_map(|(slot, run)| Some((slot as u16, run.as_ref()?)))
    }

    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    pub fn add(&mut self, run: Run) -> u16 {
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.unwrap_or(self.slots.len());
        if free.is_none() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(run);
        slot as u16
    }

    /// Close what nothing refers to.
    pub fn close_empty(&mut self) {
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(|run| run.bytes_left == 0) {
                *slot = None;
            }
        }
    }

    fn open(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.runs().map(|(_, run)| run.path.clone())
    }

    /// From now on this table, and the runs that are open, are the files to keep.
    pub fn name(&mut self, table: PathBuf) {
        self.named = Some(self.open().chain([table]).collect());
    }

    /// Delete the files that nothing names; nothing before the first manifest, or when read-only.
    pub fn cleanup(&self) -> Result<()> {
        let directory = self.directory()?;
        let Some(named) = self.named.as_ref().filter(|_| !self.read_only) else { return Ok(()) };
        let keep: HashSet<PathBuf> = self.open().chain(named.iter().cloned()).collect();
        for (_, path) in files::numbers(directory)? {
            if !keep.contains(&path) {
                on(&path, fs::remove_file(&path))?;
            }
        }
        Ok(())
    }
}
