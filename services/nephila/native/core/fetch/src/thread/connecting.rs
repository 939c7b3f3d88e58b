//! Connections: taken from the pool or opened, address after address, and given to their fetch.

use std::net::IpAddr;
use std::sync::Arc;

use mio::{Interest, Token};

use super::{Connection, Fetch, Key, Role, Worker};
use crate::config::{RESERVE_BYTES, STAGGER_S};
use crate::deadlines::{tick_s, Times};
use crate::error::{FetchError, Reason};
use crate::exchange::Exchange;
use crate::link::{Got, Link};
use crate::messages::{Event, Submit};
use crate::tls::client_config;
use crate::wire::plain;

/// Whether a server ends an idle connection by a response: 408 (RFC 9110 15.5.9).
fn says_timeout(data: &[u8]) -> bool {
    data.starts_with(b"HTTP/1.") && data.get(8..12) == Some(b" 408")
}

impl Worker {
    pub(super) fn submit(&mut self, submit: Submit) {
        let (id, now) = (submit.id, self.now());
        let key: Arc<str> = Arc::from(submit.key.as_str());
        let fetch = Fetch { submit, key, dials: 0, attempts: Vec::new(), serving: None, times: Times::new(now) };
        let port = fetch.submit.port;
        let keys: Vec<Key> = fetch.addresses().iter().map(|&one| (one, port, Arc::clone(&fetch.key))).collect();
        self.fetches.insert(id, fetch);
        self.arm(now);
        while let Some(number) = self.pool.take(keys.iter(), now) {
            if !self.speaks_out_of_turn(number) {
                return self.serve(number, id);
            }
            self.close(number);
        }
        self.dial(id, FetchError::new(Reason::Connect, "no address"));
    }

    /// Whether an idle connection cannot serve a request: its server has ended it, or sends bytes before the request,
    /// which are no response to it. After such bytes no connection of its key is used twice: the next ones might come
    /// behind a request.
    fn speaks_out_of_turn(&mut self, number: usize) -> bool {
        let connection = &mut self.links[number];
        connection.link.begin_turn();
        let got = connection.link.read(&mut self.buffer);
        if let Got::Bytes(size) = got {
            if !says_timeout(&self.buffer[..size]) {
                let (key, now) = (connection.key.clone(), self.now());
                self.pool.distrust(key, now);
            }
        }
        got != Got::Later
    }

    pub(super) fn arm(&mut self, now: f64) {
        if self.next_tick.is_infinite() {
            self.next_tick = now + tick_s(&self.config);
        }
    }

    /// Tries the next address; without one, the fetch fails with `error` unless attempts are in flight.
    pub(super) fn dial(&mut self, id: u64, mut error: FetchError) {
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

    pub(super) fn open(&mut self, id: u64, address: IpAddr) -> Result<usize, FetchError> {
        let Some(fetch) = self.fetches.get(&id) else {
            return Err(FetchError::new(Reason::Connect, "the fetch has ended"));
        };
        let (submit, settings) = (&fetch.submit, &self.config);
        let load = || client_config(settings.tls_verify, &settings.ca_file);
        let mut config = || Arc::clone(self.tls.get_or_insert_with(load));
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
            stalled: false,
            pending: Vec::new(),
            requests: 0,
            progress: 0,
            head_at: None,
            ended: false,
        });
        Ok(number)
    }

    pub(super) fn close(&mut self, number: usize) {
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

    pub(super) fn serve(&mut self, number: usize, id: u64) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        fetch.serving = Some(number);
        let connection = &mut self.links[number];
        connection.role = Role::Serving(id);
        connection.exchange = Some(Exchange::new(fetch.submit.wanted.clone(), connection.requests > 0));
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

    pub(super) fn on_ready(&mut self, number: usize, ended: bool) {
        let Some(connection) = self.links.get_mut(number) else { return };
        connection.ended |= ended;
        connection.link.begin_turn();
        match connection.role {
            Role::Closed => {}
            Role::Opening(id) => match connection.link.open() {
                Ok(false) => {
                    if connection.link.turn_is_over() {
                        self.again.push_back(number);
                    }
                }
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
                if connection.ended || self.speaks_out_of_turn(number) {
                    self.close(number);
                }
            }
            Role::Serving(id) => self.read(number, id),
        }
    }
}
