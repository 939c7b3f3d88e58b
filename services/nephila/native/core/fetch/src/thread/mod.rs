//! The I/O thread: sockets, readers, pool and deadlines of all fetches. The only file that waits.
//!
//! Invariant: a connection opens for one fetch, serves one fetch, or is idle and in the pool. A slot of `links` is
//! reused only in a later turn, so an event of a closed socket never reaches another one.

mod connecting;
mod limits;
mod reading;

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use rustls::ClientConfig;
use slab::Slab;

use crate::config::{Config, MAX_DIALS, SENT_S};
use crate::deadlines::Times;
use crate::exchange::Exchange;
use crate::link::Link;
use crate::messages::{Command, Event, Shared, Submit};
use crate::page_threads::PageThreads;
use crate::pool::Pool;

pub const WAKE: Token = Token(usize::MAX);
/// Bytes read at once.
const READ_BYTES: usize = 128 << 10;

type Key = (IpAddr, u16, Arc<str>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Opening(u64),
    Serving(u64),
    Idle,
    Closed,
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
    /// Its response begins when bodies that have arrived leave their bound.
    stalled: bool,
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
    /// Connections with `stalled`.
    stalled: Vec<usize>,
    events: Vec<Event>,
    /// When `events` are published, if none of them is urgent.
    events_due: f64,
    pages: Option<PageThreads>,
    buffer: Vec<u8>,
    started: Instant,
    next_tick: f64,
    stopped: bool,
}

impl Worker {
    pub fn new(config: Config, poll: Poll, shared: Arc<Shared>, pages: Option<PageThreads>) -> Worker {
        let pool = Pool::new(config.pool_size, config.pool_most, config.keepalive_s, config.rest_s);
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
            stalled: Vec::new(),
            events: Vec::new(),
            events_due: f64::INFINITY,
            pages,
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
            self.resume();
            for _ in 0..self.again.len() {
                if let Some(number) = self.again.pop_front() {
                    self.on_ready(number, false);
                }
            }
            self.on_time();
            self.shared.note_turn(self.pool.len());
            for number in self.closed.drain(..) {
                self.links.remove(number);
            }
            self.publish();
            if let Some(pages) = &mut self.pages {
                pages.flush();
            }
        }
    }

    /// Hands events over; the first of a batch wakes the receiver.
    fn publish(&mut self) {
        if self.events.is_empty() {
            self.events_due = f64::INFINITY; // the events of a fetch may be taken back when it ends
            return;
        }
        let now = self.now();
        let urgent = self.events.iter().any(|event| !matches!(event, Event::Sent(_)));
        if urgent || now >= self.events_due {
            self.shared.publish(&mut self.events);
            self.events_due = f64::INFINITY;
        } else if self.events_due.is_infinite() {
            self.events_due = now + SENT_S;
        }
    }

    fn wait(&self) -> Option<Duration> {
        if !self.again.is_empty() {
            return Some(Duration::ZERO);
        }
        let stagger = self.staggers.front().map_or(f64::INFINITY, |first| first.0);
        let at = stagger.min(self.next_tick).min(self.events_due);
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
}
