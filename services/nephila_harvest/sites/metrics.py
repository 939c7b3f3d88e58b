"""Metrics of the lists of directories, as the program that starts their runs knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from nephila.kernel.runtime.metrics import Metric


class Lists(Protocol):
    """The lists after their last runs."""

    @property
    def verdicts(self) -> Mapping[str, int]:
        """Verdict → number of lists."""

    @property
    def faulty_for(self) -> Mapping[str, float]:
        """Directory with a fault → seconds since it began."""


METRICS: tuple[Metric[Lists], ...] = (
    Metric(
        "lists",
        "Lists of directories by the verdict of their last run. A rise of another value than new and same: lists are "
        "not fetched; see nephila sites list.",
        lambda s: dict(s.verdicts),
        "verdict",
    ),
    Metric(
        "fault_seconds",
        "Time since a list of a directory began to fail; a directory without a fault has no value. A rise: its pages "
        "are not found; see nephila sites list.",
        lambda s: dict(s.faulty_for),
        "directory",
    ),
)
