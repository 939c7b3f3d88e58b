//! What is due by time: the next address of a slow fetch, idle connections, and the limits of fetches.

use super::{Fetch, Worker};
use crate::deadlines::Phase;
use crate::error::{FetchError, Reason};
use crate::exchange::Exchange;

impl Worker {
    pub(super) fn on_time(&mut self) {
        let now = self.now();
        while let Some(&(at, id, dials)) = self.staggers.front() {
            if at > now {
                break;
            }
            self.staggers.pop_front();
            let slow = |fetch: &Fetch| fetch.dials == dials && !fetch.attempts.is_empty();
            if self.fetches.get(&id).is_some_and(slow) {
                self.dial(id, FetchError::new(Reason::Connect, "no address"));
            }
        }
        if now < self.next_tick {
            return;
        }
        for number in self.pool.expired(now) {
            self.close(number);
        }
        self.check_limits(now);
        self.next_tick = f64::INFINITY;
        if !self.fetches.is_empty() || !self.pool.is_empty() {
            self.arm(now);
        }
    }

    pub(super) fn check_limits(&mut self, now: f64) {
        let mut late = Vec::new();
        for (&id, fetch) in &mut self.fetches {
            let serving = fetch.serving.map(|number| &self.links[number]);
            let exchange = serving.and_then(|one| one.exchange.as_ref());
            let phase = match exchange {
                None if fetch.attempts.iter().any(|&one| self.links[one].link.in_tunnel()) => {
                    Phase::Tunnel(fetch.dials)
                }
                None => Phase::Connect(fetch.dials),
                Some(exchange) if exchange.has_head() => Phase::Body,
                Some(_) => Phase::Headers,
            };
            if serving.is_some_and(|one| one.waits || one.stalled) {
                if let Some(detail) = fetch.times.passed_in_wait(&self.config, now) {
                    late.push((id, detail));
                }
                continue;
            }
            let progress = serving.map_or(0, |one| one.progress);
            let received = exchange.map_or(0, Exchange::received_bytes);
            if let Some(detail) = fetch.times.passed(&self.config, now, phase, progress, received) {
                late.push((id, detail));
            }
        }
        for (id, detail) in late {
            self.time_out(id, detail);
        }
    }

    pub(super) fn time_out(&mut self, id: u64, detail: String) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        if let Some(number) = fetch.serving {
            if let Some(exchange) = self.links[number].exchange.as_mut() {
                if detail.starts_with("memory:") {
                    exchange.lacks_memory(&detail);
                } else {
                    exchange.time_out(&detail);
                }
            }
            return self.finish(number, id, false);
        }
        let error = FetchError::new(Reason::Timeout, detail);
        if !error.detail.starts_with("connect:") {
            return self.fail(id, error);
        }
        let attempts = std::mem::take(&mut fetch.attempts);
        attempts.into_iter().for_each(|number| self.close(number));
        self.dial(id, error);
    }
}
