//! Idle connections by key: the newest of a key is used first, the oldest of all is evicted first. The caller closes
//! connections.
//!
//! The size follows what hosts return: it grows by one when a key is requested whose connection was evicted less than
//! `keepalive_s` before, and falls by one when a connection was idle for so long.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Every operation is O(log n) at most.
pub struct Pool<K, C> {
    least: usize,
    size: usize,
    most: usize,
    keepalive_s: f64,
    next: u64,
    /// Order of arrival → key, connection, time of arrival.
    idle: BTreeMap<u64, (K, C, f64)>,
    by_key: HashMap<K, Vec<u64>>,
    places: HashMap<C, u64>,
    /// Key → when its connection was evicted, and the order of that.
    evicted: HashMap<K, (u64, f64)>,
    eviction_order: BTreeMap<u64, K>,
}

impl<K: Clone + Eq + Hash, C: Copy + Eq + Hash> Pool<K, C> {
    pub fn new(size: usize, most: usize, keepalive_s: f64) -> Pool<K, C> {
        Pool {
            least: size,
            size,
            most: most.max(size),
            keepalive_s,
            next: 0,
            idle: BTreeMap::new(),
            by_key: HashMap::new(),
            places: HashMap::new(),
            evicted: HashMap::new(),
            eviction_order: BTreeMap::new(),
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

    /// The most recently used connection of the first key that has one.
    pub fn take<'a>(&mut self, keys: impl Iterator<Item = &'a K>) -> Option<C>
    where
        K: 'a,
    {
        let mut missed = false;
        for key in keys {
            if let Some(&place) = self.by_key.get(key).and_then(|places| places.last()) {
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

    /// Stores a connection; returns the evicted one.
    pub fn put(&mut self, key: K, connection: C, now: f64) -> Option<C> {
        if self.size == 0 {
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
        self.by_key.entry(key.clone()).or_default().push(self.next);
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
        assert_eq!(self.by_key.values().map(Vec::len).sum::<usize>(), self.idle.len());
        assert_eq!(self.places.len(), self.idle.len());
        assert!(self.idle.len() <= self.size && self.least <= self.size && self.size <= self.most);
        assert!(self.evicted.len() <= self.most && self.evicted.len() == self.eviction_order.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_of_a_key_first_and_oldest_of_all_evicted() {
        let mut pool: Pool<&str, u32> = Pool::new(2, 2, 15.0);
        assert_eq!(pool.put("a", 1, 0.0), None);
        assert_eq!(pool.put("a", 2, 1.0), None);
        assert_eq!(pool.put("b", 3, 2.0), Some(1));
        pool.check();
        assert_eq!(pool.take(["x", "a"].iter()), Some(2));
        assert!(pool.remove(3) && !pool.remove(3));
        assert!(pool.is_empty());
    }

    #[test]
    fn the_size_follows_returning_hosts() {
        let mut pool: Pool<u32, u32> = Pool::new(1, 3, 15.0);
        pool.put(1, 1, 0.0);
        assert_eq!(pool.put(2, 2, 1.0), Some(1));
        assert_eq!(pool.take([1].iter()), None);
        assert_eq!(pool.size(), 2);
        pool.put(1, 3, 2.0);
        pool.check();
        assert_eq!(pool.expired(16.0), vec![2]);
        assert_eq!(pool.size(), 1);
        assert_eq!(Pool::new(0, 0, 1.0).put(1, 9, 0.0), Some(9));
    }

    #[test]
    fn invariants_hold_after_random_operations() {
        let mut pool: Pool<u64, u64> = Pool::new(3, 9, 5.0);
        let (mut seed, mut now) = (7_u64, 0.0);
        for connection in 0..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (choice, key) = ((seed >> 33) % 4, (seed >> 40) % 12);
            now += 0.1;
            match choice {
                0 | 1 => drop(pool.put(key, connection, now)),
                2 => drop(pool.take([key].iter())),
                _ => drop(pool.expired(now)),
            }
            pool.check();
        }
    }
}
