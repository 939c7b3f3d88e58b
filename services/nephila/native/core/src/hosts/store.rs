//! The table of hosts: states, queues per job, the workbench. A queue is partly in memory, partly in runs.
//!
//! Invariants (`check`): a queue is in the list of its host by rising job and is not empty; it has at most one slice per
//! run; a slice begins with a living entry and has its sort key; slices are linked by rising key. So the next URL of a
//! queue is known without reading a tail.
//!
//! Ten million hosts wait, and few have more than a name and one URL: a row has no room for what most hosts lack. States
//! and heaps are rows of their own, and rows name each other by index.

use std::collections::btree_map::{BTreeMap, Entry};

use super::bench::Bench;
use super::disk::Disk;
use super::fault::{wrong, Result};
use super::names::{self, Names};
use super::pending::{find, Entry as Url, Pending};
use super::run::{Window, ENTRY};
use super::slab::{Slab, NONE};

pub const ORDERS: i64 = 1 << 24;
/// As many URLs may ever be queued: half of what 40 bits hold, so that counting down never meets counting up.
pub const ARRIVALS: u64 = 1 << 39;
pub const ARRIVAL_MASK: u64 = (1 << 40) - 1;
pub const LONGEST: usize = 65_536;
pub const LONGEST_BLOB: usize = 1 << 24;
pub const KEY: usize = 16;
/// Places near the head of a queue that `take` looks at before it looks everywhere.
const NEAR: usize = 64;
const GONE: u32 = NONE - 1;

pub enum Blob {
    Memory(Box<[u8]>),
    Disk { run: u16, length: u32, offset: u64 },
}

impl Default for Blob {
    fn default() -> Self {
        Blob::Memory(Box::default())
    }
}

pub struct Host {
    /// Its first queue, NONE, or GONE for an unused id.
    pub first: u32,
    /// Its state in `blobs`, or NONE.
    pub blob: u32,
}

pub struct Queue {
    /// Its heap in `heaps`, or NONE when no URL of it is in memory.
    pub pending: u32,
    pub next: u32,
    pub slices: u32,
    pub job: u32,
}

/// Packed: 34 bytes instead of 40, and most queues have one.
#[derive(Clone, Copy)]
#[repr(C, packed(2))]
pub struct Slice {
    pub offset: u64,
    pub end: u64,
    pub key: u64,
    pub live: u32,
    pub next: u32,
    pub run: u16,
}

pub struct Store {
    pub names: Names,
    pub hosts: Vec<Host>,
    pub blobs: Slab<Blob>,
    pub heaps: Slab<Pending>,
    pub queues: Slab<Queue>,
    pub slices: Slab<Slice>,
    pub bench: Bench,
    /// Queued URLs by job; a job without any is not here.
    pub jobs: BTreeMap<u32, u64>,
    pub arrivals: u64,
    /// URLs and blobs that no run has, and the bytes they will take there.
    pub fresh_urls: u64,
    pub fresh_blobs: u64,
    pub fresh_bytes: u64,
    pub disk: Disk,
    /// Bytes of older runs that a checkpoint writes again, whole queues: what bounds its pause.
    pub merge_bytes: u64,
    /// The host at which the merge goes on in the next checkpoint.
    pub merged_to: u32,
    pub window: Window,
}

/// Where the next URL of a queue is.
enum Head {
    Memory,
    Disk(u32),
}

impl Store {
    pub fn new(disk: Disk, merge_bytes: u64) -> Store {
        Store {
            names: Names::default(),
            hosts: Vec::new(),
            blobs: Slab::default(),
            heaps: Slab::default(),
            queues: Slab::default(),
            slices: Slab::default(),
            bench: Bench::default(),
            jobs: BTreeMap::new(),
            arrivals: 0,
            fresh_urls: 0,
            fresh_blobs: 0,
            fresh_bytes: 0,
            disk,
            merge_bytes,
            merged_to: 0,
            window: Window::new(1 << 14),
        }
    }

    // Hosts.

    pub fn known(&self, host: i64) -> Result<u32> {
        match u32::try_from(host) {
            Ok(id) if self.hosts.get(id as usize).is_some_and(|host| host.first != GONE) => Ok(id),
            _ => wrong(format!("no host has the id {host}")),
        }
    }

    pub fn host(&mut self, name: &str) -> Result<u32> {
        if let Some(id) = self.names.find(name.as_bytes()) {
            return Ok(id);
        }
        if name.len() > names::LONGEST {
            return wrong("a host name has at most 65,535 bytes");
        }
        Ok(self.add_host(name.as_bytes()))
    }

    /// A host whose name is not there and not too long.
    pub fn add_host(&mut self, name: &[u8]) -> u32 {
        let id = self.names.add(name);
        let fresh = Host { first: NONE, blob: NONE };
        match self.hosts.get_mut(id as usize) {
            Some(slot) => *slot = fresh,
            None => self.hosts.push(fresh),
        }
        id
    }

    pub fn forget(&mut self, host: u32) -> bool {
        if self.hosts[host as usize].first != NONE || self.bench.at(host).is_some() {
            return false;
        }
        self.drop_blob(host);
        self.names.remove(host);
        self.hosts[host as usize].first = GONE;
        true
    }

    pub fn blob(&self, host: u32) -> Option<&Blob> {
        let index = self.hosts[host as usize].blob;
        (index != NONE).then(|| &self.blobs[index])
    }

    /// A host without a state gets one.
    pub fn set_blob(&mut self, host: u32, blob: Blob) {
        self.hosts[host as usize].blob = self.blobs.add(blob);
    }

    pub fn state(&mut self, host: u32) -> Result<Vec<u8>> {
        let index = self.hosts[host as usize].blob;
        if index == NONE {
            return Ok(Vec::new());
        }
        match &self.blobs[index] {
            Blob::Memory(bytes) => Ok(bytes.to_vec()),
            Blob::Disk { run, length, offset } => {
                let run = self.disk.run(*run);
                Ok(self.window.frame(run, *offset, *offset + u64::from(*length))?.data().to_vec())
            }
        }
    }

    pub fn set_state(&mut self, host: u32, blob: &[u8]) -> Result<()> {
        if blob.len() > LONGEST_BLOB {
            return wrong("a host's state has at most 16 MiB");
        }
        self.drop_blob(host);
        if !blob.is_empty() {
            self.fresh_blobs += 1;
            self.fresh_bytes += ENTRY + blob.len() as u64;
            self.set_blob(host, Blob::Memory(blob.into()));
        }
        Ok(())
    }

    fn drop_blob(&mut self, host: u32) {
        let index = std::mem::replace(&mut self.hosts[host as usize].blob, NONE);
        if index == NONE {
            return;
        }
        match self.blobs.take(index) {
            Blob::Memory(bytes) => {
                self.fresh_blobs -= 1;
                self.fresh_bytes -= ENTRY + bytes.len() as u64;
            }
            Blob::Disk { run, length, .. } => self.disk.run_mut(run).bytes_left -= u64::from(length),
        }
    }

    // Queues.

    pub fn queues_of(&self, host: u32) -> impl Iterator<Item = &Queue> + '_ {
        let mut at = self.hosts[host as usize].first;
        std::iter::from_fn(move || {
            let queue = (at != NONE).then(|| &self.queues[at])?;
            at = queue.next;
            Some(queue)
        })
    }

    pub fn slices_of(&self, queue: &Queue) -> impl Iterator<Item = u32> + '_ {
        let mut at = queue.slices;
        std::iter::from_fn(move || {
            let found = (at != NONE).then_some(at)?;
            at = self.slices[found].next;
            Some(found)
        })
    }

    fn find(&self, host: u32, job: u32) -> Option<u32> {
        let mut at = self.hosts[host as usize].first;
        while at != NONE && self.queues[at].job != job {
            at = self.queues[at].next;
        }
        (at != NONE).then_some(at)
    }

    pub fn queue(&self, host: u32, job: u32) -> Option<&Queue> {
        self.find(host, job).map(|queue| &self.queues[queue])
    }

    /// The URLs of a queue that are in memory, as a heap.
    pub fn pending(&self, queue: &Queue) -> &[Url] {
        if queue.pending == NONE {
            &[]
        } else {
            self.heaps[queue.pending].entries()
        }
    }

    pub fn drop_pending(&mut self, queue: u32) {
        let heap = std::mem::replace(&mut self.queues[queue].pending, NONE);
        if heap != NONE {
            self.heaps.take(heap);
        }
    }

    /// URLs of a queue. O(its slices).
    pub fn length(&self, queue: &Queue) -> usize {
        let on_disk: usize = self.slices_of(queue).map(|slice| self.slices[slice].live as usize).sum();
        self.pending(queue).len() + on_disk
    }

    pub fn is_empty(&self, queue: &Queue) -> bool {
        queue.pending == NONE && queue.slices == NONE
    }

    /// The queue of a job on a host, made in its place when there is none.
    pub fn queue_for(&mut self, host: u32, job: u32) -> u32 {
        let (mut before, mut at) = (NONE, self.hosts[host as usize].first);
        while at != NONE && self.queues[at].job < job {
            (before, at) = (at, self.queues[at].next);
        }
        if at != NONE && self.queues[at].job == job {
            return at;
        }
        let fresh = Queue { pending: NONE, next: at, slices: NONE, job };
        let made = self.queues.add(fresh);
        self.link(host, before, made);
        made
    }

    fn link(&mut self, host: u32, before: u32, queue: u32) {
        match before {
            NONE => self.hosts[host as usize].first = queue,
            _ => self.queues[before].next = queue,
        }
    }

    /// Take an empty queue out of its host's list.
    fn unlink(&mut self, host: u32, queue: u32) {
        let (mut before, mut at) = (NONE, self.hosts[host as usize].first);
        while at != queue {
            (before, at) = (at, self.queues[at].next);
        }
        self.link(host, before, self.queues[queue].next);
        self.queues.remove(queue);
    }

    pub fn check_push(&self, job: i64, order: i64, length: usize) -> Result<()> {
        self.check_job(job)?;
        if !(0..ORDERS).contains(&order) {
            return wrong("an order is a number from 0 to 2^24 - 1");
        }
        if !(KEY..=LONGEST).contains(&length) {
            return wrong("a packed URL has 16 to 65,536 bytes");
        }
        Ok(())
    }

    pub fn check_room(&self, count: usize) -> Result<()> {
        if self.arrivals + count as u64 > ARRIVALS {
            return wrong("more than 2^39 URLs have been queued");
        }
        Ok(())
    }

    pub fn check_job(&self, job: i64) -> Result<u32> {
        u32::try_from(job).or_else(|_| wrong("a job is a number from 0 to 2^32 - 1"))
    }

    /// Queue one URL that was checked. O(log n).
    pub fn push(&mut self, host: u32, job: u32, order: u32, packed: &[u8], newest_first: bool) {
        let arrival = if newest_first { ARRIVAL_MASK - self.arrivals } else { self.arrivals };
        self.arrivals += 1;
        let queue = self.queue_for(host, job);
        if self.queues[queue].pending == NONE {
            self.queues[queue].pending = self.heaps.add(Pending::default());
        }
        self.heaps[self.queues[queue].pending].push(u64::from(order) << 40 | arrival, packed.into());
        self.fresh_urls += 1;
        self.fresh_bytes += ENTRY + packed.len() as u64;
        self.count(job, 1);
    }

    pub fn count(&mut self, job: u32, urls: u64) {
        *self.jobs.entry(job).or_default() += urls;
    }

    fn uncount(&mut self, job: u32, urls: u64) {
        if let Entry::Occupied(mut left) = self.jobs.entry(job) {
            *left.get_mut() -= urls;
            if *left.get() == 0 {
                left.remove();
            }
        }
    }

    fn next(&self, queue: &Queue) -> Option<(u64, Head)> {
        let first = (queue.slices != NONE).then_some(queue.slices);
        let slice = first.map(|slice| (self.slices[slice].key, Head::Disk(slice)));
        let memory = self.pending(queue).first().map(|entry| (entry.key, Head::Memory));
        match (memory, slice) {
            (Some(memory), Some(slice)) => Some(if memory.0 < slice.0 { memory } else { slice }),
            (memory, slice) => memory.or(slice),
        }
    }

    pub fn head(&self, host: u32) -> Vec<(u32, u32)> {
        let heads = self.queues_of(host).filter_map(|queue| Some((queue.job, (self.next(queue)?.0 >> 40) as u32)));
        heads.collect()
    }

    pub fn peek(&mut self, host: u32, job: u32) -> Result<Option<Vec<u8>>> {
        let Some(queue) = self.find(host, job) else { return Ok(None) };
        match self.next(&self.queues[queue]) {
            None => Ok(None),
            Some((_, Head::Memory)) => Ok(self.pending(&self.queues[queue]).first().map(|entry| entry.data.to_vec())),
            Some((_, Head::Disk(slice))) => self.read(slice).map(Some),
        }
    }

    pub fn pop(&mut self, host: u32, job: u32) -> Result<Option<Vec<u8>>> {
        let Some(queue) = self.find(host, job) else { return Ok(None) };
        let packed = match self.next(&self.queues[queue]) {
            None => return Ok(None),
            Some((_, Head::Memory)) => self.remove_pending(queue, 0),
            Some((_, Head::Disk(slice))) => {
                let packed = self.read(slice)?;
                self.advance(queue, slice, ENTRY + packed.len() as u64)?;
                packed
            }
        };
        self.went(host, queue);
        Ok(Some(packed))
    }

    fn remove_pending(&mut self, queue: u32, place: usize) -> Vec<u8> {
        let heap = self.queues[queue].pending;
        let data = self.heaps[heap].remove(place).data;
        if self.heaps[heap].is_empty() {
            self.drop_pending(queue);
        }
        self.fresh_urls -= 1;
        self.fresh_bytes -= ENTRY + data.len() as u64;
        data.into_vec()
    }

    /// One URL less in a queue's count; the queue goes with its last.
    fn went(&mut self, host: u32, queue: u32) {
        let (job, empty) = (self.queues[queue].job, self.is_empty(&self.queues[queue]));
        self.uncount(job, 1);
        if empty {
            self.unlink(host, queue);
        }
    }

    /// Take a URL out by its fingerprint. What is near a head costs a read or two, O(queue) at worst.
    pub fn take(&mut self, host: u32, job: u32, url_key: &[u8]) -> Result<Option<Vec<u8>>> {
        if url_key.len() != KEY {
            return wrong("a fingerprint has 16 bytes");
        }
        let Some(queue) = self.find(host, job) else { return Ok(None) };
        for (from, to) in [(0, NEAR), (NEAR, usize::MAX)] {
            if let Some(place) = find(self.pending(&self.queues[queue]), url_key, from, to) {
                let packed = self.remove_pending(queue, place);
                self.went(host, queue);
                return Ok(Some(packed));
            }
            let slices: Vec<u32> = self.slices_of(&self.queues[queue]).collect();
            for slice in slices {
                if let Some(packed) = self.take_from(queue, slice, url_key, to)? {
                    self.went(host, queue);
                    return Ok(Some(packed));
                }
            }
        }
        Ok(None)
    }

    pub fn drop_queue(&mut self, host: u32, job: u32) -> usize {
        let Some(queue) = self.find(host, job) else { return 0 };
        let went = self.length(&self.queues[queue]);
        for place in (0..self.pending(&self.queues[queue]).len()).rev() {
            self.remove_pending(queue, place);
        }
        while self.queues[queue].slices != NONE {
            self.remove_slice(queue, self.queues[queue].slices);
        }
        self.uncount(job, went as u64);
        self.unlink(host, queue);
        went
    }

    pub fn hosts_of(&self, job: u32) -> Vec<u32> {
        self.names.alive().filter(|host| self.find(*host, job).is_some()).collect()
    }
}
