//! The I/O thread of `nephila-fetch` for Python: settings and requests in, batches of responses out.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nephila_fetch::config::Config;
use nephila_fetch::exchange::Wanted;
use nephila_fetch::fetcher::Fetcher;
use nephila_fetch::media::MediaFilter;
use nephila_fetch::messages::{Done, Event, Shared, Submit};
use nephila_fetch::page_threads;
use nephila_fetch::pages::{PageReader, PageRequest};
use nephila_fetch::tunnel::{Hop, Way};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::page_reader::{PageOptions, PageReading, ReadPage};

/// The settings of the downloader that the client reads, by their names there.
#[derive(FromPyObject)]
struct Settings {
    connect_timeout_s: f64,
    headers_timeout_s: f64,
    idle_timeout_s: f64,
    body_timeout_s: f64,
    total_timeout_s: f64,
    min_rate_bytes: f64,
    max_wire_bytes: u64,
    max_body_bytes: u64,
    max_ratio: f64,
    keepalive_s: f64,
    rest_s: f64,
    pool_size: usize,
    pool_most: usize,
    raw_capture: bool,
    tls_verify: bool,
    ca_file: String,
    accept: Vec<String>,
    refuse: Vec<String>,
}

impl From<Settings> for Config {
    fn from(settings: Settings) -> Config {
        Config {
            connect_timeout_s: settings.connect_timeout_s,
            headers_timeout_s: settings.headers_timeout_s,
            idle_timeout_s: settings.idle_timeout_s,
            body_timeout_s: settings.body_timeout_s,
            total_timeout_s: settings.total_timeout_s,
            min_rate_bytes: settings.min_rate_bytes,
            max_wire_bytes: settings.max_wire_bytes,
            max_body_bytes: settings.max_body_bytes,
            max_ratio: settings.max_ratio,
            keepalive_s: settings.keepalive_s,
            rest_s: settings.rest_s,
            pool_size: settings.pool_size,
            pool_most: settings.pool_most,
            raw_capture: settings.raw_capture,
            tls_verify: settings.tls_verify,
            ca_file: settings.ca_file,
            media: MediaFilter::new(settings.accept, settings.refuse),
        }
    }
}

/// A proxy: name, name in its certificate, scheme, user, password, host and port that it connects to, and the request CONNECT.
type ProxyOf = (String, String, String, String, String, String, u16, Vec<u8>);

fn hop((name, tls_name, scheme, user, password, host, port, connect): ProxyOf) -> Hop {
    let way = match scheme.as_str() {
        "socks5" => Way::Socks5 { user, password },
        _ if connect.is_empty() => Way::Plain,
        _ => Way::Connect(connect),
    };
    let tls_name = (!tls_name.is_empty()).then_some(tls_name);
    Hop { name, tls_name, way, host, port }
}

/// An HTTP client with a thread of its own. It dials the addresses that it is given and resolves no names.
///
/// `wake_fd` becomes readable when `drain` has something to return. After `close` all calls but `drain` do nothing.
#[pyclass(module = "nephila.native._core", frozen)]
pub struct HttpClient {
    inner: Mutex<Option<Fetcher>>,
    /// Where no page thread reads bodies: what `EndedFetch.take` reads them with.
    reader: Option<Arc<dyn PageReader>>,
    #[pyo3(get)]
    wake_fd: i32,
}

impl HttpClient {
    fn lock(&self) -> MutexGuard<'_, Option<Fetcher>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl HttpClient {
    /// Starts the threads. `settings`: an object with the attributes of HttpConfig. `pages`: one with those of
    /// ParserConfig; then HTML bodies of requests with a `page_url` are read in `page_threads` threads, or with 0 of
    /// them in `EndedFetch.take`, with their main text if `main_text` is true.
    #[new]
    #[pyo3(signature = (settings, pages=None, page_threads=1))]
    fn new(settings: Settings, pages: Option<PageOptions>, page_threads: usize) -> PyResult<HttpClient> {
        let pages = pages.map(|one| Arc::new(one) as Arc<dyn PageReader>);
        let (reader, pages) = match page_threads {
            0 => (pages, None),
            threads => (None, pages.map(|one| (one, threads))),
        };
        let inner =
            Fetcher::start(settings.into(), pages).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(HttpClient { wake_fd: inner.wake_fd(), inner: Mutex::new(Some(inner)), reader })
    }

    /// Starts a fetch at the next `flush`. `addresses` are IP addresses that have passed the egress guard; ValueError for another text.
    /// `data`: head and body as sent. `key` tells connections to one address and port apart.
    #[pyo3(signature = (id, addresses, port, tls_name, key, data, *, any_type=false, forwarded=false, head_only=false,
                        keep=0, max_bytes=0, report_sent=false, proxy=None, page_url=String::new(), main_text=true))]
    #[allow(clippy::too_many_arguments)]
    fn submit(
        &self,
        id: u64,
        addresses: Vec<String>,
        port: u16,
        tls_name: &str,
        key: String,
        data: &[u8],
        any_type: bool,
        forwarded: bool,
        head_only: bool,
        keep: u64,
        max_bytes: u64,
        report_sent: bool,
        proxy: Option<ProxyOf>,
        page_url: String,
        main_text: bool,
    ) -> PyResult<()> {
        let proxy = proxy.map(hop);
        let parsed: Result<Vec<IpAddr>, _> = addresses.iter().map(|one| one.parse()).collect();
        let addresses = parsed.map_err(|_| PyValueError::new_err(format!("{addresses:?} are not IP addresses")))?;
        let tls_name = (!tls_name.is_empty()).then(|| tls_name.to_owned());
        let wanted = Wanted { any_type, forwarded, head_only, keep, max_bytes };
        if let Some(inner) = self.lock().as_ref() {
            inner.submit(Submit {
                id,
                addresses,
                port,
                tls_name,
                key,
                data: data.to_vec(),
                proxy,
                wanted,
                report_sent,
                page: (!page_url.is_empty()).then_some(PageRequest { url: page_url, main_text }),
            });
        }
        Ok(())
    }

    /// Begins what was submitted: one wake-up of the thread for many fetches.
    fn flush(&self) {
        if let Some(inner) = self.lock().as_ref() {
            inner.flush();
        }
    }

    /// Stops a fetch and closes its connection. An event of it may still be in the next batch.
    fn abort(&self, id: u64) {
        if let Some(inner) = self.lock().as_ref() {
            inner.abort(id);
        }
    }

    /// Continues a fetch whose body waits for memory.
    fn grant(&self, id: u64) {
        if let Some(inner) = self.lock().as_ref() {
            inner.grant(id);
        }
    }

    /// The events since the last call. A number: the request of that id has been written. Three numbers: a body waits
    /// for `grant` (id, size in bytes to reserve, size so far). Otherwise the end of a fetch.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let inner = self.lock();
        let Some(inner) = inner.as_ref() else { return Ok(list) };
        let (events, shared) = (inner.drain(), inner.shared());
        for event in events {
            match event {
                Event::Sent(id) => list.append(id)?,
                Event::Reserve { id, size, arrived } => list.append((id, size, arrived))?,
                Event::Done(done) => list.append(EndedFetch {
                    id: done.id,
                    shared: Arc::clone(&shared),
                    reader: self.reader.clone(),
                    done: Mutex::new(Some(done)),
                })?,
            }
        }
        Ok(list)
    }

    /// Number of idle connections.
    #[getter]
    fn idle_connections(&self) -> usize {
        self.lock().as_ref().map_or(0, Fetcher::idle_connections)
    }

    /// Closes all connections and ends the thread.
    fn close(&self, py: Python<'_>) {
        let inner = self.lock().take();
        py.detach(|| drop(inner));
    }
}

/// The end of one fetch. Its body becomes a Python object when it is taken: a batch of objects at once would leave the
/// caches before the first one is read.
#[pyclass(module = "nephila.native._core", frozen)]
pub struct EndedFetch {
    #[pyo3(get)]
    id: u64,
    shared: Arc<Shared>,
    reader: Option<Arc<dyn PageReader>>,
    done: Mutex<Option<Box<Done>>>,
}

#[pymethods]
impl EndedFetch {
    /// (status, headers, body, whether its status is wanted, body as received, wire bytes) and (head as received,
    /// truncated, reason, detail, address, age of the head in seconds, cause) and the ReadPage of the body, if a page thread has
    /// read it or this call does. ValueError at a second call.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut done = done.ok_or_else(|| PyValueError::new_err("taken already"))?;
        if let Some(reader) = self.reader.as_deref().filter(|reader| page_threads::wants(*reader, &done)) {
            py.detach(|| page_threads::read(reader, &mut done));
        }
        let done = *done;
        let response = done.response;
        let headers = PyDict::new(py);
        for (name, value) in &response.head.headers {
            headers.set_item(name, value)?;
        }
        let body = PyBytes::new(py, &response.body);
        self.shared.give_spare(response.body);
        let (reason, detail, cause) = match response.error {
            Some(error) => (error.reason.name(), error.detail, error.cause),
            None => (Cow::Borrowed(""), String::new(), ""),
        };
        let reading = done.reading.and_then(|reading| reading.downcast::<PageReading>().ok());
        let page = reading.map(|reading| Py::new(py, ReadPage::new(*reading, body.clone().unbind())));
        let page = page.transpose()?;
        let wire_body = response.wire_body.map(|body| PyBytes::new(py, &body));
        let first = (response.head.status, headers, body, response.wanted, wire_body, response.wire_bytes);
        let rest = (
            PyBytes::new(py, &response.head_bytes),
            response.truncated,
            reason,
            detail,
            done.address.map(|address| address.to_string()).unwrap_or_default(),
            done.head_at.map_or(0.0, |at| at.elapsed().as_secs_f64()),
            cause,
        );
        Ok((first, rest, page).into_pyobject(py)?.into_any())
    }
}
