//! Responses: bytes of a connection to its reader, and the end of a fetch.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Instant;

use super::{Role, Worker};
use crate::error::FetchError;
use crate::exchange::{End, Exchange, Response};
use crate::link::Got;
use crate::messages::{Done, Event};

/// Bytes of a coded body between two looks at its memory.
const SLICE_BYTES: usize = 16 << 10;

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

impl Worker {
    pub(super) fn read(&mut self, number: usize, id: u64) {
        if self.links[number].waits || self.stalls(number) {
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let pending = std::mem::take(&mut self.links[number].pending);
        let mut fed = self.feed(number, id, &pending);
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
                Got::TurnOver => {
                    self.again.push_back(number);
                    break;
                }
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
        }
        self.buffer = buffer;
        if let Fed::Done { clean } = fed {
            self.finish(number, id, clean);
        }
    }

    /// Whether a response has to wait with its first byte: other bodies have arrived and fill their bound.
    fn stalls(&mut self, number: usize) -> bool {
        let connection = &mut self.links[number];
        if connection.exchange.as_ref().map_or(true, Exchange::begun) || !self.shared.ahead.is_full() {
            return false;
        }
        if !connection.stalled {
            connection.stalled = true;
            self.stalled.push(number);
        }
        true
    }

    /// Responses that have waited begin in this turn, as long as the bound allows it.
    pub(super) fn resume(&mut self) {
        if self.stalled.is_empty() || self.shared.ahead.is_full() {
            return;
        }
        for number in self.stalled.drain(..) {
            if let Some(connection) = self.links.get_mut(number).filter(|one| one.stalled) {
                connection.stalled = false;
                self.again.push_back(number);
            }
        }
    }

    /// Gives bytes to the reader. A coded body gets them in slices, so that its memory is reserved in between.
    fn feed(&mut self, number: usize, id: u64, data: &[u8]) -> Fed {
        let connection = &mut self.links[number];
        let Some(exchange) = connection.exchange.as_mut() else { return Fed::More };
        if !data.is_empty() && !exchange.begun() {
            exchange.collect_in(self.shared.take_spare());
        }
        let mut rest = data;
        while !rest.is_empty() || exchange.has_backlog() {
            let size = match exchange.has_backlog() {
                true => 0,
                false if exchange.coded() => rest.len().min(SLICE_BYTES),
                false => rest.len(),
            };
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
    pub(super) fn granted(&mut self, id: u64) {
        let Some(number) = self.fetches.get(&id).and_then(|fetch| fetch.serving) else { return };
        self.links[number].waits = false;
        self.again.push_back(number);
    }

    /// The response is complete or has failed; `clean`: nothing follows it.
    pub(super) fn finish(&mut self, number: usize, id: u64, clean: bool) {
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
        let page = self.fetches.remove(&id).and_then(|fetch| fetch.submit.page);
        let size = response.body.len() + response.wire_body.as_ref().map_or(0, Vec::len);
        let mut done = Box::new(Done { id, response, address, head_at, page, reading: None, share: None });
        if done.response.head.status != 0 {
            self.events.retain(|event| !matches!(event, Event::Sent(of) if *of == id));
            // follows from the response
        }
        done.share = Some(self.shared.ahead.share(size));
        match &mut self.pages {
            Some(pages) if pages.wants(&done) => pages.hold(done),
            _ => self.events.push(Event::Done(done)),
        }
    }

    /// A fetch ends without a connection.
    pub(super) fn fail(&mut self, id: u64, error: FetchError) {
        let Some(fetch) = self.fetches.remove(&id) else { return };
        let address = fetch.dials.checked_sub(1).and_then(|last| fetch.addresses().get(last)).copied();
        fetch.attempts.into_iter().for_each(|number| self.close(number));
        let response = Response { error: Some(error), ..Response::default() };
        let done = Done { id, response, address, head_at: None, page: None, reading: None, share: None };
        self.events.push(Event::Done(Box::new(done)));
    }
}
