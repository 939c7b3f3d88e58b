//! What passes between the handle of a fetcher, its I/O thread and its page threads: commands in, events out, and the
//! lists that hold them.

use std::io::Write;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::ahead::{Ahead, Share};
use crate::exchange::{Response, Wanted};
use crate::pages::{PageRequest, Reading};
use crate::tunnel::Hop;

/// Bytes of buffers that are kept for further bodies.
const SPARE_BYTES: usize = 2 << 20;
const SPARE_LEAST: usize = 4 << 10;
const SPARE_MOST: usize = 256 << 10;

/// One request. `addresses` are dialled, and nothing else.
#[derive(Debug)]
pub struct Submit {
    pub id: u64,
    pub addresses: Vec<IpAddr>,
    pub port: u16,
    /// Name in the certificate of the server; None: no TLS.
    pub tls_name: Option<String>,
    /// None: a direct connection. Otherwise the addresses and the port are those of the proxy.
    pub proxy: Option<Hop>,
    /// What tells connections to one address and port apart.
    pub key: String,
    /// Head and body as sent.
    pub data: Vec<u8>,
    pub wanted: Wanted,
    /// Whether an event is needed once the request has been written.
    pub report_sent: bool,
    /// For the reader of the body; None: it is not read.
    pub page: Option<PageRequest>,
}

pub enum Command {
    Submit(Box<Submit>),
    Abort(u64),
    /// The memory of a body is reserved: reading continues.
    Grant(u64),
    Close,
}

#[derive(Debug)]
pub struct Done {
    pub id: u64,
    pub response: Response,
    /// The address of the connection, or the last one that was dialled.
    pub address: Option<IpAddr>,
    /// When the head was complete.
    pub head_at: Option<Instant>,
    /// Of the request.
    pub page: Option<PageRequest>,
    /// What the reader has made of the body.
    pub reading: Option<Reading>,
    /// Of the bound for bodies that have arrived.
    pub share: Option<Share>,
}

#[derive(Debug)]
pub enum Event {
    /// The request has been written. It is left out where a response follows within SENT_S.
    Sent(u64),
    /// A body needs memory for `size` bytes, of which `arrived` are there; nothing is read until `grant`.
    Reserve {
        id: u64,
        size: u64,
        arrived: u64,
    },
    Done(Box<Done>),
}

/// Empty buffers, and the sum of their sizes.
#[derive(Default)]
struct Spare {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

/// What handle and threads share.
pub struct Shared {
    pub(crate) commands: Mutex<Vec<Command>>,
    pub(crate) events: Mutex<Vec<Event>>,
    /// Buffers of bodies that were handed over, for further ones.
    spare: Mutex<Spare>,
    pub ahead: Arc<Ahead>,
    pub(crate) idle: AtomicUsize,
    pub(crate) turns: AtomicU64,
    bell: UnixStream,
}

/// A list is valid after a panic elsewhere: each change is one push or take.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// `bell`: a byte on it wakes the receiver of events.
    pub(crate) fn new(ahead: Arc<Ahead>, bell: UnixStream) -> Arc<Shared> {
        Arc::new(Shared {
            commands: Mutex::default(),
            events: Mutex::default(),
            spare: Mutex::default(),
            idle: Default::default(),
            turns: Default::default(),
            ahead,
            bell,
        })
    }

    /// Takes all commands.
    pub fn take_commands(&self) -> Vec<Command> {
        std::mem::take(&mut lock(&self.commands))
    }

    /// Hands events over; the first ones since the last `drain` wake the receiver.
    pub fn publish(&self, new: &mut Vec<Event>) {
        let first = {
            let mut events = lock(&self.events);
            let first = events.is_empty();
            events.append(new);
            first
        };
        if first {
            let _ = (&self.bell).write(&[1]); // a full socket wakes as well
        }
    }

    /// A buffer for a body. Memory that is returned to the allocator and taken again by another thread costs a page
    /// fault per 4 KiB, more than the copy of a body.
    pub fn take_spare(&self) -> Vec<u8> {
        let mut spare = lock(&self.spare);
        let buffer = spare.buffers.pop().unwrap_or_default();
        spare.bytes -= buffer.capacity();
        buffer
    }

    /// A body was handed over.
    pub fn give_spare(&self, buffer: Vec<u8>) {
        if !(SPARE_LEAST..=SPARE_MOST).contains(&buffer.capacity()) {
            return;
        }
        let mut spare = lock(&self.spare);
        if spare.bytes + buffer.capacity() <= SPARE_BYTES {
            spare.bytes += buffer.capacity();
            spare.buffers.push(buffer);
        }
    }

    /// A turn of the I/O thread ends.
    pub fn note_turn(&self, idle_connections: usize) {
        self.idle.store(idle_connections, Relaxed);
        self.turns.fetch_add(1, Relaxed);
    }
}
