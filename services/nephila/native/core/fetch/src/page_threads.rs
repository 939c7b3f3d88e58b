//! Bodies are read by a `PageReader` before their receiver sees them: in page threads beside the I/O thread, or where
//! there is none, by the receiver when it takes the end of the fetch.

use std::collections::VecDeque;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::messages::{Done, Event, Shared};
use crate::pages::PageReader;

/// Whether a reader has a use for this end of a fetch.
pub fn wants(reader: &dyn PageReader, done: &Done) -> bool {
    done.page.is_some() && done.response.error.is_none() && reader.wants(&done.response)
}

/// Adds the reading of the body to the end of a fetch that the reader wants.
pub fn read(reader: &dyn PageReader, done: &mut Done) {
    let work = || reader.read(done.page.as_ref()?, &done.response);
    let found = catch_unwind(AssertUnwindSafe(work)).unwrap_or_default();
    if let (Some((_, size)), Some(share)) = (&found, &mut done.share) {
        share.grow(*size);
    }
    done.reading = found.map(|(reading, _)| reading);
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Box<Done>>,
    closed: bool,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next body; None: closed.
    fn next(&self) -> Option<Box<Done>> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(done) = state.waiting.pop_front() {
                return Some(done);
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The threads end when it is dropped; bodies that wait are dropped.
pub struct PageThreads {
    reader: Arc<dyn PageReader>,
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
    /// Of this turn: an event of the I/O thread precedes the end of its fetch.
    held: VecDeque<Box<Done>>,
}

impl PageThreads {
    pub fn start(reader: Arc<dyn PageReader>, threads: usize, shared: &Arc<Shared>) -> io::Result<PageThreads> {
        let queue = Arc::<Queue>::default();
        let start = |_| {
            let (reader, queue, shared) = (Arc::clone(&reader), Arc::clone(&queue), Arc::clone(shared));
            std::thread::Builder::new().name("page".into()).spawn(move || run(&*reader, &queue, &shared))
        };
        let threads = (0..threads).map(start).collect::<io::Result<Vec<_>>>()?;
        Ok(PageThreads { reader, queue, threads, held: VecDeque::new() })
    }

    /// Whether a page thread has a use for this end of a fetch.
    pub fn wants(&self, done: &Done) -> bool {
        wants(&*self.reader, done)
    }

    /// Keeps the end of a fetch until `flush`, to be read.
    pub fn hold(&mut self, done: Box<Done>) {
        self.held.push_back(done);
    }

    /// Gives the bodies of this turn to the threads.
    pub fn flush(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let count = self.held.len();
        self.queue.lock().waiting.append(&mut self.held);
        (0..count.min(self.threads.len())).for_each(|_| self.queue.filled.notify_one());
    }
}

impl Drop for PageThreads {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.filled.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn run(reader: &dyn PageReader, queue: &Queue, shared: &Shared) {
    while let Some(mut done) = queue.next() {
        read(reader, &mut done);
        shared.publish(&mut vec![Event::Done(done)]);
    }
}
