//! Time limits of fetches by one coarse tick. Receiving a byte reads no clock: the tick compares counters.
//!
//! A phase counts from the first tick that sees it, so a limit may be exceeded by two ticks and is never shortened.

use crate::config::Config;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The connection is opened, TLS included. The number of the attempt: each one has the full time.
    Connect(usize),
    /// The proxy is connected, and its server is not.
    Tunnel(usize),
    Headers,
    Body,
}

/// Seconds between two ticks: an eighth of the shortest limit, at most half a second.
pub fn tick_s(config: &Config) -> f64 {
    let limits = [
        config.connect_timeout_s,
        config.headers_timeout_s,
        config.idle_timeout_s,
        config.body_timeout_s,
        config.total_timeout_s,
        config.keepalive_s,
    ];
    (limits.into_iter().fold(f64::INFINITY, f64::min) / 8.0).clamp(0.01, 0.5)
}

/// The times of one fetch, in seconds of any monotonic clock.
#[derive(Debug)]
pub struct Times {
    started: f64,
    since: f64,
    phase: Option<Phase>,
    progress: Option<u64>,
    progress_since: f64,
}

impl Times {
    pub fn new(started: f64) -> Times {
        Times { started, since: started, phase: None, progress: None, progress_since: started }
    }

    /// The same while the body waits for memory: the server is not slow.
    pub fn passed_in_wait(&mut self, config: &Config, now: f64) -> Option<String> {
        (self.since, self.progress_since) = (now, now);
        let limit = config.total_timeout_s;
        (now - self.started > limit).then(|| format!("memory: none for the body within {limit} s"))
    }

    /// The limit that is exceeded, beginning with the phase. `progress` changes with each read.
    pub fn passed(
        &mut self,
        config: &Config,
        now: f64,
        phase: Phase,
        progress: u64,
        received_bytes: u64,
    ) -> Option<String> {
        if now - self.started > config.total_timeout_s {
            return Some(format!("total: not done after {} s", config.total_timeout_s));
        }
        if self.phase != Some(phase) {
            self.phase = Some(phase);
            self.since = now;
        }
        let elapsed = now - self.since;
        match phase {
            Phase::Connect(_) => (elapsed > config.connect_timeout_s)
                .then(|| format!("connect: no connection within {} s", config.connect_timeout_s)),
            Phase::Tunnel(_) => (elapsed > config.connect_timeout_s)
                .then(|| format!("tunnel: no connection through the proxy within {} s", config.connect_timeout_s)),
            Phase::Headers => (elapsed > config.headers_timeout_s)
                .then(|| format!("headers: not complete within {} s", config.headers_timeout_s)),
            Phase::Body => self.passed_in_body(config, now, elapsed, progress, received_bytes),
        }
    }

    fn passed_in_body(&mut self, config: &Config, now: f64, elapsed: f64, progress: u64, size: u64) -> Option<String> {
        let idle_s = config.idle_timeout_s;
        if self.progress != Some(progress) {
            self.progress = Some(progress);
            self.progress_since = now;
        }
        if now - self.progress_since > idle_s {
            return Some(format!("body: no byte for {idle_s} s"));
        }
        if elapsed > idle_s && (size as f64) < config.min_rate_bytes * elapsed {
            return Some(format!("body: under {} bytes/s for {idle_s} s", config.min_rate_bytes));
        }
        (elapsed > config.body_timeout_s).then(|| format!("body: not complete within {} s", config.body_timeout_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attempt_and_phase_has_its_full_time() {
        let (config, mut times) = (Config::default(), Times::new(0.0));
        assert_eq!(times.passed(&config, 0.5, Phase::Connect(1), 0, 0), None);
        assert_eq!(times.passed(&config, 10.5, Phase::Connect(1), 0, 0), None);
        assert_eq!(times.passed(&config, 10.6, Phase::Connect(2), 0, 0), None);
        assert!(times.passed(&config, 20.7, Phase::Connect(2), 0, 0).unwrap().starts_with("connect:"));
        assert_eq!(times.passed(&config, 21.0, Phase::Headers, 0, 0), None);
        assert!(times.passed(&config, 41.1, Phase::Headers, 0, 0).unwrap().starts_with("headers:"));
        assert!(times.passed(&config, 90.1, Phase::Headers, 0, 0).unwrap().starts_with("total:"));
    }

    #[test]
    fn silence_low_rate_and_length_end_a_body() {
        let (config, mut times) = (Config::default(), Times::new(0.0));
        assert_eq!(times.passed(&config, 1.0, Phase::Body, 1, 0), None);
        assert!(times.passed(&config, 16.1, Phase::Body, 1, 9000).unwrap().starts_with("body: no byte"));
        assert!(times.passed(&config, 16.2, Phase::Body, 2, 900).unwrap().starts_with("body: under"));
        assert_eq!(times.passed(&config, 30.0, Phase::Body, 3, 90_000), None);
        assert_eq!(times.passed(&config, 45.0, Phase::Body, 4, 90_000), None);
        assert!(times.passed(&config, 61.1, Phase::Body, 5, 90_000).unwrap().starts_with("body: not complete"));
    }
}
