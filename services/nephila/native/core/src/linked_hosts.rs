//! Which domain links to which hosts: the host of a link is new to a domain once, not on every page.
//!
//! Domain and host are hashes of 32 bits, the host that of its fingerprints. Memory is bounded: when there are too many
//! pairs, all are forgotten.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

const FINGERPRINT: usize = 16;

/// Pairs of a domain and a host, some 18 bytes each.
#[pyclass(module = "nephila.native._core")]
pub struct LinkedHosts {
    pairs: HashSet<u64, RandomState>,
    most: usize,
}

impl LinkedHosts {
    fn new_hosts(&mut self, domain: u32, fingerprints: &[u8]) -> Vec<u32> {
        if self.full() {
            self.clear();
        }
        let links = (0u32..).zip(fingerprints.chunks_exact(FINGERPRINT));
        let is_new = |key: &[u8], pairs: &mut HashSet<u64, RandomState>| {
            let host = u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
            pairs.insert(u64::from(domain) << 32 | u64::from(host))
        };
        links.filter(|(_, key)| is_new(key, &mut self.pairs)).map(|(index, _)| index).collect()
    }
}

#[pymethods]
impl LinkedHosts {
    #[new]
    fn new(most: usize) -> LinkedHosts {
        LinkedHosts { pairs: HashSet::default(), most }
    }

    /// Whether the next page clears it.
    #[getter]
    fn full(&self) -> bool {
        self.pairs.len() > self.most
    }

    fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Indices of the first link to each host that no page of the domain has linked to so far. ValueError for a buffer
    /// that is no list of fingerprints. O(links).
    fn first(&mut self, domain: u32, fingerprints: &[u8]) -> PyResult<Vec<u32>> {
        if fingerprints.len() % FINGERPRINT != 0 {
            return Err(PyValueError::new_err("fingerprints of 16 bytes each"));
        }
        Ok(self.new_hosts(domain, fingerprints))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(hosts: &[u8]) -> Vec<u8> {
        hosts.iter().flat_map(|host| [&[*host; 4][..], &[7; 12]].concat()).collect()
    }

    #[test]
    fn a_host_is_new_to_each_domain_once() {
        let mut linked = LinkedHosts::new(10);
        assert_eq!(linked.new_hosts(1, &keys(&[5, 6, 5])), [0, 1]);
        assert_eq!(linked.new_hosts(1, &keys(&[6, 8, 5])), [1]);
        assert_eq!(linked.new_hosts(2, &keys(&[5])), [0]);
        assert!(linked.new_hosts(2, &[]).is_empty());
    }

    #[test]
    fn beyond_the_bound_all_pairs_are_forgotten() {
        let mut linked = LinkedHosts::new(2);
        assert_eq!(linked.new_hosts(1, &keys(&[1, 2, 3])), [0, 1, 2]);
        assert!(linked.full());
        assert_eq!(linked.new_hosts(1, &keys(&[1])), [0]);
        assert!(!linked.full());
    }
}
