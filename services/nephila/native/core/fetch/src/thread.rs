//! The I/O thread: sockets, readers, pool and deadlines of all fetches. The only file that waits.
//!
//! Invariant: a connection opens for one fetch, serves one fetch, or is idle and in the pool. A slot of `links` is
//! reused only in a later turn, so an event of a closed socket never reaches another one.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};
use rustls::ClientConfig;
use slab::Slab;

use crate::config::{Config, MAX_DIALS, RESERVE_BYTES, STAGGER_S};
use crate::deadlines::{tick_s, Phase, Times};
use crate::error::{FetchError, Reason};
use crate::exchange::{End, Exchange, Response};
use crate::fetcher::{Command, Done, Event, Shared, Submit};
use crate::link::{Got, Link};
use crate::pool::Pool;
use crate::tls::client_config;
use crate::wire::plain;

pub const WAKE: Token = Token(usize::MAX);
/// Bytes read at once, and per connection in one turn, so that other connections follow.
const READ_BYTES: usize = 128 << 10;
const TURN_BYTES: usize = 256 << 10;

/// Bytes of a coded body between two looks at its memory.
const SLICE_BYTES: usize = 16 << 10;

type Key = (IpAddr, u16, Arc<str>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Opening(u64),
    Serving(u64),
    Idle,
    Closed,
}

/// What became of bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fed {
    More,
    Waits,
    /// The response has ended; `clean`: no bytes were left over.
    Done {
        clean: bool,
    },
}

struct Connection {
    link: Link,
    key: Key,
    role: Role,
    exchange: Option<Exchange>,
    /// The size of the body up to which its memory is reserved.
    covered: u64,
    /// It waits for memory: nothing is read.
    waits: bool,
    /// Bytes that were read before the wait.
    pending: Vec<u8>,
    requests: u32,
    /// Changes with each read.
    progress: u64,
    head_at: Option<Instant>,
    /// The server has ended its direction; what has arrived is still read.
    ended: bool,
}

struct Fetch {
    submit: Submit,
    key: Arc<str>,
    dials: usize,
    /// Attempts to connect in flight.
    attempts: Vec<usize>,
    serving: Option<usize>,
    times: Times,
}

impl Fetch {
    fn addresses(&self) -> &[IpAddr] {
        &self.submit.addresses[..self.submit.addresses.len().min(MAX_DIALS)]
    }
}

pub struct Worker {
    config: Config,
    poll: Poll,
    shared: Arc<Shared>,
    tls: Option<Arc<ClientConfig>>,
    links: Slab<Connection>,
    closed: Vec<usize>,
    fetches: HashMap<u64, Fetch>,
    pool: Pool<Key, usize>,
    /// When to try the next address of a fetch, and the number of its attempts so far; in order of time.
    staggers: VecDeque<(f64, u64, usize)>,
    /// Connections with data that was not read in their turn.
    again: VecDeque<usize>,
    events: Vec<Event>,
    buffer: Vec<u8>,
    started: Instant,
    next_tick: f64,
    stopped: bool,
}

impl Worker {
    pub fn new(config: Config, poll: Poll, shared: Arc<Shared>) -> Worker {
        let pool = Pool::new(config.pool_size, config.pool_most, config.keepalive_s);
        Worker {
            config,
            poll,
            shared,
            tls: None,
            links: Slab::new(),
            closed: Vec::new(),
            fetches: HashMap::new(),
            pool,
            staggers: VecDeque::new(),
            again: VecDeque::new(),
            events: Vec::new(),
            buffer: vec![0; READ_BYTES],
            started: Instant::now(),
            next_tick: f64::INFINITY,
            stopped: false,
        }
    }

    fn now(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Runs until `Command::Close`.
    pub fn run(mut self) {
        let mut ready = Events::with_capacity(1024);
        while !self.stopped {
            // An error here is a signal; all others are faults of this file.
            let _ = self.poll.poll(&mut ready, self.wait());
            // Events first: an idle connection that has ended is not taken for a request.
            for event in &ready {
                if event.token() != WAKE {
                    self.on_ready(event.token().0, event.is_read_closed() || event.is_error());
                }
            }
            for command in self.shared.take_commands() {
                self.on_command(command);
            }
            for _ in 0..self.again.len() {
                if let Some(number) = self.again.pop_front() {
                    self.on_ready(number, false);
                }
            }
            self.on_time();
            self.shared.note_idle(self.pool.len());
            for number in self.closed.drain(..) {
                self.links.remove(number);
            }
            if !self.events.is_empty() {
                self.shared.publish(&mut self.events);
            }
        }
    }

    fn wait(&self) -> Option<Duration> {
        if !self.again.is_empty() {
            return Some(Duration::ZERO);
        }
        let stagger = self.staggers.front().map_or(f64::INFINITY, |first| first.0);
        let at = stagger.min(self.next_tick);
        at.is_finite().then(|| Duration::from_secs_f64((at - self.now()).max(0.0)))
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Submit(submit) => self.submit(*submit),
            Command::Abort(id) => {
                if let Some(fetch) = self.fetches.remove(&id) {
                    fetch.attempts.into_iter().chain(fetch.serving).for_each(|number| self.close(number));
                }
            }
            Command::Grant(id) => self.granted(id),
            Command::Close => self.stopped = true,
        }
    }

    // ---- connections

    fn submit(&mut self, submit: Submit) {
        let (id, now) = (submit.id, self.now());
        let key: Arc<str> = Arc::from(submit.key.as_str());
        let fetch = Fetch { submit, key, dials: 0, attempts: Vec::new(), serving: None, times: Times::new(now) };
        let port = fetch.submit.port;
        let keys: Vec<Key> = fetch.addresses().iter().map(|&one| (one, port, Arc::clone(&fetch.key))).collect();
        self.fetches.insert(id, fetch);
        self.arm(now);
        while let Some(number) = self.pool.take(keys.iter()) {
            // Bytes that came before the request are no response to it.
            if self.links[number].link.read(&mut self.buffer) == Got::Later {
                return self.serve(number, id);
            }
            self.close(number);
        }
        self.dial(id, FetchError::new(Reason::Connect, "no address"));
    }

    fn arm(&mut self, now: f64) {
        if self.next_tick.is_infinite() {
            self.next_tick = now + tick_s(&self.config);
        }
    }

    /// Tries the next address; without one, the fetch fails with `error` unless attempts are in flight.
    fn dial(&mut self, id: u64, mut error: FetchError) {
        loop {
            let Some(fetch) = self.fetches.get_mut(&id) else { return };
            let Some(&address) = fetch.addresses().get(fetch.dials) else {
                if fetch.attempts.is_empty() {
                    self.fail(id, error);
                }
                return;
            };
            fetch.dials += 1;
            let dials = fetch.dials;
            match self.open(id, address) {
                Ok(number) => {
                    let at = self.now() + STAGGER_S;
                    let Some(fetch) = self.fetches.get_mut(&id) else { return };
                    fetch.attempts.push(number);
                    if dials < fetch.addresses().len() && fetch.submit.proxy.is_none() {
                        self.staggers.push_back((at, id, dials));
                    }
                    return;
                }
                Err(other) => error = other,
            }
        }
    }

    fn open(&mut self, id: u64, address: IpAddr) -> Result<usize, FetchError> {
        let Some(fetch) = self.fetches.get(&id) else {
            return Err(FetchError::new(Reason::Connect, "the fetch has ended"));
        };
        let (submit, verify) = (&fetch.submit, self.config.tls_verify);
        let mut config = || Arc::clone(self.tls.get_or_insert_with(|| client_config(verify)));
        let (tls_name, hop) = (submit.tls_name.as_deref(), submit.proxy.as_ref());
        let mut link = Link::dial(address, submit.port, tls_name, hop, &mut config)?;
        let entry = self.links.vacant_entry();
        let number = entry.key();
        self.poll
            .registry()
            .register(link.stream(), Token(number), Interest::READABLE | Interest::WRITABLE)
            .map_err(|error| FetchError::new(Reason::Connect, plain(&error)))?;
        entry.insert(Connection {
            link,
            key: (address, fetch.submit.port, Arc::clone(&fetch.key)),
            role: Role::Opening(id),
            exchange: None,
            covered: RESERVE_BYTES,
            waits: false,
            pending: Vec::new(),
            requests: 0,
            progress: 0,
            head_at: None,
            ended: false,
        });
        Ok(number)
    }

    fn close(&mut self, number: usize) {
        let connection = &mut self.links[number];
        if connection.role == Role::Closed {
            return;
        }
        if connection.role == Role::Idle {
            self.pool.remove(number);
        }
        connection.role = Role::Closed;
        let _ = self.poll.registry().deregister(connection.link.stream()); // the socket is closed in any case
        self.closed.push(number);
    }

    fn serve(&mut self, number: usize, id: u64) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        fetch.serving = Some(number);
        let connection = &mut self.links[number];
        connection.role = Role::Serving(id);
        let mut exchange = Exchange::new(fetch.submit.wanted.clone(), connection.requests > 0);
        exchange.collect_in(self.shared.take_spare());
        connection.exchange = Some(exchange);
        connection.requests += 1;
        connection.head_at = None;
        connection.covered = RESERVE_BYTES;
        let sent = connection.link.send(&std::mem::take(&mut fetch.submit.data));
        if fetch.submit.report_sent {
            self.events.push(Event::Sent(id));
        }
        if sent.is_err() || connection.link.has_tls() || connection.ended {
            self.again.push_back(number); // an end, or data that arrived with the handshake
        }
    }

    fn on_ready(&mut self, number: usize, ended: bool) {
        let Some(connection) = self.links.get_mut(number) else { return };
        connection.ended |= ended;
        match connection.role {
            Role::Closed => {}
            Role::Opening(id) => match connection.link.open() {
                Ok(false) => {}
                Ok(true) => {
                    let attempts = self.fetches.get_mut(&id).map(|fetch| std::mem::take(&mut fetch.attempts));
                    let others = attempts.into_iter().flatten().filter(|&other| other != number);
                    others.collect::<Vec<_>>().into_iter().for_each(|other| self.close(other));
                    self.serve(number, id);
                }
                Err(error) => {
                    self.close(number);
                    if let Some(fetch) = self.fetches.get_mut(&id) {
                        fetch.attempts.retain(|&other| other != number);
                    }
                    self.dial(id, error);
                }
            },
            Role::Idle => {
                if connection.ended || connection.link.read(&mut self.buffer) != Got::Later {
                    self.close(number); // the server has ended it, or speaks out of turn
                }
            }
            Role::Serving(id) => self.read(number, id),
        }
    }

    // ---- responses

    fn read(&mut self, number: usize, id: u64) {
        if self.links[number].waits {
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let pending = std::mem::take(&mut self.links[number].pending);
        let mut fed = if pending.is_empty() { Fed::More } else { self.feed(number, id, &pending) };
        let mut left = TURN_BYTES;
        while fed == Fed::More {
            let connection = &mut self.links[number];
            if connection.waits {
                fed = Fed::Waits;
                break;
            }
            let _ = connection.link.flush(); // an error shows in the read
            let size = match connection.link.read(&mut buffer) {
                Got::Bytes(size) => size,
                Got::Later => break,
                Got::End(end) => {
                    if let Some(exchange) = &mut connection.exchange {
                        exchange.end(&end);
                    }
                    fed = Fed::Done { clean: false };
                    break;
                }
            };
            connection.progress += 1;
            let (full, tls, ended) = (size == buffer.len(), connection.link.has_tls(), connection.ended);
            fed = self.feed(number, id, &buffer[..size]);
            if fed != Fed::More {
                // More bytes than the message has would be the start of the next response.
                if fed == (Fed::Done { clean: true }) && (full || tls) {
                    fed = Fed::Done { clean: self.links[number].link.read(&mut buffer) == Got::Later };
                }
                break;
            }
            if !full && !tls && !ended {
                break; // a short read: the socket is empty, and its next byte makes an event
            }
            left = left.saturating_sub(size);
            if left == 0 {
                self.again.push_back(number);
                break;
            }
        }
        self.buffer = buffer;
        if let Fed::Done { clean } = fed {
            self.finish(number, id, clean);
        }
    }

    /// Gives bytes to the reader. A coded body gets them in slices, so that its memory is reserved in between.
    fn feed(&mut self, number: usize, id: u64, data: &[u8]) -> Fed {
        let connection = &mut self.links[number];
        let Some(exchange) = connection.exchange.as_mut() else { return Fed::More };
        let mut rest = data;
        while !rest.is_empty() {
            let size = if exchange.coded() { rest.len().min(SLICE_BYTES) } else { rest.len() };
            let (slice, after) = rest.split_at(size);
            rest = after;
            let had_head = exchange.has_head();
            // A fault in a reader ends this fetch alone.
            let fed = catch_unwind(AssertUnwindSafe(|| exchange.feed(&self.config, slice)));
            if !had_head && exchange.has_head() {
                connection.head_at = Some(Instant::now());
            }
            match fed {
                Ok(true) => return Fed::Done { clean: rest.is_empty() },
                Err(_) => {
                    exchange.end(&End::Lost("fault in a reader".into()));
                    return Fed::Done { clean: false };
                }
                Ok(false) => {}
            }
            if let Some(size) = exchange.needs(connection.covered) {
                connection.covered = size;
                connection.waits = true;
                connection.pending = rest.to_vec();
                self.events.push(Event::Reserve { id, size, arrived: exchange.size() });
                return Fed::Waits;
            }
        }
        Fed::More
    }

    /// The memory of a body is reserved.
    fn granted(&mut self, id: u64) {
        let Some(number) = self.fetches.get(&id).and_then(|fetch| fetch.serving) else { return };
        self.links[number].waits = false;
        self.again.push_back(number);
    }

    /// The response is complete or has failed; `clean`: nothing follows it.
    fn finish(&mut self, number: usize, id: u64, clean: bool) {
        let now = self.now();
        let connection = &mut self.links[number];
        let Some(exchange) = connection.exchange.take() else { return };
        let response = exchange.into_response();
        let (address, head_at) = (Some(connection.key.0), connection.head_at);
        if response.reuse && clean && !connection.ended {
            connection.role = Role::Idle;
            connection.waits = false;
            let key = connection.key.clone();
            if let Some(evicted) = self.pool.put(key, number, now) {
                self.close(evicted);
            }
        } else {
            self.close(number);
        }
        self.fetches.remove(&id);
        self.events.push(Event::Done(Box::new(Done { id, response, address, head_at })));
    }

    /// A fetch ends without a connection.
    fn fail(&mut self, id: u64, error: FetchError) {
        let Some(fetch) = self.fetches.remove(&id) else { return };
        let address = fetch.dials.checked_sub(1).and_then(|last| fetch.addresses().get(last)).copied();
        fetch.attempts.into_iter().for_each(|number| self.close(number));
        let response = Response { error: Some(error), ..Response::default() };
        self.events.push(Event::Done(Box::new(Done { id, response, address, head_at: None })));
    }

    // ---- time

    fn on_time(&mut self) {
        let now = self.now();
        while let Some(&(at, id, dials)) = self.staggers.front() {
            if at > now {
                break;
            }
            self.staggers.pop_front();
            let slow = |fetch: &Fetch| fetch.dials == dials && !fetch.attempts.is_empty();
            if self.fetches.get(&id).is_some_and(slow) {
                self.dial(id, FetchError::new(Reason::Connect, "no address"));
            }
        }
        if now < self.next_tick {
            return;
        }
        for number in self.pool.expired(now) {
            self.close(number);
        }
        self.check_limits(now);
        self.next_tick = f64::INFINITY;
        if !self.fetches.is_empty() || !self.pool.is_empty() {
            self.arm(now);
        }
    }

    fn check_limits(&mut self, now: f64) {
        let mut late = Vec::new();
        for (&id, fetch) in &mut self.fetches {
            let serving = fetch.serving.map(|number| &self.links[number]);
            let exchange = serving.and_then(|one| one.exchange.as_ref());
            let phase = match exchange {
                None if fetch.attempts.iter().any(|&one| self.links[one].link.in_tunnel()) => {
                    Phase::Tunnel(fetch.dials)
                }
                None => Phase::Connect(fetch.dials),
                Some(exchange) if exchange.has_head() => Phase::Body,
                Some(_) => Phase::Headers,
            };
            if serving.is_some_and(|one| one.waits) {
                if let Some(detail) = fetch.times.passed_in_wait(&self.config, now) {
                    late.push((id, detail));
                }
                continue;
            }
            let progress = serving.map_or(0, |one| one.progress);
            let received = exchange.map_or(0, Exchange::received_bytes);
            if let Some(detail) = fetch.times.passed(&self.config, now, phase, progress, received) {
                late.push((id, detail));
            }
        }
        for (id, detail) in late {
            self.time_out(id, detail);
        }
    }

    fn time_out(&mut self, id: u64, detail: String) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        if let Some(number) = fetch.serving {
            if let Some(exchange) = self.links[number].exchange.as_mut() {
                if detail.starts_with("memory:") {
                    exchange.lacks_memory(&detail);
                } else {
                    exchange.time_out(&detail);
                }
            }
            return self.finish(number, id, false);
        }
        let error = FetchError::new(Reason::Timeout, detail);
        if !error.detail.starts_with("connect:") {
            return self.fail(id, error);
        }
        let attempts = std::mem::take(&mut fetch.attempts);
        attempts.into_iter().for_each(|number| self.close(number));
        self.dial(id, error);
    }
}
