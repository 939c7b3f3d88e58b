//! The MD5 trie: a set of 16-byte fingerprints for tens of millions of URLs. Contract: ../../../README.md;
//! decision: docs/adr/0009.
//!
//! From the bottom: slabs and arena (memory), leaf, node, region, shape (a region as a whole), forest (all regions),
//! then filter, run, merge and home (files), store (memory and files as one), tiers (memory or disk), py (the class).

mod arena;
mod filter;
mod forest;
mod home;
mod leaf;
mod merge;
mod node;
mod py;
mod region;
mod run;
mod shape;
mod slabs;
mod store;
mod tiers;

pub use leaf::Key;
pub use py::Trie;
