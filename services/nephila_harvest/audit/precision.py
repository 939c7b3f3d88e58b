"""Precision of a stratified sample, with Wilson intervals. Pure.

Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927); the
estimate over strata is the usual one of stratified sampling (W. G. Cochran, Sampling Techniques, chapter 5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

Z95 = 1.959963984540054
"""Quantile of the normal distribution for an interval of 95 %."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate between its bounds, each from 0 to 1."""

    estimate: float
    low: float
    high: float


@dataclass(slots=True)
class StratumCount:
    """The labels of one stratum."""

    name: str
    size: int
    """Pages or items in the stratum."""
    sampled: int = 0
    right: int = 0
    wrong: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """Reasons of wrong ones."""

    @property
    def labelled(self) -> int:
        """Number of labels."""
        return self.right + self.wrong


Z975 = 2.241402727604947
"""The same for 97.5 %: two intervals hold at once with 95 %."""


def wilson(share: float, n: float, z: float = Z95) -> Interval:
    """Wilson interval of a share that was observed in `n` trials; 0 to 1 without trials. `n` may be an effective size,
    which need not be whole."""
    if n <= 0:
        return Interval(0.0, 0.0, 1.0)
    centre = share + z * z / (2 * n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return Interval(share, max((centre - half) / scale, 0.0), min((centre + half) / scale, 1.0))


def of_stratum(count: StratumCount, z: float = Z95) -> Interval | None:
    """Precision of one stratum; None without a label."""
    return wilson(count.right / count.labelled, count.labelled, z) if count.labelled else None


def of_all(strata: Sequence[StratumCount], z: float = Z95) -> Interval | None:
    """Precision over all strata that have labels, each weighted by its size; None without a label.

    The interval is Wilson's for the effective sample size: the size of a simple random sample whose variance is that of
    the stratified estimate. The share that enters a stratum's variance is smoothed by one label of each kind, so that a
    stratum in which all labels agree does not count as known.
    """
    labelled = [stratum for stratum in strata if stratum.labelled]
    total = sum(stratum.size for stratum in labelled)
    if not total:
        return None
    share = variance = 0.0
    for stratum in labelled:
        weight, n = stratum.size / total, stratum.labelled
        share += weight * stratum.right / n
        smoothed = (stratum.right + 1) / (n + 2)
        variance += weight * weight * smoothed * (1 - smoothed) / n
    n_all = sum(stratum.labelled for stratum in labelled)
    smoothed = (share * n_all + 1) / (n_all + 2)
    return wilson(share, smoothed * (1 - smoothed) / variance, z)


def recall(stored: Sequence[StratumCount], left_out: Sequence[StratumCount]) -> Interval | None:
    """The share of wanted pages that is stored; None without labels of both samples.

    `right` means wanted for a stored page, and rightly left out for a link. The bounds combine those of both samples at
    97.5 %, so that the interval holds with at least 95 %. Strata without a label count like the others.
    """
    precision_stored, gone = of_all(stored, Z975), of_all(left_out, Z975)
    if precision_stored is None or gone is None:
        return None
    pages, links = sum(stratum.size for stratum in stored), sum(stratum.size for stratum in left_out)

    def share(precise: float, rightly: float) -> float:
        in_crawl, missed = precise * pages, (1 - rightly) * links
        return in_crawl / (in_crawl + missed) if in_crawl + missed else 0.0

    return Interval(
        share(precision_stored.estimate, gone.estimate),
        share(precision_stored.low, gone.low),
        share(precision_stored.high, gone.high),
    )
