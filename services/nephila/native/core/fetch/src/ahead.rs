//! One bound for bodies: those that arrive, wait for a page thread, are read, or wait for their receiver with what was
//! made of them.
//!
//! Beyond the bound the I/O thread begins no further response; those that have begun continue, and the bytes of the
//! others stay in their sockets. So memory is the bound and the rest of what has begun: at most RESERVE_BYTES a
//! connection, above that what the memory budget has granted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use mio::Waker;

/// Sum of the sizes of the bodies, and of what page threads have made of them: some 50 pages of 79 KB before they are
/// read, 25 afterwards. The loop takes about as many in a turn.
pub const AHEAD_BYTES: usize = 4 << 20;

/// The bytes of all shares.
#[derive(Debug)]
pub struct Ahead {
    bytes: AtomicUsize,
    /// Of the I/O thread.
    waker: Arc<Waker>,
}

impl Ahead {
    pub fn new(waker: Arc<Waker>) -> Arc<Ahead> {
        Arc::new(Ahead { bytes: AtomicUsize::new(0), waker })
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whether no further response may begin. A share that leaves the bound wakes the I/O thread.
    pub fn is_full(&self) -> bool {
        self.bytes() >= AHEAD_BYTES
    }

    pub fn share(self: &Arc<Ahead>, bytes: usize) -> Share {
        let mut share = Share { ahead: Arc::clone(self), bytes: 0 };
        share.set(bytes);
        share
    }
}

/// A part of the bound, until it is dropped.
#[derive(Debug)]
pub struct Share {
    ahead: Arc<Ahead>,
    bytes: usize,
}

impl Share {
    pub fn grow(&mut self, bytes: usize) {
        self.set(self.bytes + bytes);
    }

    /// The size of this share changes.
    pub fn set(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        self.ahead.bytes.fetch_add(bytes.saturating_sub(self.bytes), Ordering::AcqRel);
        let before = self.ahead.bytes.fetch_sub(less, Ordering::AcqRel);
        self.bytes = bytes;
        if before >= AHEAD_BYTES && before - less < AHEAD_BYTES {
            let _ = self.ahead.waker.wake(); // an eventfd that is full wakes as well
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}
