//! Idle connections by key: the oldest of a key is used first, once it has rested; the oldest of all is evicted first.
//! The caller closes connections.
//!
//! A response that a server sends late and unasked arrives while its connection rests, and not as the response of the
//! next request. A key with MAX_RESTING connections uses the oldest one in any case, and a key whose connections have
//! rested PROVING times without such a response is trusted: its connections rest no more.
//!
//! The size follows what hosts return: it grows by one when a key is requested whose connection was evicted less than
//! `keepalive_s` before, and falls by one when a connection was idle for so long.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

/// Connections of one key that rest at once.
const MAX_RESTING: usize = 4;
/// Rests of connections of a key after which they rest no more.
const PROVING: u8 = 2;
const MAX_TRUSTED: usize = 10_000;
/// Time for which connections of a key are not used twice.
const DISTRUST_S: f64 = 600.0;
const MAX_DISTRUSTED: usize = 10_000;

/// Every operation is O(log n) at most.
pub struct Pool<K, C> {
    least: usize,
    size: usize,
    most: usize,
    keepalive_s: f64,
    rest_s: f64,
    next: u64,
    /// Order of arrival → key, connection, time of arrival.
    idle: BTreeMap<u64, (K, C, f64)>,
    by_key: HashMap<K, VecDeque<u64>>,
    places: HashMap<C, u64>,
    /// Key → when its connection was evicted, and the order of that.
    evicted: HashMap<K, (u64, f64)>,
    eviction_order: BTreeMap<u64, K>,
    /// Key → rests of its connections.
    trusted: HashMap<K, u8>,
    /// Key → since when its connections are not used twice.
    distrusted: HashMap<K, f64>,
}

impl<K: Clone + Eq + Hash, C: Copy + Eq + Hash> Pool<K, C> {
    pub fn new(size: usize, most: usize, keepalive_s: f64, rest_s: f64) -> Pool<K, C> {
        Pool {
            least: size,
            size,
            most: most.max(size),
            keepalive_s,
            rest_s,
            next: 0,
            idle: BTreeMap::new(),
            by_key: HashMap::new(),
            places: HashMap::new(),
            evicted: HashMap::new(),
            eviction_order: BTreeMap::new(),
            trusted: HashMap::new(),
            distrusted: HashMap::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.idle.len()
    }

    pub fn is_empty(&self) -> bool {
        self.idle.is_empty()
    }

    /// The present limit.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The connection that has rested longest, of the first key that has one to use.
    pub fn take<'a>(&mut self, keys: impl Iterator<Item = &'a K>, now: f64) -> Option<C>
    where
        K: 'a,
    {
        let mut missed = false;
        for key in keys {
            if let Some(places) = self.by_key.get(key) {
                let place = places[0];
                let rests = self.trusted.get(key).copied().unwrap_or(0);
                if self.rest_s > 0.0 && rests < PROVING {
                    if now - self.idle[&place].2 >= self.rest_s {
                        if self.trusted.len() >= MAX_TRUSTED {
                            self.trusted.clear();
                        }
                        self.trusted.insert(key.clone(), rests + 1);
                    } else if places.len() < MAX_RESTING {
                        continue;
                    }
                }
                return self.remove_at(place).map(|(_, connection)| connection);
            }
            if let Some((order, _)) = self.evicted.remove(key) {
                self.eviction_order.remove(&order);
                missed = true;
            }
        }
        if missed && self.size < self.most {
            self.size += 1;
        }
        None
    }

    /// From now on `put` refuses the connections of this key.
    pub fn distrust(&mut self, key: K, now: f64) {
        if self.distrusted.len() >= MAX_DISTRUSTED {
            self.distrusted.clear();
        }
        self.trusted.remove(&key);
        self.distrusted.insert(key, now);
    }

    fn is_distrusted(&mut self, key: &K, now: f64) -> bool {
        let since = self.distrusted.get(key).copied();
        let over = since.is_some_and(|since| now - since >= DISTRUST_S);
        if over {
            self.distrusted.remove(key);
        }
        since.is_some() && !over
    }

    /// Stores a connection; returns the one to close: the evicted one, or the same.
    pub fn put(&mut self, key: K, connection: C, now: f64) -> Option<C> {
        if self.size == 0 || self.is_distrusted(&key, now) {
            return Some(connection);
        }
        let mut evicted = None;
        if self.idle.len() >= self.size {
            let oldest = *self.idle.keys().next()?;
            let (old_key, old) = self.remove_at(oldest)?;
            self.note_evicted(old_key, now);
            evicted = Some(old);
        }
        self.next += 1;
        self.by_key.entry(key.clone()).or_default().push_back(self.next);
        self.places.insert(connection, self.next);
        self.idle.insert(self.next, (key, connection, now));
        evicted
    }

    /// Removes a closed connection; false when it was not stored.
    pub fn remove(&mut self, connection: C) -> bool {
        let place = self.places.get(&connection).copied();
        place.and_then(|place| self.remove_at(place)).is_some()
    }

    /// Removes and returns the connections that were idle for too long.
    pub fn expired(&mut self, now: f64) -> Vec<C> {
        let late = self.idle.iter().take_while(|(_, (_, _, since))| now - since >= self.keepalive_s);
        let places: Vec<u64> = late.map(|(&place, _)| place).collect();
        self.size = self.size.saturating_sub(places.len()).max(self.least);
        places.into_iter().filter_map(|place| self.remove_at(place)).map(|(_, connection)| connection).collect()
    }

    fn remove_at(&mut self, place: u64) -> Option<(K, C)> {
        let (key, connection, _) = self.idle.remove(&place)?;
        self.places.remove(&connection);
        let places = self.by_key.get_mut(&key)?;
        places.retain(|&other| other != place);
        if places.is_empty() {
            self.by_key.remove(&key);
        }
        Some((key, connection))
    }

    fn note_evicted(&mut self, key: K, now: f64) {
        if self.most == self.least {
            return;
        }
        self.next += 1;
        if let Some((order, _)) = self.evicted.insert(key.clone(), (self.next, now)) {
            self.eviction_order.remove(&order);
        }
        self.eviction_order.insert(self.next, key);
        while let Some((&order, oldest)) = self.eviction_order.iter().next() {
            let since = self.evicted[oldest].1;
            if self.evicted.len() <= self.most && now - since <= self.keepalive_s {
                break;
            }
            let oldest = oldest.clone();
            self.evicted.remove(&oldest);
            self.eviction_order.remove(&order);
        }
    }

    /// Panics when an invariant is broken.
    pub fn check(&self) {
        assert!(self.by_key.values().all(|places| !places.is_empty()), "a key without connections");
        assert_eq!(self.by_key.values().map(VecDeque::len).sum::<usize>(), self.idle.len());
        assert_eq!(self.places.len(), self.idle.len());
        assert!(self.idle.len() <= self.size && self.least <= self.size && self.size <= self.most);
        assert!(self.evicted.len() <= self.most && self.evicted.len() == self.eviction_order.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_of_a_key_first_and_oldest_of_all_evicted() {
        let mut pool: Pool<&str, u32> = Pool::new(2, 2, 15.0, 0.5);
        assert_eq!(pool.put("a", 1, 0.0), None);
        assert_eq!(pool.put("a", 2, 1.0), None);
        assert_eq!(pool.put("b", 3, 2.0), Some(1));
        pool.check();
        assert_eq!(pool.take(["x", "a"].iter(), 2.0), Some(2));
        assert!(pool.remove(3) && !pool.remove(3));
        assert!(pool.is_empty());
    }

    #[test]
    fn the_size_follows_returning_hosts() {
        let mut pool: Pool<u32, u32> = Pool::new(1, 3, 15.0, 0.0);
        pool.put(1, 1, 0.0);
        assert_eq!(pool.put(2, 2, 1.0), Some(1));
        assert_eq!(pool.take([1].iter(), 1.0), None);
        assert_eq!(pool.size(), 2);
        pool.put(1, 3, 2.0);
        pool.check();
        assert_eq!(pool.expired(16.0), vec![2]);
        assert_eq!(pool.size(), 1);
        assert_eq!(Pool::new(0, 0, 1.0, 0.0).put(1, 9, 0.0), Some(9));
    }

    #[test]
    fn a_connection_rests_between_two_requests() {
        let mut pool: Pool<&str, usize> = Pool::new(100, 100, 15.0, 0.5);
        pool.put("a", 1, 0.0);
        pool.put("a", 2, 0.25);
        assert_eq!(pool.take(["a"].iter(), 0.375), None);
        assert_eq!(pool.take(["a"].iter(), 0.5), Some(1));
        assert_eq!(pool.take(["a"].iter(), 0.5), None);
        for number in 3..=MAX_RESTING + 1 {
            pool.put("a", number, 0.5);
        }
        assert_eq!(pool.take(["a"].iter(), 0.5), Some(2));
        assert_eq!(pool.take(["a"].iter(), 0.5), None);
        pool.check();
    }

    #[test]
    fn connections_of_a_trusted_key_do_not_rest() {
        let mut pool: Pool<&str, u32> = Pool::new(9, 9, 15.0, 0.5);
        for round in 0..PROVING {
            let now = f64::from(round);
            pool.put("a", 1, now);
            assert_eq!(pool.take(["a"].iter(), now + 0.25), None);
            assert_eq!(pool.take(["a"].iter(), now + 0.5), Some(1));
        }
        pool.put("a", 1, 9.0);
        assert_eq!(pool.take(["a"].iter(), 9.0), Some(1));
        pool.distrust("a", 9.0);
        pool.put("a", 1, 9.0 + DISTRUST_S);
        assert_eq!(pool.take(["a"].iter(), 9.0 + DISTRUST_S), None);
        pool.check();
    }

    #[test]
    fn connections_of_a_distrusted_key_are_closed() {
        let mut pool: Pool<&str, u32> = Pool::new(9, 9, 15.0, 0.0);
        pool.distrust("a", 1.0);
        assert_eq!(pool.put("a", 1, 2.0), Some(1));
        assert_eq!(pool.put("b", 2, 2.0), None);
        assert_eq!(pool.put("a", 3, 1.0 + DISTRUST_S), None);
        pool.check();
    }

    #[test]
    fn invariants_hold_after_random_operations() {
        let mut pool: Pool<u64, u64> = Pool::new(3, 9, 5.0, 1.0);
        let (mut seed, mut now) = (7_u64, 0.0);
        for connection in 0..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (choice, key) = ((seed >> 33) % 4, (seed >> 40) % 12);
            now += 0.1;
            match choice {
                0 | 1 => drop(pool.put(key, connection, now)),
                2 => drop(pool.take([key].iter(), now)),
                _ => drop(pool.expired(now)),
            }
            pool.check();
        }
    }
}
