//! The handle of the I/O thread: commands in, events out. One wake-up of the receiver serves a batch of events.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::thread::JoinHandle;

use mio::{Poll, Waker};

use crate::ahead::Ahead;
use crate::config::Config;
use crate::messages::{lock, Command, Event, Shared, Submit};
use crate::page_threads::PageThreads;
use crate::pages::PageReader;
use crate::thread::{Worker, WAKE};

/// Ends its thread when it is dropped.
pub struct Fetcher {
    shared: Arc<Shared>,
    waker: Arc<Waker>,
    listener: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Fetcher {
    /// `pages`: the reader of bodies and the number of its threads.
    pub fn start(config: Config, pages: Option<(Arc<dyn PageReader>, usize)>) -> io::Result<Fetcher> {
        let (listener, bell) = UnixStream::pair()?;
        listener.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        let shared = Shared::new(Ahead::new(Arc::clone(&waker)), bell);
        let pages = match pages {
            Some((reader, threads)) => Some(PageThreads::start(reader, threads, &shared)?),
            None => None,
        };
        let worker = Worker::new(config, poll, Arc::clone(&shared), pages);
        let thread = std::thread::Builder::new().name("fetch".into()).spawn(move || worker.run())?;
        Ok(Fetcher { shared, waker, listener, thread: Some(thread) })
    }

    fn command(&self, command: Command) {
        lock(&self.shared.commands).push(command);
        self.flush();
    }

    /// Starts a fetch at the next `flush`.
    pub fn submit(&self, submit: Submit) {
        lock(&self.shared.commands).push(Command::Submit(Box::new(submit)));
    }

    /// Wakes the I/O thread.
    pub fn flush(&self) {
        let _ = self.waker.wake(); // an eventfd that is full wakes as well
    }

    pub fn abort(&self, id: u64) {
        self.command(Command::Abort(id));
    }

    pub fn grant(&self, id: u64) {
        self.command(Command::Grant(id));
    }

    /// Takes all events. Called when `wake_fd` is readable.
    pub fn drain(&self) -> Vec<Event> {
        let mut bells = [0; 64];
        let _ = (&self.listener).read(&mut bells); // empty: a call without a wake-up
        std::mem::take(&mut lock(&self.shared.events))
    }

    /// For returning buffers of bodies.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    pub fn wake_fd(&self) -> RawFd {
        self.listener.as_raw_fd()
    }

    pub fn idle_connections(&self) -> usize {
        self.shared.idle.load(Relaxed)
    }

    /// Turns of the I/O thread so far: each one is a wake-up.
    pub fn turns(&self) -> u64 {
        self.shared.turns.load(Relaxed)
    }

    /// Closes all connections and waits for the end of the thread.
    pub fn close(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.command(Command::Close);
            let _ = thread.join();
        }
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.close();
    }
}
