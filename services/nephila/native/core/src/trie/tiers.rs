//! Memory and disk of a trie: runs are written, regions leave memory and return, a checkpoint is taken and restored.

use super::filter::Filter;
use super::forest::{Forest, DEEPEST};
use super::leaf::Key;
use super::merge;
use super::node;
use super::region::Cold;
use super::run::{Outcome, Trouble};
use super::shape::ensure;
use super::store::{Store, CHUNK};

impl Store {
    /// Write all changes since the last run as a new one. O(changes).
    pub fn spill(&mut self) -> Outcome<()> {
        let Some(home) = self.home.as_mut() else { return Ok(()) };
        if self.touched.is_empty() && self.ranges.is_empty() {
            return Ok(());
        }
        self.touched.sort_unstable();
        self.touched.dedup();
        let (forest, touched) = (&self.forest, &self.touched);
        let mut source = |write: &mut dyn FnMut(&[Key]) -> Outcome<()>| {
            let mut removed = Vec::new();
            for chunk in touched.chunks(CHUNK) {
                let (there, gone): (Vec<Key>, Vec<Key>) = chunk.iter().partition(|key| forest.contains(**key));
                write(&there)?;
                removed.extend(gone);
            }
            Ok(removed)
        };
        home.write(&mut source, &self.ranges)?;
        self.touched = Vec::new();
        self.ranges = Vec::new();
        self.gone.clear();
        Ok(())
    }

    /// Bring the memory below the budget, if it can be: regions that are looked up in files much come back, those that
    /// were not used for longest leave. O(moved keys).
    pub fn make_room(&mut self) -> Outcome<()> {
        if self.budget == 0 || self.home.is_none() {
            return Ok(());
        }
        self.fetch_busy()?;
        let mut memory = self.nbytes();
        if memory <= self.budget {
            return Ok(());
        }
        self.spill()?;
        let mut order: Vec<(u64, usize)> = self
            .forest
            .regions
            .iter()
            .enumerate()
            .filter(|(_, region)| region.count > 0)
            .map(|(n, r)| (r.heat, n))
            .collect();
        order.sort_unstable();
        for (_, number) in order {
            let before = self.forest.regions[number].nbytes();
            self.evict(number)?;
            memory = memory.saturating_sub(before) + self.forest.regions[number].nbytes();
            if memory <= self.budget - self.budget / 8 {
                break;
            }
        }
        Ok(())
    }

    /// Let a region leave memory: its keys are in runs, a filter stays. Everything must have been spilled.
    fn evict(&mut self, number: usize) -> Outcome<()> {
        let keys = self.forest.regions[number].keys();
        let region = &mut self.forest.regions[number];
        match &mut region.cold {
            Some(cold) if cold.filter.room() >= keys.len() => {
                keys.iter().for_each(|key| cold.filter.add(*key));
                cold.count += keys.len();
            }
            cold => {
                let all = if cold.is_some() { self.region_keys(number, 0, Key::MAX)? } else { keys };
                let region = &mut self.forest.regions[number];
                self.colds += usize::from(region.cold.is_none());
                let mut filter = Filter::new(all.len());
                all.iter().for_each(|key| filter.add(*key));
                region.cold = Some(Box::new(Cold { filter, count: all.len(), reads: 0 }));
            }
        }
        self.forest.regions[number].clear();
        Ok(())
    }

    /// Bring back the regions whose keys were read from files oftener than they have keys.
    fn fetch_busy(&mut self) -> Outcome<()> {
        let busy: Vec<Key> = self
            .forest
            .regions
            .iter()
            .filter(|region| {
                region.cold.as_ref().is_some_and(|cold| cold.reads > cold.count + 64 && region.len() * 32 < self.budget)
            })
            .map(|region| region.prefix)
            .collect();
        for prefix in busy {
            let Some(number) = self.forest.locate(prefix) else { continue };
            let keys = self.region_keys(number, 0, Key::MAX)?;
            let region = &mut self.forest.regions[number];
            region.cold = None;
            region.refill(&keys);
            self.colds -= 1;
            self.forest.relieve(number);
        }
        Ok(())
    }

    /// Write what changed, make it durable; returns the manifest that names all of it. O(changes), and O(n) now and
    /// then.
    pub fn checkpoint(&mut self) -> Outcome<Vec<u8>> {
        self.spill()?;
        let count = self.len();
        match &mut self.home {
            Some(home) => home.manifest(count),
            None => Err(Trouble::Damage("a trie without a directory has no checkpoints".into())),
        }
    }

    /// Fill an empty trie with what a manifest names; it stays empty where that fails. O(n).
    pub fn restore(&mut self, manifest: &[u8]) -> Outcome<()> {
        let used = self.len() > 0 || !self.touched.is_empty() || !self.ranges.is_empty();
        let Some(home) = self.home.as_mut().filter(|home| !used && home.runs.is_empty()) else {
            return Err(Trouble::Damage("only an empty trie with a directory can be restored".into()));
        };
        let filled = home.open(manifest).and_then(|count| self.fill(count));
        if filled.is_err() {
            self.forest = Forest::new();
            self.colds = 0;
            self.home.as_mut().expect("it has one").close();
        }
        filled
    }

    fn fill(&mut self, count: usize) -> Outcome<()> {
        let runs = self.home.as_ref().map(|home| home.runs.clone()).unwrap_or_default();
        let (mut held, mut first): (Vec<Key>, Key) = (Vec::new(), 0);
        merge::scan(&runs, 0, Key::MAX, &mut |key, there| {
            // Cut where no region is on both sides: the keys may go to disk again at once.
            let slice = key >> (128 - DEEPEST) << (128 - DEEPEST);
            if held.len() >= CHUNK && held[held.len() - 1] < slice {
                self.forest.build_between(first, slice - 1, &held);
                (first, held) = (slice, Vec::new());
                self.make_room()?;
            }
            if there {
                held.push(key);
            }
            Ok(())
        })?;
        self.forest.build_between(first, Key::MAX, &held);
        self.make_room()?;
        if self.len() == count {
            return Ok(());
        }
        Err(Trouble::Damage(format!("manifest of the trie: {count} keys, its runs have {}", self.len())))
    }

    /// All invariants; the first one that does not hold. O(n), and reads what is on disk.
    pub fn check(&self) -> Outcome<Result<(), String>> {
        if let Err(what) = self.forest.check() {
            return Ok(Err(what));
        }
        let colds = self.forest.regions.iter().filter(|region| region.cold.is_some()).count();
        if colds != self.colds {
            return Ok(Err(format!("{colds} cold regions, {} said", self.colds)));
        }
        for (number, region) in self.forest.regions.iter().enumerate() {
            let Some(cold) = &region.cold else { continue };
            let all = self.region_keys(number, 0, Key::MAX)?;
            let on_disk: Vec<&Key> = all.iter().filter(|key| !region.contains(**key)).collect();
            let last = node::last_of(region.prefix, region.depth);
            let checked =
                ensure(on_disk.len() == cold.count, || format!("{} keys on disk, {} said", on_disk.len(), cold.count))
                    .and_then(|()| {
                        ensure(on_disk.iter().all(|key| cold.filter.may_have(**key)), || "a filter forgot a key".into())
                    })
                    .and_then(|()| {
                        ensure(all.iter().all(|key| (region.prefix..=last).contains(key)), || "a key elsewhere".into())
                    });
            if checked.is_err() {
                return Ok(checked);
            }
        }
        Ok(Ok(()))
    }
}
