"""Rate of change of a page, from fetches at irregular times that show only whether it changed. Pure.

The model is a Poisson process (Cho and Garcia-Molina, Estimating Frequency of Change, ACM TOIT 3(3), 2003). A check
after t seconds without a change has the likelihood exp(-r t), one with a change 1 - exp(-r t). With n equal intervals,
X of them with a change, the most likely rate is -ln(1 - X/n)/t: infinite for X = n, 0 for X = 0, and biased. Cho and
Garcia-Molina add half an observation to both sides. Here the other pages of the job take its place: ln(rate) is normal
about their mean. So a page with two checks is near that mean, and a page with fifty checks depends on its own.

`recrawl.policy` decides when a page is fetched.
"""

from __future__ import annotations

import math

from nephila.kernel.messages import UrlState

DAY_S = 86_400.0
VARIANCE = 3.0
"""Variance of ln(rate) over the pages of a job. Means from 1 hour to 30 days, uniform in the logarithm, have 3.6."""
START_RATE = 1 / (4 * DAY_S)
"""Changes per second of an unknown page in an unknown job."""
START_WEIGHT_S = 5 * DAY_S
"""Weight of the start rate against the job's own pages, in page-seconds of observation."""
_REACH = 60.0
_STEPS = 60
_TOLERANCE = 1e-4
_LARGEST = 300.0
"""r t beyond which a change is certain in floating point."""


def estimate(quiet_s: float, changed_s: float, changes: int, prior_rate: float) -> float:
    """Changes per second, above 0: the mode of the posterior of ln(rate). O(1), about 4 µs.

    `quiet_s` and `changed_s` are the sums of the intervals without and with a change, `changes` the number of the
    latter, which are taken to be equally long. With u = ln r and v the variance it is the root of the falling function
    X r t / (exp(r t) - 1)  -  r Q  -  (u - prior) / v,  found by Newton's steps within a bracket, which is bisected
    where a step is longer than half of the last one: where the function bends, Newton's steps alone may oscillate.
    """
    mean_s = changed_s / changes if changes > 0 and changed_s > 0 else 0.0
    prior = guess = math.log(prior_rate)
    low, high = prior - _REACH, prior + _REACH
    before = 2 * _REACH  # length of the last step
    for _ in range(_STEPS):
        rate = math.exp(guess)
        value, slope = _seen_change(changes, rate * mean_s)
        value -= rate * quiet_s + (guess - prior) / VARIANCE
        slope -= rate * quiet_s + 1 / VARIANCE
        if value > 0:
            low = guess
        else:
            high = guess
        step = guess - value / slope
        if abs(step - guess) < _TOLERANCE and low <= step <= high:
            return math.exp(step)
        if not low < step < high or abs(step - guess) > before / 2:
            step = (low + high) / 2
        before, guess = abs(step - guess), step
    return math.exp(guess)


def _seen_change(changes: int, x: float) -> tuple[float, float]:
    """X x / (e^x - 1) and its slope in ln x."""
    if x <= 0:
        return 0.0, 0.0
    x = min(x, _LARGEST)
    grown = math.expm1(x)
    value = changes * x / grown
    return value, value * (1 - x * (grown + 1) / grown)


class Prior:
    """The typical rate of a job's pages: the mean of ln(rate), each check weighted by its interval."""

    def __init__(self, rate: float = START_RATE, weight_s: float = START_WEIGHT_S) -> None:
        self._weight = weight_s
        self._sum = math.log(rate) * weight_s

    @property
    def rate(self) -> float:
        """Changes per second."""
        return math.exp(self._sum / self._weight)

    def learn(self, rate: float, observed_s: float) -> None:
        """A page with this estimate was checked after `observed_s` seconds."""
        if observed_s > 0:
            self._sum += math.log(rate) * observed_s
            self._weight += observed_s


def rate_of(state: UrlState, prior: Prior) -> float:
    """Changes per second of a page."""
    return estimate(state.quiet_s, state.changed_s, state.changes, prior.rate)
