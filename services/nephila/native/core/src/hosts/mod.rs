//! The host store: hosts, a queue per host and job whose tail is on disk, the workbench, checkpoints.
//!
//! It is a view of the commit log: a checkpoint belongs to the log's snapshot, and what was committed behind it is
//! replayed by the caller. Formats and the reading order of these files: ../../../README.md.

mod admit;
mod bench;
mod check;
mod checkpoint;
mod disk;
mod fault;
mod files;
mod merge;
mod names;
mod pending;
mod py;
mod run;
mod slab;
mod slices;
mod store;
mod table;
mod tiers;
mod walk;

pub use admit::LinkScope;
pub use py::HostStore;
