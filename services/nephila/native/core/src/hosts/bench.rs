//! The workbench (BUbiNG): hosts by the time when they are ready, in a 4-ary heap with the place of each host.
//!
//! Invariant: `heap[places[host]]` is the host's only entry, and no entry comes before its parent. Ties go by id. So a
//! host is moved instead of leaving stale entries behind, and memory is bounded by the number of hosts.

const WAYS: usize = 4;
const NOWHERE: u32 = u32::MAX;

/// Packed: 12 bytes instead of 16.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct Row {
    at: f64,
    host: u32,
}

#[derive(Default)]
pub struct Bench {
    heap: Vec<Row>,
    places: Vec<u32>,
}

fn before(a: Row, b: Row) -> bool {
    a.at < b.at || (a.at == b.at && a.host < b.host)
}

impl Bench {
    fn place(&self, host: u32) -> Option<usize> {
        self.places.get(host as usize).filter(|place| **place != NOWHERE).map(|place| *place as usize)
    }

    /// Put in or move; `at` is not NaN. O(log n).
    pub fn schedule(&mut self, host: u32, at: f64) {
        if let Some(place) = self.place(host) {
            self.heap[place].at = at;
            self.settle(place);
            return;
        }
        if self.places.len() <= host as usize {
            self.places.resize(host as usize + 1, NOWHERE);
        }
        self.heap.push(Row { at, host });
        self.rise(self.heap.len() - 1);
    }

    /// Take out; was it there? O(log n).
    pub fn remove(&mut self, host: u32) -> bool {
        let Some(place) = self.place(host) else { return false };
        self.heap.swap_remove(place);
        self.places[host as usize] = NOWHERE;
        if place < self.heap.len() {
            self.settle(place);
        }
        true
    }

    pub fn at(&self, host: u32) -> Option<f64> {
        self.place(host).map(|place| self.heap[place].at)
    }

    pub fn first(&self) -> Option<(f64, u32)> {
        self.heap.first().map(|row| (row.at, row.host))
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// The first `limit`, all when it is 0. O(n log n) at worst.
    pub fn ordered(&self, limit: usize) -> Vec<(u32, f64)> {
        let mut rows: Vec<(f64, u32)> = self.heap.iter().map(|row| (row.at, row.host)).collect();
        let order = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        if limit > 0 && limit < rows.len() {
            rows.select_nth_unstable_by(limit, order);
            rows.truncate(limit);
        }
        rows.sort_unstable_by(order);
        rows.into_iter().map(|(at, host)| (host, at)).collect()
    }

    fn settle(&mut self, place: usize) {
        if place > 0 && before(self.heap[place], self.heap[(place - 1) / WAYS]) {
            self.rise(place);
        } else {
            self.sink(place);
        }
    }

    fn set(&mut self, place: usize, row: Row) {
        self.heap[place] = row;
        self.places[row.host as usize] = place as u32;
    }

    fn rise(&mut self, mut place: usize) {
        let row = self.heap[place];
        while place > 0 && before(row, self.heap[(place - 1) / WAYS]) {
            let parent = (place - 1) / WAYS;
            self.set(place, self.heap[parent]);
            place = parent;
        }
        self.set(place, row);
    }

    fn sink(&mut self, mut place: usize) {
        let row = self.heap[place];
        loop {
            let first = place * WAYS + 1;
            let children = first..(first + WAYS).min(self.heap.len());
            let Some(least) = children.reduce(|a, b| if before(self.heap[b], self.heap[a]) { b } else { a }) else {
                break;
            };
            if !before(self.heap[least], row) {
                break;
            }
            self.set(place, self.heap[least]);
            place = least;
        }
        self.set(place, row);
    }

    pub fn nbytes(&self) -> usize {
        self.heap.capacity() * std::mem::size_of::<Row>() + self.places.capacity() * 4
    }

    pub fn check(&self) {
        for (place, row) in self.heap.iter().enumerate() {
            assert_eq!(self.places[row.host as usize], place as u32, "the workbench looks for a host in a wrong place");
            assert!(place == 0 || before(self.heap[(place - 1) / WAYS], *row), "the workbench is no heap");
        }
        let there = self.places.iter().filter(|place| **place != NOWHERE).count();
        assert_eq!(there, self.heap.len(), "the workbench has places without hosts");
    }
}
