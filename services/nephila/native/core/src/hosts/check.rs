//! All invariants of a store in plain lines, and its figures.

use std::collections::BTreeMap;

use super::run::ENTRY;
use super::slab::NONE;
use super::store::{Blob, Host, Queue, Store};

impl Store {
    /// Panics with the invariant that does not hold. O(everything in memory).
    pub fn check(&self) {
        self.names.check();
        self.bench.check();
        let known = (0..self.hosts.len()).filter(|id| self.known(*id as i64).is_ok());
        assert!(known.map(|id| id as u32).eq(self.names.alive()), "a host has a name and no row, or a row and no name");
        assert!(self.bench.ordered(0).iter().all(|(host, _)| self.names.is(*host)), "a host that is gone is scheduled");
        let mut jobs = BTreeMap::new();
        let (mut queues, mut heaps, mut slices, mut urls, mut blobs, mut bytes) = (0, 0, 0, 0, 0, 0);
        let states = self.names.alive().filter(|host| self.blob(*host).is_some()).count();
        let mut left = vec![0u64; self.disk.slots()];
        for host in self.names.alive() {
            match self.blob(host) {
                None => {}
                Some(Blob::Memory(blob)) => (blobs, bytes) = (blobs + 1, bytes + ENTRY + blob.len() as u64),
                Some(Blob::Disk { run, length, .. }) => left[*run as usize] += u64::from(*length),
            }
            let numbers: Vec<u32> = self.queues_of(host).map(|queue| queue.job).collect();
            assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "queues are not in the order of their jobs");
            for queue in self.queues_of(host) {
                self.check_queue(queue, &mut left);
                *jobs.entry(queue.job).or_default() += self.length(queue) as u64;
                queues += 1;
                slices += self.slices_of(queue).count();
                urls += self.pending(queue).len() as u64;
                heaps += usize::from(queue.pending != NONE);
                bytes += self.pending(queue).iter().map(|entry| ENTRY + entry.data.len() as u64).sum::<u64>();
            }
        }
        assert_eq!(jobs, self.jobs, "a job's length is wrong");
        assert_eq!((queues, slices), (self.queues.len(), self.slices.len()), "a queue or a slice is lost");
        assert_eq!((heaps, states), (self.heaps.len(), self.blobs.len()), "a heap or a state is lost");
        let counted = (self.fresh_urls, self.fresh_blobs, self.fresh_bytes);
        assert_eq!((urls, blobs, bytes), counted, "what is in memory is counted wrong");
        for (slot, run) in self.disk.runs() {
            assert_eq!(run.bytes_left, left[slot as usize], "{} is counted wrong", run.path.display());
        }
    }

    fn check_queue(&self, queue: &Queue, left: &mut [u64]) {
        if queue.pending != NONE {
            self.heaps[queue.pending].check();
        }
        assert!(!self.is_empty(queue), "an empty queue is kept");
        let mut runs = Vec::new();
        let keys: Vec<u64> = self.slices_of(queue).map(|slice| self.slices[slice].key).collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "slices are not in the order of their keys");
        for index in self.slices_of(queue) {
            let slice = self.slices[index];
            let run = self.disk.run(slice.run);
            assert!(slice.live > 0 && slice.offset < slice.end && slice.end < run.bytes, "a slice cannot be");
            assert!(!run.dead.contains(&{ slice.offset }), "a slice begins with a tombstone");
            assert!(index != NONE && !runs.contains(&slice.run), "a queue has two slices in one run");
            runs.push(slice.run);
            left[slice.run as usize] += slice.end - slice.offset;
        }
    }

    pub fn stats(&self) -> Vec<(&'static str, u64)> {
        let mut figures = vec![
            ("hosts", self.names.len() as u64),
            ("urls", self.jobs.values().sum()),
            ("urls_in_memory", self.fresh_urls),
            ("scheduled", self.bench.len() as u64),
            ("arrivals", self.arrivals),
            ("runs", self.disk.runs().count() as u64),
            ("run_bytes", self.disk.runs().map(|(_, run)| run.bytes).sum()),
            ("slices", self.slices.len() as u64),
            ("tombstones", self.disk.runs().map(|(_, run)| run.dead.len() as u64).sum()),
            ("written_bytes", self.disk.written_bytes),
        ];
        figures.extend(self.sizes().map(|(part, bytes)| (part, bytes as u64)));
        figures
    }

    /// Bytes of memory by part. URLs and states that no run has: their bytes, and what heap and allocator add.
    pub fn sizes(&self) -> [(&'static str, usize); 6] {
        let dead: usize = self.disk.runs().map(|(_, run)| run.dead.len() * 16).sum();
        let fresh = self.fresh_bytes as usize + (self.fresh_urls + self.fresh_blobs) as usize * 48;
        [
            ("name_bytes", self.names.nbytes()),
            ("host_bytes", self.hosts.capacity() * std::mem::size_of::<Host>() + self.blobs.nbytes()),
            ("queue_bytes", self.queues.nbytes() + self.heaps.nbytes() + self.jobs.len() * 16),
            ("slice_bytes", self.slices.nbytes() + dead),
            ("schedule_bytes", self.bench.nbytes()),
            ("fresh_bytes", fresh),
        ]
    }

    pub fn nbytes(&self) -> usize {
        self.sizes().iter().map(|(_, bytes)| bytes).sum()
    }
}
