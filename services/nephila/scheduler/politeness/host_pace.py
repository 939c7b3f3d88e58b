"""Politeness of one host: when it may be fetched from next. Pure; shared by all jobs and both lanes.

The pace is measured from the end of a fetch to the start of the next. A refusal (429, 503, Retry-After, time-out)
pauses the whole host: a pause doubles while refusals keep coming, is forgiven once the host has been asked and has not
refused for half an hour, and is stretched at random so that hosts do not come back in step. Instants are monotonic
seconds here; they are stored as UTC and clamped on load to [now, now + the pause that set them]: a clock set back
between two runs cannot freeze a host, one set forward frees it by that pause too early at most. Within a run no clock
that jumps is noticed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from nephila.kernel.messages import FetchOutcome, HostState, HostUse
from nephila.scheduler.config import SchedulerConfig

MARGIN_S = 0.005
"""Added to every pause: a server notes the end of an answer a moment after we have read it."""
TOOK_MAX_S = 3600.0
"""No fetch takes longer; a clock that was set while one was on its way says so."""
REFUSALS = frozenset({"http_429", "http_503", "timeout"})
_NEVER = float("-inf")


@dataclass(slots=True)
class HostPace:
    """What is remembered of a host. `not_before` and `refused_at` are monotonic seconds."""

    not_before: float = 0.0
    pause_s: float = 0.0
    backoff_s: float = 0.0
    refused_at: float = _NEVER
    took_s: float = 0.0
    """How long the last fetch took."""
    answered: bool = False
    """Whether the host has answered since its last refusal. Not stored: a restart takes it for silent."""

    def after_fetch(self, now: float, delay_s: float) -> None:
        """A fetch ended now: the next may start `delay_s` later."""
        self._wait(now, delay_s)

    def after_refusal(
        self,
        now: float,
        retry_after_s: float,
        config: SchedulerConfig,
        rng: random.Random,
        timed_out: bool = False,
    ) -> float:
        """The host asked for a pause, or showed that it needs one; returns its length in seconds.

        A time-out right after an answer starts at the first step again: it is a page that hangs, not the host. One such
        page in a hundred must not add up to hours of silence for the ninety-nine.
        """
        if retry_after_s > 0:
            # It knows how long it needs; that is not the next step of a guess.
            pause = min(retry_after_s, config.backoff_max_s)
        else:
            if self._forgiven(now, config) or (timed_out and self.answered):
                self.backoff_s = config.backoff_s
            else:
                self.backoff_s = min(self.backoff_s * 2, config.backoff_max_s)
            pause = self.backoff_s
        self.refused_at = now
        self.answered = False
        pause *= 1 + rng.random() * config.jitter
        self._wait(now, pause)
        return pause

    def after_answer(self, config: SchedulerConfig, now: float = _NEVER) -> None:
        """The host answered as hosts do; after half an hour without a refusal its back-off is over."""
        self.answered = True
        if self.backoff_s and self._forgiven(now, config):
            self.backoff_s = 0.0

    def _forgiven(self, now: float, config: SchedulerConfig) -> bool:
        # Quiet begins where the pause ends: nobody refuses while nobody asks.
        return self.backoff_s <= 0 or now - self.refused_at > (
            self.backoff_s * (1 + config.jitter) + config.backoff_forget_s
        )

    def _wait(self, now: float, pause_s: float) -> None:
        if pause_s > 0:
            pause_s += MARGIN_S
        until = now + pause_s
        if until > self.not_before:
            self.not_before = until
            self.pause_s = pause_s

    def to_state(
        self,
        host: str,
        address: str,
        utc_minus_monotonic: float,
        crawl_delay_s: float = 0.0,
        uses: Sequence[HostUse] = (),
    ) -> HostState:
        """The stored form, with what else is remembered of the host."""
        refused = self.refused_at + utc_minus_monotonic if self.backoff_s else 0.0
        return HostState(
            host,
            self.not_before + utc_minus_monotonic,
            self.pause_s,
            self.backoff_s,
            refused,
            address,
            crawl_delay_s,
            self.took_s,
            list(uses),
        )


def from_state(state: HostState, now: float, utc_now: float) -> HostPace:
    """The pace as stored, clamped to what its pause allows."""
    remaining = min(max(state.not_before - utc_now, 0.0), state.pause_s)
    since_refusal = max(utc_now - state.refused_at, 0.0)
    return HostPace(
        not_before=now + remaining,
        pause_s=state.pause_s,
        backoff_s=state.backoff_s,
        refused_at=now - since_refusal if state.backoff_s else _NEVER,
        took_s=state.took_s,
    )


def took_s(outcome: FetchOutcome) -> float:
    """How long a fetch took, in seconds; 0 when nobody was dialled."""
    if outcome.started_at <= 0:
        return 0.0
    return min(max(outcome.ended_at - outcome.started_at, 0.0), TOOK_MAX_S)


def is_refusal(outcome: FetchOutcome) -> bool:
    """Whether an outcome asks for a pause of the whole host."""
    return outcome.retry_after_s > 0 or outcome.reason in REFUSALS


def may_retry(reason: str) -> bool:
    """Whether a failed fetch is worth another try: 429, 5xx and trouble on the way; not 4xx, not limits."""
    return reason in RETRYABLE or reason.startswith("http_5")


LEASE_EXPIRED, NOT_CONSUMED = "lease_expired", "not_consumed"
"""Why a try has failed of which no outcome came; the second where nobody has taken the request: it ends no URL."""
RETRYABLE = frozenset({"http_429", "dns", "connect", "tls", "timeout", "disconnected", LEASE_EXPIRED, NOT_CONSUMED})
