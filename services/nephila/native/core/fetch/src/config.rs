//! Settings of a fetcher; those of the downloader, by the same names. Durations in seconds, sizes in bytes.

use crate::media::MediaFilter;

/// A body above this size is reserved before it is read further.
pub const RESERVE_BYTES: u64 = 256 << 10;
pub const MAX_DIALS: usize = 3;
pub const MAX_HEAD_BYTES: usize = 64 << 10;
/// Heads with a status of 1xx before the final one.
pub const MAX_INTERIM: u32 = 16;
/// An unused body (of a 404, of a redirect) is read up to this size to keep the connection.
pub const DRAIN_BYTES: u64 = 64 << 10;
/// An event that a request was sent waits so long for others: most often its response follows.
pub const SENT_S: f64 = 0.005;
/// Time after which the next address is tried beside a slow one (RFC 8305).
pub const STAGGER_S: f64 = 0.25;

#[derive(Clone, Debug)]
pub struct Config {
    pub connect_timeout_s: f64,
    pub headers_timeout_s: f64,
    pub idle_timeout_s: f64,
    pub body_timeout_s: f64,
    pub total_timeout_s: f64,
    pub min_rate_bytes: f64,
    pub max_wire_bytes: u64,
    pub max_body_bytes: u64,
    pub max_ratio: f64,
    pub keepalive_s: f64,
    pub rest_s: f64,
    pub pool_size: usize,
    pub pool_most: usize,
    pub raw_capture: bool,
    pub tls_verify: bool,
    /// A PEM file of certificates that are trusted beside those of the system; empty: none.
    pub ca_file: String,
    pub media: MediaFilter,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            connect_timeout_s: 10.0,
            headers_timeout_s: 20.0,
            idle_timeout_s: 15.0,
            body_timeout_s: 60.0,
            total_timeout_s: 90.0,
            min_rate_bytes: 100.0,
            max_wire_bytes: 32 << 20,
            max_body_bytes: 32 << 20,
            max_ratio: 250.0,
            keepalive_s: 15.0,
            rest_s: 0.2,
            pool_size: 500,
            pool_most: 2000,
            raw_capture: false,
            tls_verify: true,
            ca_file: String::new(),
            media: MediaFilter::default(),
        }
    }
}
