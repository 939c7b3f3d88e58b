//! The directory of a trie: its runs, which files are whose, and the manifest that names them.
//!
//! Invariant: a file that a manifest given out since the last `cleanup` names is never changed or removed; numbers
//! rise, so no name is used twice. Manifest (little-endian): magic, version u32, count of keys u64, count of runs u32,
//! then a run with number, three counts (u64 each) and CRC-32 of its table, oldest first; CRC-32 of all that.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::leaf::Key;
use super::merge;
use super::run::{path_of, Outcome, Run, Source, Stamp, Trouble};

const MAGIC: &[u8; 8] = b"NEPHTRIE";
const VERSION: u32 = 1;
const HEAD: usize = 24;
const ROW: usize = 36;
/// Runs before some are united.
const MOST_RUNS: usize = 8;

pub struct Home {
    directory: PathBuf,
    name: String,
    next: u64,
    /// Oldest first.
    pub runs: Vec<Arc<Run>>,
    /// Numbers of the last manifest.
    named: HashSet<u64>,
    /// Numbers of all manifests since the last cleanup.
    kept: HashSet<u64>,
}

impl Home {
    /// ValueError's word for a name that cannot be part of a file's.
    pub fn new(directory: PathBuf, name: &str) -> Outcome<Self> {
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.len() > 100 || !name.bytes().all(fine) {
            return Err(Trouble::Damage(format!(
                "the name of a trie has 1 to 100 ASCII letters, digits, dots, dashes or underscores, not {name:?}"
            )));
        }
        let (named, kept) = Default::default();
        let mut home = Home { directory, name: name.to_owned(), next: 1, runs: Vec::new(), named, kept };
        home.next = home.files()?.into_iter().max().unwrap_or(0) + 1;
        Ok(home)
    }

    /// A home for another trie in the same directory.
    pub fn beside(&self, name: &str) -> Outcome<Self> {
        if name == self.name {
            return Err(Trouble::Damage(format!("the name {name:?} is this trie's own")));
        }
        Home::new(self.directory.clone(), name)
    }

    fn trouble(&self, error: std::io::Error) -> Trouble {
        Trouble::Disk(self.directory.display().to_string(), error)
    }

    /// Numbers of the run files of this name that are there.
    fn files(&self) -> Outcome<Vec<u64>> {
        let start = format!("seen-{}-", self.name);
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&self.directory).map_err(|error| self.trouble(error))? {
            let file = entry.map_err(|error| self.trouble(error))?.file_name();
            let digits = file.to_str().and_then(|file| file.strip_prefix(&start)?.strip_suffix(".run"));
            let digits = digits.filter(|digits| digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_digit()));
            numbers.extend(digits.and_then(|digits| digits.parse::<u64>().ok()));
        }
        Ok(numbers)
    }

    fn number(&mut self) -> (PathBuf, u64) {
        let number = self.next;
        self.next += 1;
        (path_of(&self.directory, &self.name, number), number)
    }

    /// Write a new newest run, and unite some where there are many.
    pub fn write(&mut self, keys: Source, ranges: &[(Key, Key)]) -> Outcome<()> {
        let (path, number) = self.number();
        self.runs.push(Arc::new(Run::write(path, number, keys, ranges)?));
        let sizes: Vec<u64> = self.runs.iter().map(|run| run.stamp.counts.iter().sum()).collect();
        let Some(start) = merge::worth_uniting(&sizes, MOST_RUNS) else { return Ok(()) };
        let (path, number) = self.number();
        let united = merge::unite(&self.runs[start..], start == 0, path, number)?;
        for run in self.runs.drain(start..) {
            if !self.kept.contains(&run.stamp.number) {
                // A file that no manifest names: should it stay, the next cleanup takes it.
                let _ = std::fs::remove_file(&run.path);
            }
        }
        self.runs.push(Arc::new(united));
        Ok(())
    }

    /// Make all runs durable and name them.
    pub fn manifest(&mut self, keys: usize) -> Outcome<Vec<u8>> {
        for run in &self.runs {
            run.sync()?;
        }
        let folder = std::fs::File::open(&self.directory).map_err(|error| self.trouble(error))?;
        folder.sync_all().map_err(|error| self.trouble(error))?;
        self.named = self.runs.iter().map(|run| run.stamp.number).collect();
        self.kept.extend(&self.named);
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend((keys as u64).to_le_bytes());
        out.extend((self.runs.len() as u32).to_le_bytes());
        for run in &self.runs {
            out.extend(run.stamp.number.to_le_bytes());
            out.extend(run.stamp.counts.iter().flat_map(|count| count.to_le_bytes()));
            out.extend(run.stamp.crc.to_le_bytes());
        }
        out.extend(crc32fast::hash(&out).to_le_bytes());
        Ok(out)
    }

    /// Open the runs that a manifest names; returns the count of keys it promises.
    pub fn open(&mut self, manifest: &[u8]) -> Outcome<usize> {
        let (count, stamps) =
            parse(manifest).map_err(|what| Trouble::Damage(format!("manifest of the trie: {what}")))?;
        let runs: Outcome<Vec<Arc<Run>>> = stamps
            .iter()
            .map(|stamp| Run::open(path_of(&self.directory, &self.name, stamp.number), *stamp).map(Arc::new))
            .collect();
        self.runs = runs?;
        self.named = stamps.iter().map(|stamp| stamp.number).collect();
        self.kept.clone_from(&self.named);
        self.next = self.next.max(self.named.iter().max().unwrap_or(&0) + 1);
        Ok(count)
    }

    /// Forget the runs of a restore that failed.
    pub fn close(&mut self) {
        self.runs.clear();
        self.named.clear();
        self.kept.clear();
    }

    /// Remove the files that neither the last manifest nor this trie needs; returns how many.
    pub fn cleanup(&mut self) -> Outcome<usize> {
        let used: HashSet<u64> = self.runs.iter().map(|run| run.stamp.number).collect();
        let mut removed = 0;
        for number in self.files()? {
            if !used.contains(&number) && !self.named.contains(&number) {
                let path = path_of(&self.directory, &self.name, number);
                std::fs::remove_file(path).map_err(|error| self.trouble(error))?;
                removed += 1;
            }
        }
        self.kept.clone_from(&self.named);
        Ok(removed)
    }

    pub fn nbytes(&self) -> usize {
        self.runs.iter().map(|run| run.nbytes()).sum()
    }
}

fn parse(manifest: &[u8]) -> Result<(usize, Vec<Stamp>), String> {
    let number = |at: usize| u64::from_le_bytes(manifest[at..at + 8].try_into().unwrap());
    let word = |at: usize| u32::from_le_bytes(manifest[at..at + 4].try_into().unwrap());
    if manifest.len() < HEAD + 4 || &manifest[..8] != MAGIC {
        return Err("not one".into());
    }
    if word(8) != VERSION {
        return Err(format!("version {}, this program reads {VERSION}", word(8)));
    }
    let end = manifest.len() - 4;
    if crc32fast::hash(&manifest[..end]) != word(end) || end != HEAD + ROW * word(20) as usize {
        return Err("wrong checksum".into());
    }
    let row = |at: usize| Stamp {
        number: number(at),
        counts: [number(at + 8), number(at + 16), number(at + 24)],
        crc: word(at + 32),
    };
    Ok((number(12) as usize, (HEAD..end).step_by(ROW).map(row).collect()))
}
