"""Pace of one host: when it may be fetched from next. Pure; shared by all jobs.

The delay counts from the end of a fetch to the start of the next. A refusal (429, 503, Retry-After, time-out, block
page) pauses the whole host. The pause doubles with each further refusal, has random jitter, and its back-off ends when
the host has not refused for half an hour after the pause. A 503 or a time-out right after an answer is a first step.
Instants are monotonic seconds here, and UTC when stored. On load they are clamped to [now, now + the pause that set
them]: a clock set back between two runs cannot freeze a host, and a clock set forward frees it early by that pause at
most.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from nephila.kernel.messages import FetchOutcome, HostState, HostUse
from nephila.kernel.reasons.row import Pause, Row
from nephila.scheduler.config import SchedulerConfig

MARGIN_S = 0.005
"""Added to every pause: a server logs the end of an answer a moment after the client has read it."""
TOOK_MAX_S = 3600.0
"""Longest believable fetch; a longer one means that the clock was set meanwhile."""
_NEVER = float("-inf")
# A name of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
_NO_PAUSE = Pause.NONE


class HostPace(msgspec.Struct):
    """The pace of a host. `not_before` and `refused_at` are monotonic seconds."""

    not_before: float = 0.0
    pause_s: float = 0.0
    backoff_s: float = 0.0
    refused_at: float = _NEVER
    took_s: float = 0.0
    """Duration of the last fetch."""
    answered: bool = False
    """Whether the host has answered since its last refusal, with a status below 500."""
    least_delay_s: float = 0.0
    """Shortest pause between two requests that a person has set; 0 for none."""
    held_until: float = 0.0
    """Monotonic end of the pause that a person has set; 0 for none."""
    ended_at: float = 0.0
    """End of the fetch that set `not_before` (UTC of its downloader), where `not_before` counts from there; else 0."""
    late_s: float = 0.0
    """How long after `ended_at` its outcome came; depends on two clocks."""

    @property
    def certain_at(self) -> float:
        """When the pause is over by the clock of this program alone: it counts from the arrival of the outcome."""
        return self.not_before + self.late_s

    @property
    def set_at(self) -> float:
        """When `not_before` was set."""
        return self.not_before - self.pause_s

    def after_fetch(self, now: float, delay_s: float, ended_at: float = 0.0, late_s: float = 0.0) -> None:
        """A fetch ended now, or `late_s` before now at `ended_at` (UTC); the next may start `delay_s` after its end."""
        self._wait(now, delay_s, ended_at, late_s)

    def after_refusal(
        self,
        now: float,
        retry_after_s: float,
        config: SchedulerConfig,
        rng: random.Random,
        passing: bool = False,
        again: int = 0,
    ) -> float:
        """The host refused; returns the length of the pause in seconds.

        `passing`: see `Pause.PASSING`. Right after an answer it restarts the back-off at its first step: one such page
        in a hundred must not block the host for hours. `again`: how often the same URL has failed so before. It says
        nothing new about the host then: the pause doubles with the tries of the URL, and the back-off stays.
        """
        if retry_after_s > 0:
            # Retry-After is the host's own figure and no step of the back-off.
            pause = min(retry_after_s, config.backoff_max_s)
        elif again and self.backoff_s > 0:
            pause = min(config.backoff_s * 2**again, config.backoff_max_s)
        else:
            if self._forgiven(now, config) or (passing and self.answered):
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
        """The host answered. Half an hour without a refusal ends its back-off."""
        self.answered = True
        if self.backoff_s and self._forgiven(now, config):
            self.backoff_s = 0.0

    def hold(self, now: float, pause_s: float, delay_s: float) -> None:
        """A person pauses the host; the pause replaces an earlier one of a person."""
        if self.held_until > now:
            self.free(now, delay_s)
        self.held_until = now + pause_s
        self._wait(now, pause_s)

    def free(self, now: float, delay_s: float) -> None:
        """End a person's pause and the back-off; what is left of them is at most the delay of the host."""
        self.held_until = self.backoff_s = 0.0
        self.refused_at = _NEVER
        if self.certain_at > now + delay_s:
            self.not_before, self.pause_s = now + delay_s, delay_s
            self.ended_at = self.late_s = 0.0

    def _forgiven(self, now: float, config: SchedulerConfig) -> bool:
        # Counted from the end of the pause: a host without requests cannot refuse.
        return self.backoff_s <= 0 or now - self.refused_at > (
            self.backoff_s * (1 + config.jitter) + config.backoff_forget_s
        )

    def _wait(self, now: float, pause_s: float, ended_at: float = 0.0, late_s: float = 0.0) -> None:
        if pause_s > 0:
            pause_s += MARGIN_S
        until = now + pause_s
        if until > self.certain_at:
            self.not_before = until - late_s
            self.pause_s = pause_s
            self.ended_at, self.late_s = ended_at, late_s

    def to_state(
        self,
        host: str,
        address: str,
        utc_minus_monotonic: float,
        crawl_delay_s: float = 0.0,
        uses: Sequence[HostUse] = (),
    ) -> HostState:
        """The stored form, with the rest of the host's state."""
        refused = self.refused_at + utc_minus_monotonic if self.backoff_s else 0.0
        return HostState(
            host,
            self.certain_at + utc_minus_monotonic,
            self.pause_s,
            self.backoff_s,
            refused,
            address,
            crawl_delay_s,
            self.took_s,
            list(uses),
            self.answered,
            self.least_delay_s,
            self.held_until + utc_minus_monotonic if self.held_until else 0.0,
        )


def from_state(state: HostState, now: float, utc_now: float) -> HostPace:
    """The stored pace, clamped to the pause that set it."""
    remaining = min(max(state.not_before - utc_now, 0.0), state.pause_s)
    since_refusal = max(utc_now - state.refused_at, 0.0)
    return HostPace(
        not_before=now + remaining,
        pause_s=state.pause_s,
        backoff_s=state.backoff_s,
        refused_at=now - since_refusal if state.backoff_s else _NEVER,
        took_s=state.took_s,
        answered=state.answered,
        least_delay_s=state.least_delay_s,
        held_until=now + min(max(state.held_until - utc_now, 0.0), remaining) if state.held_until > utc_now else 0.0,
    )


def took_s(outcome: FetchOutcome) -> float:
    """Duration of a fetch in seconds; 0 when nothing was dialled."""
    if outcome.started_at <= 0:
        return 0.0
    return min(max(outcome.ended_at - outcome.started_at, 0.0), TOOK_MAX_S)


def is_refusal(outcome: FetchOutcome, row: Row) -> bool:
    """Whether an outcome pauses the whole host; `row` is that of its reason."""
    return outcome.retry_after_s > 0 or row.pause is not _NO_PAUSE
