//! The trie for Python: bytes in, bytes and numbers out, one lock, the GIL released for large batches.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::home::Home;
use super::leaf::Key;
use super::node::{last_of, prefix_of};
use super::run::{Outcome, Trouble};
use super::store::Store;

/// Keys in a call from which releasing the GIL costs less than it brings.
const MANY: usize = 1024;
/// From this weight on the GIL is released.
const HEAVY: usize = usize::MAX;

/// A set of 16-byte fingerprints in key order, for tens of millions of them.
///
/// About 17 bytes a key in memory; with a directory, checkpoints as sorted runs; with a budget, unused ranges
/// are on disk. Calls from several threads are serialised.
#[pyclass(module = "nephila.native._core", frozen)]
pub struct Trie {
    store: Mutex<Store>,
}

impl From<Trouble> for PyErr {
    fn from(trouble: Trouble) -> PyErr {
        match trouble {
            Trouble::Damage(line) => PyValueError::new_err(line),
            Trouble::Disk(path, error) => match error.raw_os_error() {
                Some(code) => PyOSError::new_err((code, error.to_string(), path)),
                None => PyOSError::new_err(format!("{path}: {error}")),
            },
        }
    }
}

/// The records of a bytes-like object.
fn records(data: &Bound<'_, PyAny>) -> PyResult<Vec<Key>> {
    let parse = |bytes: &[u8]| {
        if bytes.len() % 16 != 0 {
            return Err(PyValueError::new_err("fingerprints must come in records of 16 bytes"));
        }
        Ok(bytes.chunks_exact(16).map(|record| Key::from_be_bytes(record.try_into().unwrap())).collect())
    };
    match data.cast::<PyBytes>() {
        Ok(bytes) => parse(bytes.as_bytes()),
        Err(_) => parse(&PyBuffer::<u8>::get(data)?.to_vec(data.py())?),
    }
}

fn one(data: &Bound<'_, PyAny>) -> PyResult<Key> {
    let bytes = data.cast::<PyBytes>().map_err(|_| PyTypeError::new_err("a fingerprint is bytes"))?.as_bytes();
    match bytes.try_into() {
        Ok(record) => Ok(Key::from_be_bytes(record)),
        Err(_) => Err(PyValueError::new_err("a fingerprint has 16 bytes")),
    }
}

/// The first key that is not before a byte string; None where all are.
fn bound(bytes: &[u8]) -> Option<Key> {
    let mut start = [0; 16];
    let size = bytes.len().min(16);
    start[..size].copy_from_slice(&bytes[..size]);
    let key = Key::from_be_bytes(start);
    if bytes.len() > 16 {
        key.checked_add(1)
    } else {
        Some(key)
    }
}

fn joined(keys: &[Key]) -> Vec<u8> {
    keys.iter().flat_map(|key| key.to_be_bytes()).collect()
}

fn home(directory: PathBuf, name: &str) -> PyResult<Option<Home>> {
    if directory.as_os_str().is_empty() {
        return Ok(None);
    }
    std::fs::create_dir_all(&directory).map_err(|error| Trouble::Disk(directory.display().to_string(), error))?;
    Ok(Some(Home::new(directory, name)?))
}

impl Trie {
    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work of another part of the core on the store; holds the GIL unless another thread has the lock.
    pub fn with_store<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Store) -> Outcome<T> + Send,
    ) -> PyResult<T> {
        self.with(py, 0, work)
    }

    /// Forget all keys of a trie without a directory.
    pub fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, 0, |store| {
            *store = Store::new(None, 0, store.seed);
            Ok(())
        })
    }

    /// Work on the store, without the GIL where there is much to do or another thread is at it.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        weight: usize,
        work: impl FnOnce(&mut Store) -> Outcome<T> + Send,
    ) -> PyResult<T> {
        if weight < MANY {
            if let Ok(mut store) = self.store.try_lock() {
                return Ok(work(&mut store)?);
            }
        }
        Ok(py.detach(|| work(&mut self.lock()))?)
    }
}

#[pymethods]
impl Trie {
    #[new]
    #[pyo3(signature = (directory=PathBuf::new(), name="", budget_bytes=0))]
    fn new(directory: PathBuf, name: &str, budget_bytes: usize) -> PyResult<Self> {
        let home = home(directory, name)?;
        if home.is_none() && budget_bytes > 0 {
            return Err(PyValueError::new_err("a budget needs a directory for what is beyond it"));
        }
        Ok(Trie { store: Mutex::new(Store::new(home, budget_bytes, RandomState::new().hash_one(0))) })
    }

    /// Indices of the 16-byte records that are not in the set, in order, each new fingerprint once. O(n).
    fn missing(&self, py: Python<'_>, fingerprints: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
        let keys = records(fingerprints)?;
        self.with(py, keys.len(), |store| store.missing(&keys))
    }

    /// Add records of 16 bytes; returns how many were new. O(n).
    fn add(&self, py: Python<'_>, fingerprints: &Bound<'_, PyAny>) -> PyResult<usize> {
        let keys = records(fingerprints)?;
        self.with(py, keys.len(), |store| store.add(&keys))
    }

    /// Remove one fingerprint; was it there? O(1).
    fn discard(&self, py: Python<'_>, fingerprint: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = one(fingerprint)?;
        self.with(py, 1, |store| store.remove(key))
    }

    /// Remove records of 16 bytes; returns how many were there. O(n).
    fn discard_many(&self, py: Python<'_>, fingerprints: &Bound<'_, PyAny>) -> PyResult<usize> {
        let keys = records(fingerprints)?;
        self.with(py, keys.len(), |store| {
            keys.iter().try_fold(0, |sum, key| Ok(sum + usize::from(store.remove(*key)?)))
        })
    }

    /// Remove all fingerprints that begin with the first `bits` bits (default: all) of `prefix`; returns how many.
    /// O(them).
    #[pyo3(signature = (prefix, bits=None))]
    fn discard_prefix(&self, py: Python<'_>, prefix: &[u8], bits: Option<usize>) -> PyResult<usize> {
        let depth = bits.unwrap_or(8 * prefix.len());
        if prefix.len() > 16 || depth > 8 * prefix.len() {
            return Err(PyValueError::new_err("a prefix has at most 16 bytes, and no fewer than its bits"));
        }
        let first = prefix_of(bound(prefix).unwrap_or(0), depth as u32);
        self.with(py, HEAVY, |store| store.remove_range(first, last_of(first, depth as u32)))
    }

    fn __contains__(&self, py: Python<'_>, fingerprint: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = one(fingerprint)?;
        self.with(py, 1, |store| store.contains(key))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, 1, |store| Ok(store.len()))
    }

    /// Bytes of memory in use. O(regions).
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, 1, |store| Ok(store.nbytes()))
    }

    /// At most `limit` fingerprints that are not before `start` as byte strings, sorted, one after the other: go on
    /// with the last one and a zero byte behind it.
    fn keys<'py>(&self, py: Python<'py>, start: &[u8], limit: usize) -> PyResult<Bound<'py, PyBytes>> {
        let Some(first) = bound(start) else { return Ok(PyBytes::new(py, b"")) };
        let found = self.with(py, limit, |store| store.keys(first, Key::MAX, limit).map(|keys| joined(&keys)))?;
        Ok(PyBytes::new(py, &found))
    }

    /// Take the fingerprints from `first` up to but without `last` (None: to the end) out, as a trie of their own: in
    /// memory, or with a `name` in the same directory. O(regions) in memory, plus what is cut or on disk.
    #[pyo3(signature = (first, last=None, name=""))]
    fn split(&self, py: Python<'_>, first: &[u8], last: Option<&[u8]>, name: &str) -> PyResult<Trie> {
        let low = bound(first);
        let high = match last.map(bound) {
            Some(Some(end)) => end.checked_sub(1),
            _ => Some(Key::MAX),
        };
        let store = self.with(py, HEAVY, |store| store.split(low, high, name))?;
        Ok(Trie { store: Mutex::new(store) })
    }

    /// Take all fingerprints of another trie, which is empty then; returns how many were new. Ranges that this one has
    /// nothing in cost O(regions) in memory, others O(n).
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Trie>) -> PyResult<usize> {
        let other = other.get();
        if std::ptr::eq(self, other) {
            return Err(PyValueError::new_err("a trie cannot be merged with itself"));
        }
        Ok(py.detach(|| {
            // The two locks are always taken in one order.
            let (mut mine, mut theirs);
            if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
                mine = self.lock();
                theirs = other.lock();
            } else {
                theirs = other.lock();
                mine = self.lock();
            }
            mine.merge(&mut theirs)
        })?)
    }

    /// All fingerprints, sorted, one after the other. O(n).
    fn dump<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, HEAVY, |store| {
            let mut out = Vec::with_capacity(16 * store.len());
            store.walk(0, Key::MAX, &mut |keys| {
                out.extend(keys.iter().flat_map(|key| key.to_be_bytes()));
                Ok(true)
            })?;
            Ok(out)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Add what `dump` gave, or records in any order. O(n); sorted records into an empty range are built in one go.
    fn load(&self, py: Python<'_>, fingerprints: &Bound<'_, PyAny>) -> PyResult<usize> {
        let keys = records(fingerprints)?;
        self.with(py, HEAVY, |store| {
            if keys.windows(2).all(|pair| pair[0] < pair[1]) {
                store.load(&keys)
            } else {
                store.add(&keys)
            }
        })
    }

    /// Write what changed since the last one as a sorted run, durably; returns the manifest to keep. O(changes), and
    /// O(n) now and then. ValueError without a directory; OSError where the disk refuses.
    fn checkpoint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let manifest = self.with(py, HEAVY, Store::checkpoint)?;
        Ok(PyBytes::new(py, &manifest))
    }

    /// Fill an empty trie with what a manifest names. ValueError, in one line, for a file that is missing, torn, of
    /// another version or has a wrong checksum; the trie stays empty then. O(n).
    fn restore(&self, py: Python<'_>, manifest: &[u8]) -> PyResult<()> {
        self.with(py, HEAVY, |store| store.restore(manifest))
    }

    /// Remove the run files of this name that the last manifest does not name; returns how many. To be called when that
    /// manifest is durable.
    fn cleanup(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, HEAVY, |store| store.home.as_mut().map_or(Ok(0), Home::cleanup))
    }

    /// ValueError if an invariant does not hold. O(n).
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, HEAVY, |store| store.check())?.map_err(PyValueError::new_err)
    }

    /// Regions, regions with keys on disk, keys on disk, runs.
    fn stats(&self, py: Python<'_>) -> PyResult<(usize, usize, usize, usize)> {
        self.with(py, 1, |store| {
            let cold = store.forest.regions.iter().filter_map(|region| region.cold.as_ref());
            let on_disk = cold.map(|cold| cold.count).sum();
            let runs = store.home.as_ref().map_or(0, |home| home.runs.len());
            Ok((store.forest.regions.len(), store.colds, on_disk, runs))
        })
    }
}
