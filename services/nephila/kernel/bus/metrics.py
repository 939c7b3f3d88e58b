"""Metrics that every bus has."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from nephila.kernel.runtime.metrics import Metric


class CountsDeadLetters(Protocol):
    """A bus of one program, on one machine or over a broker."""

    dead_letters: Counter[tuple[str, str]]


DEAD_LETTERS: Metric[CountsDeadLetters] = Metric(
    "dead_letters_total",
    "Messages that ended as dead letters, by topic and class of error. Any rise is a fault; see `nephila service dead "
    "list`.",
    lambda bus: bus.dead_letters,
    ("topic", "reason"),
    counter=True,
)
