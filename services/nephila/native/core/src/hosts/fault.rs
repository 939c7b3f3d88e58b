//! Faults: one line that names the place and the remedy.

use std::io;
use std::path::Path;

pub type Result<T> = std::result::Result<T, Fault>;

#[derive(Debug)]
pub enum Fault {
    /// The caller asked for what cannot be, or a file is missing, foreign or damaged.
    Wrong(String),
    /// The system refused.
    Disk(io::Error, String),
}

pub fn wrong<T>(text: impl Into<String>) -> Result<T> {
    Err(Fault::Wrong(text.into()))
}

pub fn damaged<T>(path: &Path, at: u64) -> Result<T> {
    wrong(format!("{} is damaged at byte {at}; restore it from a backup", path.display()))
}

/// Adds the file name to the error of the system.
pub fn on<T>(path: &Path, result: io::Result<T>) -> Result<T> {
    result.map_err(|error| Fault::Disk(error, path.display().to_string()))
}

/// The same for opening what must be there: missing is the store's fault, not the system's.
pub fn opened<T>(path: &Path, result: io::Result<T>) -> Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            wrong(format!("{} is missing; restore it from a backup", path.display()))
        }
        other => on(path, other),
    }
}
