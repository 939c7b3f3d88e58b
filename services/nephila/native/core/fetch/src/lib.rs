//! HTTP/1.1 client: pure readers with limits (no socket, no clock), and one I/O thread over them.
//!
//! Invariant: only the addresses of a request are dialled, and no name is resolved. ADR 160.

#![forbid(unsafe_code)]

#[cfg(unix)]
pub mod ahead;
pub mod body;
pub mod chunked;
pub mod coding;
pub mod config;
pub mod deadlines;
pub mod error;
pub mod exchange;
#[cfg(unix)]
pub mod fetcher;
pub mod framing;
pub mod head;
#[cfg(unix)]
mod link;
pub mod media;
#[cfg(unix)]
pub mod messages;
#[cfg(unix)]
pub mod page_threads;
#[cfg(unix)]
pub mod pages;
pub mod pool;
#[cfg(unix)]
mod thread;
#[cfg(unix)]
mod tls;
pub mod tunnel;
pub mod whole;
#[cfg(unix)]
mod wire;
