//! A walk over the queued URLs of a job in pieces of bounded work, in no order, while its queues change.
//!
//! A piece begins at the place where the one before ended: a host, one of its runs by number, an offset there; behind
//! its runs comes the heap. A URL that a checkpoint moves to a newer run may be passed twice, one that the heap moves to
//! the front not at all; nothing else is missed or repeated.

use super::fault::Result;
use super::run::Window;
use super::store::{Slice, Store};

/// The run number of the heap, behind all runs.
const MEMORY: u32 = u32::MAX;
/// Hosts without URLs of the job that cost as much as one URL.
const HOSTS: usize = 32;

/// Host, run, offset in the run or place in the heap.
pub type Place = (u32, u32, u64);

impl Store {
    /// Pass at most `limit` URLs of a job to `each`, from a place on. The place behind them; None: that was the last.
    /// O(limit).
    pub fn walk(
        &self,
        job: u32,
        (first, mut run, mut at): Place,
        limit: usize,
        mut each: impl FnMut(u32, &[u8]),
    ) -> Result<Option<Place>> {
        // A piece passes a URL at least, whatever it costs to reach it from the first host.
        let mut left = limit * HOSTS + HOSTS - 1;
        for host in first..self.hosts.len() as u32 {
            if left < HOSTS {
                return Ok(Some((host, run, at)));
            }
            left -= 1;
            if let Some(place) = self.walk_queue(job, (host, run, at), &mut left, &mut each)? {
                return Ok(Some(place));
            }
            (run, at) = (0, 0);
        }
        Ok(None)
    }

    /// The same for one host; `left` falls by `HOSTS` for each URL.
    fn walk_queue(
        &self,
        job: u32,
        (host, run, at): Place,
        left: &mut usize,
        each: &mut impl FnMut(u32, &[u8]),
    ) -> Result<Option<Place>> {
        let Some(queue) = self.known(i64::from(host)).ok().and_then(|host| self.queue(host, job)) else {
            return Ok(None);
        };
        let mut slices: Vec<Slice> = self.slices_of(queue).map(|slice| self.slices[slice]).collect();
        slices.sort_unstable_by_key(|slice| self.disk.run(slice.run).number);
        let mut window = Window::new(1 << 16);
        for slice in slices {
            let file = self.disk.run(slice.run);
            if file.number < run {
                continue;
            }
            let mut offset = if file.number == run { at.max(slice.offset) } else { slice.offset };
            while offset < slice.end {
                if *left < HOSTS {
                    return Ok(Some((host, file.number, offset)));
                }
                let frame = window.frame(file, offset, slice.end)?;
                if !file.dead.contains(&offset) {
                    each(host, frame.data());
                }
                offset += frame.whole.len() as u64;
                *left -= HOSTS;
            }
        }
        let from = if run == MEMORY { at as usize } else { 0 };
        for (place, entry) in self.pending(queue).iter().enumerate().skip(from) {
            if *left < HOSTS {
                return Ok(Some((host, MEMORY, place as u64)));
            }
            each(host, &entry.data);
            *left -= HOSTS;
        }
        Ok(None)
    }
}
