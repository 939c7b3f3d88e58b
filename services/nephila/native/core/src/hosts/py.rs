//! The host store for Python: arguments are checked, faults become ValueError and OSError, the GIL is released during
//! disk access.

use std::fmt::Display;

use nephila_wide::md5;
use pyo3::exceptions::{PyAssertionError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::admit::{admit, Admitted, Checks, Entries, PageLinks};
use super::disk::Disk;
use super::fault::Fault;
use super::merge::merge;
use super::pending::ordered;
use super::run::Window;
use super::store::{Slice, Store};
use super::table;
use super::walk::Place;

/// Hosts with their queues and the workbench; see README.md. One thread at a time.
#[pyclass(module = "nephila.native._core")]
pub struct HostStore(pub(super) Store);

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> PyErr {
        match fault {
            Fault::Wrong(text) => PyValueError::new_err(text),
            Fault::Disk(error, path) => match error.raw_os_error() {
                Some(number) => PyOSError::new_err((number, plain(&error), path)),
                None => PyOSError::new_err(format!("{path}: {error}")),
            },
        }
    }
}

/// The error text of the system, without the number that Python adds itself.
fn plain(error: &impl Display) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn ids_of(hosts: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let Ok(bytes) = hosts.cast::<PyBytes>() else { return hosts.extract() };
    if bytes.as_bytes().len() % 4 != 0 {
        return Err(PyValueError::new_err("host ids must come in records of 4 bytes"));
    }
    let words = bytes.as_bytes().chunks_exact(4);
    Ok(words.map(|four| i64::from(u32::from_le_bytes([four[0], four[1], four[2], four[3]]))).collect())
}

type Packed<'py> = Option<Bound<'py, PyBytes>>;
/// The next place, and (host, packed).
type Piece<'py> = (Option<Place>, Vec<(u32, Bound<'py, PyBytes>)>);

fn packed<'py>(py: Python<'py>, found: Option<Vec<u8>>) -> Packed<'py> {
    found.map(|bytes| PyBytes::new(py, &bytes))
}

#[pymethods]
impl HostStore {
    #[new]
    #[pyo3(signature = (directory="", *, read_only=false, merge_bytes=100_000_000))]
    fn new(directory: &str, read_only: bool, merge_bytes: u64) -> Self {
        HostStore(Store::new(Disk::new(directory, read_only), merge_bytes))
    }

    /// The id of a host, made when it is new. O(1).
    fn host(&mut self, name: &str) -> PyResult<u32> {
        Ok(self.0.host(name)?)
    }

    /// The id of a host, or -1.
    fn find(&self, name: &str) -> i64 {
        self.0.names.find(name.as_bytes()).map_or(-1, i64::from)
    }

    /// The name of a host.
    fn name(&self, host: i64) -> PyResult<String> {
        let name = self.0.names.get(self.0.known(host)?).unwrap_or(b"");
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    fn __len__(&self) -> usize {
        self.0.names.len()
    }

    /// All hosts by (first four bytes of the name's MD5, name). O(n log n).
    fn ids(&self) -> Vec<u32> {
        let names = &self.0.names;
        let ids: Vec<u32> = names.alive().collect();
        let mut rows: Vec<([u8; 4], u32)> = Vec::with_capacity(ids.len());
        let name = |id: u32| names.get(id).unwrap_or(b"");
        md5::digest_all(
            ids.len(),
            |index| name(ids[index]),
            |index, sum| rows.push(([sum[0], sum[1], sum[2], sum[3]], ids[index])),
        );
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| name(a.1).cmp(name(b.1))));
        rows.into_iter().map(|(_, id)| id).collect()
    }

    /// Drop a host that has no queued URL and is not scheduled; was it dropped? Its id may be used again.
    fn forget(&mut self, host: i64) -> PyResult<bool> {
        let host = self.0.known(host)?;
        Ok(self.0.forget(host))
    }

    /// What `set_state` was last given, or nothing.
    fn state<'py>(&mut self, py: Python<'py>, host: i64) -> PyResult<Bound<'py, PyBytes>> {
        let host = self.0.known(host)?;
        Ok(PyBytes::new(py, &self.0.state(host)?))
    }

    /// Keep some bytes with the host.
    fn set_state(&mut self, host: i64, blob: &[u8]) -> PyResult<()> {
        let host = self.0.known(host)?;
        Ok(self.0.set_state(host, blob)?)
    }

    /// Queue one URL; `order` below 2^24, the smaller first. ValueError for what cannot be. O(log n).
    #[pyo3(signature = (host, job, order, packed, newest_first=false))]
    fn push(&mut self, host: i64, job: i64, order: i64, packed: &[u8], newest_first: bool) -> PyResult<()> {
        let host = self.0.known(host)?;
        self.0.check_push(job, order, packed.len())?;
        self.0.check_room(1)?;
        self.0.push(host, job as u32, order as u32, packed, newest_first);
        Ok(())
    }

    /// Queue several URLs, all or none; `hosts` may be u32 little-endian in a buffer.
    #[pyo3(signature = (hosts, job, orders, packed, newest_first=false))]
    fn push_many(
        &mut self,
        hosts: &Bound<'_, PyAny>,
        job: i64,
        orders: Vec<i64>,
        packed: Vec<Bound<'_, PyBytes>>,
        newest_first: bool,
    ) -> PyResult<()> {
        let hosts = ids_of(hosts)?;
        if hosts.len() != orders.len() || hosts.len() != packed.len() {
            return Err(PyValueError::new_err("hosts, orders and packed URLs must be as many"));
        }
        let store = &mut self.0;
        store.check_job(job)?;
        store.check_room(hosts.len())?;
        for ((host, order), packed) in hosts.iter().zip(&orders).zip(&packed) {
            store.known(*host)?;
            store.check_push(job, *order, packed.as_bytes().len())?;
        }
        for ((host, order), packed) in hosts.iter().zip(&orders).zip(&packed) {
            store.push(*host as u32, job as u32, *order as u32, packed.as_bytes(), newest_first);
        }
        Ok(())
    }

    /// Admit the new links of a page to seen set, queues and log rows; None, without any effect, where the caller has to
    /// do it. O(links).
    fn admit<'py>(
        &mut self,
        py: Python<'py>,
        links: PageLinks<'py>,
        entries: Entries<'py>,
        checks: Checks<'py>,
    ) -> PyResult<Option<Admitted<'py>>> {
        admit(py, &mut self.0, &links, &entries, &checks)
    }

    /// The next URL, left where it is; read from disk when it is there.
    fn peek<'py>(&mut self, py: Python<'py>, host: i64, job: i64) -> PyResult<Packed<'py>> {
        let (host, job) = (self.0.known(host)?, self.0.check_job(job)?);
        Ok(packed(py, self.0.peek(host, job)?))
    }

    /// (job, order of its next URL), rising by job.
    fn head(&self, host: i64) -> PyResult<Vec<(u32, u32)>> {
        Ok(self.0.head(self.0.known(host)?))
    }

    /// The next URL, taken out; None when there is none. O(log n), or one read.
    fn pop<'py>(&mut self, py: Python<'py>, host: i64, job: i64) -> PyResult<Packed<'py>> {
        let (host, job) = (self.0.known(host)?, self.0.check_job(job)?);
        Ok(packed(py, self.0.pop(host, job)?))
    }

    /// A URL with this fingerprint, removed from its queue; None when it is not there. O(n) at worst.
    fn take<'py>(&mut self, py: Python<'py>, host: i64, job: i64, url_key: &[u8]) -> PyResult<Packed<'py>> {
        let (host, job) = (self.0.known(host)?, self.0.check_job(job)?);
        Ok(packed(py, self.0.take(host, job, url_key)?))
    }

    /// URLs of a job on a host.
    fn length(&self, host: i64, job: i64) -> PyResult<usize> {
        Ok(self.0.queue(self.0.known(host)?, self.0.check_job(job)?).map_or(0, |queue| self.0.length(queue)))
    }

    /// URLs of all jobs on a host.
    fn queued(&self, host: i64) -> PyResult<usize> {
        Ok(self.0.queues_of(self.0.known(host)?).map(|queue| self.0.length(queue)).sum())
    }

    /// URLs of a job on all hosts. O(1).
    fn job_length(&self, job: i64) -> PyResult<u64> {
        Ok(self.0.jobs.get(&self.0.check_job(job)?).copied().unwrap_or(0))
    }

    /// (job, URLs), rising by job, of those that have any.
    fn jobs(&self, host: i64) -> PyResult<Vec<(u32, usize)>> {
        Ok(self.0.queues_of(self.0.known(host)?).map(|queue| (queue.job, self.0.length(queue))).collect())
    }

    /// (order, packed) of the next `limit` URLs, of all when it is 0.
    #[pyo3(signature = (host, job, limit=0))]
    fn items<'py>(
        &self,
        py: Python<'py>,
        host: i64,
        job: i64,
        limit: usize,
    ) -> PyResult<Vec<(u32, Bound<'py, PyBytes>)>> {
        let store = &self.0;
        let mut out = Vec::new();
        let Some(queue) = store.queue(store.known(host)?, store.check_job(job)?) else { return Ok(out) };
        let slices: Vec<Slice> = store.slices_of(queue).map(|slice| store.slices[slice]).collect();
        let mut windows: Vec<Window> = (0..store.disk.slots()).map(|_| Window::new(1 << 16)).collect();
        merge(&ordered(store.pending(queue)), slices, &store.disk, &mut windows, |url| {
            out.push(((url.key() >> 40) as u32, PyBytes::new(py, url.data())));
            Ok(limit == 0 || out.len() < limit)
        })?;
        Ok(out)
    }

    /// At most `limit` URLs of a job, (host, packed), from a place on, in no order, and the place behind them; None: they
    /// were the last. O(limit), however long the queues are; they may change between two pieces.
    fn walk<'py>(&self, py: Python<'py>, job: i64, place: Place, limit: usize) -> PyResult<Piece<'py>> {
        let mut out = Vec::new();
        let each = |host, data: &[u8]| out.push((host, PyBytes::new(py, data)));
        let next = self.0.walk(self.0.check_job(job)?, place, limit.max(1), each)?;
        Ok((next, out))
    }

    /// Drop the URLs of a job on a host; how many.
    fn drop_queue(&mut self, host: i64, job: i64) -> PyResult<usize> {
        let (host, job) = (self.0.known(host)?, self.0.check_job(job)?);
        Ok(self.0.drop_queue(host, job))
    }

    /// Drop the URLs of a job; how many. O(hosts).
    fn drop_job(&mut self, job: i64) -> PyResult<usize> {
        let job = self.0.check_job(job)?;
        Ok(self.0.hosts_of(job).into_iter().map(|host| self.0.drop_queue(host, job)).sum())
    }

    /// Hosts with URLs of a job, rising. O(hosts).
    fn hosts_of(&self, job: i64) -> PyResult<Vec<u32>> {
        Ok(self.0.hosts_of(self.0.check_job(job)?))
    }

    /// Set the time when the host is ready; it replaces the earlier one. O(log n).
    fn schedule(&mut self, host: i64, at: f64) -> PyResult<()> {
        if at.is_nan() {
            return Err(PyValueError::new_err("a host cannot be ready at NaN"));
        }
        let host = self.0.known(host)?;
        self.0.bench.schedule(host, at);
        Ok(())
    }

    /// Schedule all of these hosts that are not scheduled. O(hosts log n).
    fn schedule_idle(&mut self, hosts: Vec<i64>, at: f64) -> PyResult<()> {
        if at.is_nan() {
            return Err(PyValueError::new_err("a host cannot be ready at NaN"));
        }
        let known = hosts.into_iter().map(|host| self.0.known(host));
        for host in known.collect::<Result<Vec<_>, _>>()? {
            if self.0.bench.at(host).is_none() {
                self.0.bench.schedule(host, at);
            }
        }
        Ok(())
    }

    /// The host waits for nothing.
    fn unschedule(&mut self, host: i64) -> PyResult<()> {
        let host = self.0.known(host)?;
        self.0.bench.remove(host);
        Ok(())
    }

    /// When the host is ready; None when it is not scheduled.
    fn ready_at(&self, host: i64) -> PyResult<Option<f64>> {
        Ok(self.0.bench.at(self.0.known(host)?))
    }

    /// When the first host is ready.
    fn next_ready(&self) -> Option<f64> {
        self.0.bench.first().map(|first| first.0)
    }

    /// The host that has been ready longest, taken out; -1 when none is. O(log n).
    fn take_ready(&mut self, now: f64) -> i64 {
        match self.0.bench.first() {
            Some((at, host)) if at <= now => {
                self.0.bench.remove(host);
                i64::from(host)
            }
            _ => -1,
        }
    }

    /// How many hosts are scheduled.
    fn waiting(&self) -> usize {
        self.0.bench.len()
    }

    /// (host, instant) of the next `limit`, of all when it is 0.
    fn scheduled(&self, limit: usize) -> Vec<(u32, f64)> {
        self.0.bench.ordered(limit)
    }

    /// Write what is only in memory, merge runs where that pays; a manifest. OSError when the disk refuses: the store
    /// goes on as it was.
    fn checkpoint<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let store = &mut self.0;
        let manifest = py.detach(|| store.checkpoint())?;
        Ok(PyBytes::new(py, &manifest))
    }

    /// Become what the manifest names. Hosts may get other ids. ValueError for what is missing or damaged.
    fn restore(&mut self, py: Python<'_>, manifest: &[u8]) -> PyResult<()> {
        let store = &mut self.0;
        Ok(py.detach(|| table::restore(store, manifest))?)
    }

    /// Delete the files that the last checkpoint or restore does not name.
    fn cleanup(&self) -> PyResult<()> {
        Ok(self.0.disk.cleanup()?)
    }

    /// Bytes of memory in use (estimate).
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.nbytes()
    }

    /// Figures by name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (name, value) in self.0.stats() {
            out.set_item(name, value)?;
        }
        Ok(out)
    }

    /// All invariants; AssertionError. O(everything in memory).
    fn check(&self) -> PyResult<()> {
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.0.check()));
        checked.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            PyAssertionError::new_err(text.unwrap_or_default())
        })
    }
}
