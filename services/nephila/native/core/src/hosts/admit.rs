//! Admission of the links of one page in one call: seen test, scope, session ids, queues, log rows.
//!
//! Invariant: the effects and their order are those of `scheduler/engine/admission.py`, link by link. A page that needs
//! more than this (a session id in a link, a link of another partition) is left untouched, and the caller admits it.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PySet, PyString};
use regex::bytes::{RegexSet, RegexSetBuilder};

use super::store::{Store, LONGEST};
use crate::trie::{Key, Trie};

const HOST: u8 = 0;
const DOMAIN: u8 = 1;
const PREFIX: u8 = 2;
/// Registrable domains that are remembered.
const DOMAINS: usize = 100_000;
/// Bytes of a packed URL before its context.
const HEAD: usize = 29;
const HAS_CONTEXT: u8 = 2;

/// The scope of a job as far as links need it.
#[pyclass(module = "nephila.native._core")]
pub struct LinkScope {
    mode: u8,
    anchors: Py<PySet>,
    domain_of: Py<PyAny>,
    domains: HashMap<Box<[u8]>, Box<str>, RandomState>,
    include: Option<RegexSet>,
    exclude: Option<RegexSet>,
}

/// One program of all patterns; None without any.
fn compiled(patterns: &[String]) -> PyResult<Option<RegexSet>> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let set = RegexSetBuilder::new(patterns).unicode(false).size_limit(8 << 20).build();
    set.map(Some).map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pymethods]
impl LinkScope {
    /// `mode` as in the message `Scope`; `anchors` is read at each link. ValueError for a pattern that is not common to
    /// RE2 and this engine, or too large.
    #[new]
    fn new(
        mode: u8,
        anchors: Py<PySet>,
        domain_of: Py<PyAny>,
        include: Vec<String>,
        exclude: Vec<String>,
    ) -> PyResult<Self> {
        let (include, exclude) = (compiled(&include)?, compiled(&exclude)?);
        Ok(LinkScope { mode, anchors, domain_of, domains: HashMap::default(), include, exclude })
    }

    /// Whether a link belongs to the job, its depth apart.
    fn admits(&mut self, py: Python<'_>, url: &str, host_key: &str) -> PyResult<bool> {
        let inside = self.inside_host(py, host_key.as_bytes())?;
        self.decide(py, url.as_bytes(), host_key.as_bytes(), inside)
    }
}

fn bare(host: &[u8]) -> &[u8] {
    host.strip_prefix(b"www.").unwrap_or(host)
}

fn text(bytes: &[u8]) -> PyResult<&str> {
    std::str::from_utf8(bytes).map_err(|_| PyValueError::new_err("a link that is not UTF-8"))
}

impl LinkScope {
    fn is_anchor(&self, py: Python<'_>, place: &str) -> PyResult<bool> {
        self.anchors.bind(py).contains(PyString::new(py, place))
    }

    /// Whether all URLs of a host are inside; for mode prefix the path decides.
    fn inside_host(&mut self, py: Python<'_>, host: &[u8]) -> PyResult<bool> {
        match self.mode {
            HOST => self.is_anchor(py, text(bare(host))?),
            DOMAIN => {
                if let Some(domain) = self.domains.get(host) {
                    return self.is_anchor(py, domain);
                }
                let domain: String = self.domain_of.call1(py, (text(host)?,))?.extract(py)?;
                if self.domains.len() >= DOMAINS {
                    self.domains.clear();
                }
                let known = self.is_anchor(py, &domain);
                self.domains.insert(host.into(), domain.into());
                known
            }
            _ => Ok(true),
        }
    }

    fn decide(&self, py: Python<'_>, url: &[u8], host: &[u8], inside_host: bool) -> PyResult<bool> {
        let inside = inside_host && (self.mode != PREFIX || self.inside_prefix(py, url, host)?);
        Ok(inside
            && !self.exclude.as_ref().is_some_and(|set| set.is_match(url))
            && self.include.as_ref().is_none_or(|set| set.is_match(url)))
    }

    /// One look-up per directory above the URL.
    fn inside_prefix(&self, py: Python<'_>, url: &[u8], host: &[u8]) -> PyResult<bool> {
        let rest = memchr::memmem::find(url, b"://").map_or(url, |at| &url[at + 3..]);
        let path = memchr::memchr(b'/', rest).map_or(&b""[..], |at| &rest[at + 1..]);
        let path = &path[..memchr::memchr(b'?', path).unwrap_or(path.len())];
        let place = [bare(host), b"/", path].concat();
        let mut cut = place.len();
        while let Some(at) = memchr::memrchr(b'/', &place[..cut]).filter(|at| *at > 0) {
            if self.is_anchor(py, text(&place[..=at])?)? {
                return Ok(true);
            }
            cut = at;
        }
        Ok(false)
    }
}

/// Names of parameters that may hold a session id, in lower case. `_` stands for an optional underscore, `*` for
/// further word characters.
const SESSION_NAMES: [&[u8]; 10] = [
    b"jsessionid",
    b"phpsessid",
    b"php_sessid",
    b"aspsessionid",
    b"sessionid",
    b"session_id",
    b"sessid",
    b"sess_id",
    b"sid",
    b"oscsid",
];

fn starts_lower(text: &[u8], prefix: &[u8]) -> bool {
    text.len() >= prefix.len() && text[..prefix.len()].eq_ignore_ascii_case(prefix)
}

/// Whether a URL may have a session id: true for all that have one, and for few others.
pub fn may_have_session(url: &[u8]) -> bool {
    memchr::memchr3_iter(b'?', b'&', b';', url).any(|at| {
        let rest = &url[at + 1..];
        let named = |name: &&[u8]| {
            starts_lower(rest, name)
                && (rest.get(name.len()) == Some(&b'=') || (**name == *b"aspsessionid" && rest.contains(&b'=')))
        };
        SESSION_NAMES.iter().any(|name| named(name)) || named(&&b"zenid"[..])
    }) || memchr::memmem::find_iter(url, b"(").any(|at| starts_lower(&url[at..], b"(s("))
}

/// The links of a page, a message `Outlinks`.
#[derive(FromPyObject)]
pub struct PageLinks<'py> {
    fingerprints: Bound<'py, PyBytes>,
    urls: Bound<'py, PyBytes>,
    url_ends: Bound<'py, PyBytes>,
    host_spans: Bound<'py, PyBytes>,
    /// One byte per link, or empty for 0.
    priorities: Bound<'py, PyBytes>,
    flags: Bound<'py, PyBytes>,
}

/// What all queue entries of a page have in common.
#[derive(FromPyObject)]
pub struct Entries<'py> {
    job: u32,
    depth: u32,
    first_no: u32,
    hops: u8,
    /// Flags of each, but for that of a context.
    flags: u8,
    /// By priority, or one for all.
    orders: Vec<u32>,
    newest_first: bool,
    /// The least priority by flags, 256 bytes, or empty.
    floors: Bound<'py, PyBytes>,
    context: Bound<'py, PyBytes>,
    /// Most URLs of the job on a host, 0 for any number.
    held: u64,
    /// Report all hosts, not only those whose queue was empty.
    all_hosts: bool,
    over_budget: Bound<'py, PyDict>,
    /// A row of the log is `row_start`, host key, packed entry, `row_end`, as MessagePack.
    row_start: Bound<'py, PyBytes>,
    row_end: Bound<'py, PyBytes>,
}

/// What links are checked against.
#[derive(FromPyObject)]
pub struct Checks<'py> {
    seen: Bound<'py, Trie>,
    scope: Bound<'py, LinkScope>,
    rejected: Bound<'py, Trie>,
    /// Fingerprints that `rejected` may hold; then it is cleared.
    rejected_limit: usize,
    sessions: bool,
    /// log2 of the number of partitions of the system, and the one that is here; -1: all are.
    partition_bits: u32,
    partition: i64,
    /// log2 of the number of log partitions.
    log_bits: u32,
}

/// Fields of what `admit` returns: indices of the admitted links, and of those out of scope; (host, best order) of hosts
/// whose queue was empty, or of all; (log partition, links, rows).
pub type Admitted<'py> = (Vec<u32>, Vec<u32>, Vec<(u32, u32)>, Vec<(u32, usize, Bound<'py, PyBytes>)>);

fn word(bytes: &[u8], index: usize) -> PyResult<usize> {
    let four = bytes.get(4 * index..4 * index + 4).and_then(|four| four.try_into().ok());
    four.map(|four| u32::from_le_bytes(four) as usize).ok_or_else(damaged)
}

fn damaged() -> PyErr {
    PyValueError::new_err("links with lengths that do not fit")
}

fn top_bits(key: Key, bits: u32) -> u32 {
    if bits == 0 {
        0
    } else {
        (key >> (128 - bits)) as u32
    }
}

/// A value of MessagePack with `fix` as its format if it is shorter than 32 bytes, else with one of `formats`: of a size
/// in one, two or four bytes.
fn put(out: &mut Vec<u8>, fix: Option<u8>, formats: [u8; 3], bytes: &[u8]) {
    match (bytes.len(), fix) {
        (size @ 0..=31, Some(fix)) => out.push(fix | size as u8),
        (size @ 0..=255, _) => out.extend([formats[0], size as u8]),
        (size @ 256..=65_535, _) => {
            out.push(formats[1]);
            out.extend((size as u16).to_be_bytes());
        }
        (size, _) => {
            out.push(formats[2]);
            out.extend((size as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(bytes);
}

struct Link<'a> {
    index: u32,
    key: Key,
    url: &'a [u8],
    host: &'a [u8],
}

/// What is known of a host while a page is admitted.
struct HostSight {
    inside: bool,
    /// Number in the store, UNKNOWN until it is needed; FULL: it takes no more.
    number: i64,
    /// Best order of the page's URLs there, and how many there are.
    best: u32,
    count: u64,
    /// Whether the job had no URL there before this page.
    was_empty: bool,
}

const UNKNOWN: i64 = -2;
const FULL: i64 = -1;

impl<'py> PageLinks<'py> {
    fn link(&self, index: u32, key: Key) -> PyResult<Link<'_>> {
        let (urls, at) = (self.urls.as_bytes(), index as usize);
        let start = if at == 0 { 0 } else { word(self.url_ends.as_bytes(), at - 1)? };
        let url = urls.get(start..word(self.url_ends.as_bytes(), at)?).ok_or_else(damaged)?;
        let spans = self.host_spans.as_bytes();
        let host = urls.get(word(spans, 2 * at)?..word(spans, 2 * at + 1)?).ok_or_else(damaged)?;
        text(url)?;
        Ok(Link { index, key, url, host })
    }

    fn priority(&self, index: u32, floors: &[u8]) -> u8 {
        let at = index as usize;
        let own = self.priorities.as_bytes().get(at).copied().unwrap_or(0);
        let flags = self.flags.as_bytes().get(at).copied().unwrap_or(0);
        own.max(floors.get(usize::from(flags)).copied().unwrap_or(0))
    }
}

/// The links that were not seen and are not known as refused; None where the caller has to admit the page.
fn candidates<'a>(py: Python<'_>, links: &'a PageLinks<'_>, checks: &Checks<'_>) -> PyResult<Option<Vec<Link<'a>>>> {
    let keys = links.fingerprints.as_bytes();
    if keys.len() % 16 != 0 {
        return Err(damaged());
    }
    let keys: Vec<Key> = keys.chunks_exact(16).map(|key| Key::from_be_bytes(key.try_into().unwrap())).collect();
    let new = checks.seen.get().with_store(py, |store| store.missing(&keys))?;
    // A full set of refused links is cleared while a page is admitted; links that are skipped here would be forgotten.
    let refused = checks.rejected.get().with_store(py, |store| Ok(store.len()))?;
    let clears = refused + new.len() > checks.rejected_limit;
    let mut found = Vec::with_capacity(new.len());
    for index in new {
        let link = links.link(index, keys[index as usize])?;
        let here = checks.partition < 0 || i64::from(top_bits(link.key, checks.partition_bits)) == checks.partition;
        let session = checks.sessions && may_have_session(link.url);
        if (!here || session) && (clears || !is_rejected(py, checks, link.key)?) {
            return Ok(None);
        }
        found.push(link);
    }
    Ok(Some(found))
}

fn reject(py: Python<'_>, checks: &Checks<'_>, key: Key) -> PyResult<()> {
    let rejected = checks.rejected.get();
    if rejected.with_store(py, |store| Ok(store.len()))? >= checks.rejected_limit {
        rejected.reset(py)?;
    }
    rejected.with_store(py, |store| store.add(&[key]))?;
    Ok(())
}

fn is_rejected(py: Python<'_>, checks: &Checks<'_>, key: Key) -> PyResult<bool> {
    checks.rejected.get().with_store(py, |store| store.contains(key))
}

fn log_row(out: &mut Vec<u8>, entries: &Entries<'_>, host: &[u8], packed: &[u8]) {
    out.extend_from_slice(entries.row_start.as_bytes());
    put(out, Some(0xA0), [0xD9, 0xDA, 0xDB], host);
    put(out, None, [0xC4, 0xC5, 0xC6], packed);
    out.extend_from_slice(entries.row_end.as_bytes());
}

fn pack(out: &mut Vec<u8>, entries: &Entries<'_>, link: &Link<'_>, priority: u8) {
    let context = entries.context.as_bytes();
    out.clear();
    out.extend(link.key.to_be_bytes());
    out.extend(entries.depth.to_le_bytes());
    out.extend(entries.first_no.to_le_bytes());
    out.extend([0, 0, entries.hops, entries.flags | if context.is_empty() { 0 } else { HAS_CONTEXT }, priority]);
    if !context.is_empty() {
        out.extend((context.len() as u16).to_le_bytes());
        out.extend_from_slice(context);
    }
    out.extend_from_slice(link.url);
}

/// Admit the new links of a page; None, without any effect, where the caller has to.
pub fn admit<'py>(
    py: Python<'py>,
    store: &mut Store,
    links: &PageLinks<'py>,
    entries: &Entries<'py>,
    checks: &Checks<'py>,
) -> PyResult<Option<Admitted<'py>>> {
    let Some(found) = candidates(py, links, checks)? else { return Ok(None) };
    let context = entries.context.as_bytes().len();
    if entries.orders.is_empty() || context > usize::from(u16::MAX) {
        return Err(damaged());
    }
    for order in &entries.orders {
        store.check_push(i64::from(entries.job), i64::from(*order), HEAD)?;
    }
    if found.iter().any(|link| HEAD + 2 + context + link.url.len() > LONGEST) {
        return Ok(None);
    }
    store.check_room(found.len())?;
    let mut scope = checks.scope.borrow_mut();
    let mut sights: HashMap<&[u8], HostSight, RandomState> = HashMap::default();
    let mut order_of_hosts: Vec<&[u8]> = Vec::new();
    let mut admitted: Vec<(u32, Key, u32, u32, u8)> = Vec::with_capacity(found.len());
    let mut out_of_scope: Vec<u32> = Vec::new();
    let mut any_rejected = checks.rejected.get().with_store(py, |rejected| Ok(rejected.len()))? > 0;
    for link in &found {
        if any_rejected && is_rejected(py, checks, link.key)? {
            continue;
        }
        let sight = match sights.get_mut(link.host) {
            Some(sight) => sight,
            None => {
                let inside = scope.inside_host(py, link.host)?;
                let fresh = HostSight { inside, number: UNKNOWN, best: u32::MAX, count: 0, was_empty: false };
                sights.entry(link.host).or_insert(fresh)
            }
        };
        if !scope.decide(py, link.url, link.host, sight.inside)? {
            out_of_scope.push(link.index);
            any_rejected = true;
            reject(py, checks, link.key)?;
            continue;
        }
        if sight.number == UNKNOWN {
            let number = store.host(text(link.host)?)?;
            let full = !entries.over_budget.is_empty() && entries.over_budget.contains(number)?;
            sight.number = if full { FULL } else { i64::from(number) };
            sight.was_empty = store.queue(number, entries.job).is_none();
        }
        if sight.number == FULL {
            continue;
        }
        let number = sight.number as u32;
        if entries.held > 0 {
            let queued = store.queue(number, entries.job).map_or(0, |queue| store.length(queue)) as u64;
            if queued + sight.count >= entries.held {
                continue;
            }
        }
        let priority = links.priority(link.index, entries.floors.as_bytes());
        let order = *entries.orders.get(usize::from(priority)).unwrap_or(&entries.orders[0]);
        if sight.count == 0 {
            order_of_hosts.push(link.host);
        }
        sight.count += 1;
        sight.best = sight.best.min(order);
        admitted.push((link.index, link.key, number, order, priority));
    }
    if admitted.is_empty() {
        return Ok(Some((Vec::new(), out_of_scope, Vec::new(), Vec::new())));
    }
    let keys: Vec<Key> = admitted.iter().map(|one| one.1).collect();
    checks.seen.get().with_store(py, |seen| seen.add(&keys))?;
    let mut packed = Vec::with_capacity(256);
    let mut parts: Vec<(u32, usize, Vec<u8>)> = Vec::new();
    let mut slots: HashMap<u32, usize, RandomState> = HashMap::default();
    for (index, key, number, order, priority) in &admitted {
        let link = links.link(*index, *key)?;
        pack(&mut packed, entries, &link, *priority);
        store.push(*number, entries.job, *order, &packed, entries.newest_first);
        let partition = top_bits(*key, checks.log_bits);
        let slot = *slots.entry(partition).or_insert_with(|| {
            parts.push((partition, 0, Vec::with_capacity(256)));
            parts.len() - 1
        });
        let part = &mut parts[slot];
        part.1 += 1;
        log_row(&mut part.2, entries, link.host, &packed);
    }
    let hosts = order_of_hosts.iter().map(|host| &sights[host]).filter(|sight| entries.all_hosts || sight.was_empty);
    let firsts = hosts.map(|sight| (sight.number as u32, sight.best)).collect();
    let parts = parts.into_iter().map(|(partition, count, row)| (partition, count, PyBytes::new(py, &row))).collect();
    Ok(Some((admitted.iter().map(|one| one.0).collect(), out_of_scope, firsts, parts)))
}

#[cfg(test)]
mod tests {
    use super::may_have_session;

    #[test]
    fn session_ids_are_suspected() {
        for url in ["http://a/?PHPSESSID=1", "http://a/x;jsessionid=9", "http://a/(S(abc))/", "http://a/?b=1&sid=2"] {
            assert!(may_have_session(url.as_bytes()), "{url}");
        }
        for url in ["http://a/session/assess?x=1", "http://a/?side=1", "http://a/?b=sid"] {
            assert!(!may_have_session(url.as_bytes()), "{url}");
        }
    }
}
