"""The server draws plots as inline SVG, so the console needs no script for them. They hold numbers and attributes only;
the style sheet colours them. Pure.

A plot is drawn twice, for wide and for narrow screens, because the labels of a drawing that is scaled down are too
small. Every plot has a title for screen readers. Its values stand in attributes, from which a script shows the value
under the pointer.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from markupsafe import Markup, escape
from nephila_control.audit_types import Precision
from nephila_control.rule_types import RuleSample
from nephila_control.screen_types import Sample, TimeBin

from nephila_console.figures import count, span
from nephila_console.messages import translate as _


class _Size(NamedTuple):
    name: str
    width: int
    height: int
    left: int = 44
    top: int = 10
    bottom: int = 24

    def x(self, share: float) -> float:
        """Places a share of the time."""
        return self.left + (self.width - self.left) * share

    def area(self, value: float, top: int) -> float:
        """Scales a value to a height."""
        return (self.height - self.top - self.bottom) * value / top


SIZES: Final = (_Size("wide", 640, 220), _Size("narrow", 340, 190))
WIDTH: Final = 960
"""Width of the plot of an interval."""
LONGEST_CLOCK_S: Final = 86_400
"""A longer time has dates at its axis."""
OUTCOMES: Final = ("stored", "dropped", "denied", "failed")


class _Column(NamedTuple):
    at: float
    length_s: float
    values: Mapping[str, float]
    """Fetches by outcome, for a whole step."""
    ended: bool = True
    """False while its time is not over: it is drawn paler, since it would look like a fall."""


def timeline(bins: Sequence[TimeBin], step_s: int, now: float) -> Markup:
    """Draws ended fetches as stacked columns."""
    if not bins:
        return Markup("")
    columns = [_Column(slot.at, step_s, slot.outcomes, slot.at + step_s <= now) for slot in bins]
    return _stacked(columns, step_s, 12 * step_s)


def ends(samples: Sequence[Sample], step_s: float) -> Markup:
    """Draws what ended between two samples as stacked columns, each as high as if its time were a whole step. A last
    column of less than a third of a step is left out: it says nothing yet."""
    columns = [
        _Column(before.at, after.at - before.at, _ended(before, after, step_s), after.at - before.at >= 0.9 * step_s)
        for before, after in pairwise(samples)
        if after.at - before.at >= step_s / 3
    ]
    return _stacked(columns, step_s, 3 * step_s) if len(columns) > 1 else Markup("")


def _ended(before: Sample, after: Sample, step_s: float) -> dict[str, float]:
    """A job that was deleted takes its counts away; that is no negative number of ends."""
    share = step_s / (after.at - before.at)
    return {name: max(getattr(after, name) - getattr(before, name), 0) * share for name in OUTCOMES}


def _stacked(columns: Sequence[_Column], step_s: float, least_s: float) -> Markup:
    first = columns[0].at
    length = max(columns[-1].at + columns[-1].length_s - first, least_s)
    top = _top(max(sum(column.values.values()) for column in columns))

    def draw(size: _Size) -> str:
        parts = []
        for column in columns:
            y = float(size.height - size.bottom)
            x, end = (size.x((at - first) / length) for at in (column.at, column.at + column.length_s))
            width = (end - x) - min(1.5, (end - x) / 5)
            for name in OUTCOMES:
                height = size.area(column.values.get(name, 0), top)
                if height:
                    y -= height
                    box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
                    parts.append(f'<rect class="fill {name}{"" if column.ended else " unended"}" {box}/>')
        return "".join(parts)

    unit = _("second") if step_s == 1 else span(step_s)
    values = {name: [round(column.values.get(name, 0), 1) for column in columns] for name in OUTCOMES}
    words = _("Fetches that ended per %(unit)s") % {"unit": unit}
    middles = [column.at + column.length_s / 2 for column in columns]
    return _figure(draw, _Frame(first, first + length, top, middles), values, words)


def interval(precision: Precision) -> Markup:
    """Draws an estimate from 0 to 1 as a point on its interval."""
    width = WIDTH - 8
    values = (precision.low, precision.high, precision.estimate)
    low, high, at = (4 + width * min(max(value, 0.0), 1.0) for value in values)
    marks = "".join(f'<path class="grid" d="M{4 + width * tenth / 10:.1f} 4v16"/>' for tenth in range(11))
    bar = f'<rect class="range" x="{low:.1f}" y="8" width="{max(high - low, 2):.1f}" height="8" rx="4"/>'
    label = escape(_("Interval of the precision, from 0 to 100 %"))
    return Markup(
        f'<svg class="interval" viewBox="0 0 {WIDTH} 24" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f'{marks}{bar}<path class="point" d="M{at:.1f} 3v18"/></svg>'
    )


def curves(samples: Sequence[Sample], *, queue_alone: bool = False) -> Markup:
    """Draws queue and ended URLs. A part of the time has the queue alone, since sums since the start are flat there."""
    if len(samples) < 3:
        return Markup("")
    first, last = samples[0].at, samples[-1].at
    length = max(last - first, 1.0)
    lines = {
        "queued": [sample.queued + sample.in_flight for sample in samples],
        "stored": [sample.stored for sample in samples],
        "ended": [sample.stored + sample.denied + sample.failed + sample.dropped for sample in samples],
    }
    if queue_alone:
        lines = {"queued": lines["queued"]}
    top = _top(max(max(values) for values in lines.values()))

    def draw(size: _Size) -> str:
        parts = []
        for name, values in lines.items():
            points = " ".join(
                f"{size.x((sample.at - first) / length):.1f},{size.height - size.bottom - size.area(value, top):.1f}"
                for sample, value in zip(samples, values, strict=True)
            )
            parts.append(f'<polyline class="line {name}" points="{points}"/>')
        return "".join(parts)

    frame = _Frame(first, first + length, top, [sample.at for sample in samples])
    words = _("Queued URLs") if queue_alone else _("Queue and ended URLs since the start")
    return _figure(draw, frame, lines, words)


def shares(samples: Sequence[RuleSample]) -> Markup:
    """Draws the share of pages with items, with a mark where a version of the rule began. A version before the present
    one is a single point."""
    if len(samples) < 3:
        return Markup("")
    first, last = samples[0].at, samples[-1].at
    length = max(last - first, 1.0)
    percent = [round(100 * sample.items, 1) for sample in samples]
    begins = [before.at for before, after in pairwise(samples) if before.version != after.version]

    def draw(size: _Size) -> str:
        marks = [
            f'<path class="begun" d="M{size.x((at - first) / length):.1f} {size.top}V{size.height - size.bottom}"/>'
            for at in begins
        ]
        points = " ".join(
            f"{size.x((sample.at - first) / length):.1f},{size.height - size.bottom - size.area(value, 100):.1f}"
            for sample, value in zip(samples, percent, strict=True)
        )
        return f'{"".join(marks)}<polyline class="line stored" points="{points}"/>'

    values = {"pages with items, %": percent}
    frame = _Frame(first, first + length, 100, [sample.at for sample in samples])
    return _figure(draw, frame, values, _("Pages with items, in per cent; a mark where a version began"))


class _Frame(NamedTuple):
    first: float
    last: float
    top: int
    times: Sequence[float]
    """Instant of each value, in seconds since 1970."""


def _figure(draw: Callable[[_Size], str], frame: _Frame, values: Mapping[str, Sequence[float]], words: str) -> Markup:
    data: dict[str, Any] = {
        "first": frame.first,
        "last": frame.last,
        "times": [round(at - frame.first, 1) for at in frame.times],
        "values": {_(name): numbers for name, numbers in values.items()},
    }
    drawings = "".join(
        f'<svg class="plot {size.name}" viewBox="0 0 {size.width} {size.height}" data-left="{size.left}" '
        f'data-top="{size.top}" data-bottom="{size.height - size.bottom}" role="img" '
        f'aria-label="{escape(words)}">{_grid(size, frame.top)}{draw(size)}{_times(size, frame)}</svg>'
        for size in SIZES
    )
    return Markup(
        f'<figure data-plot="{escape(json.dumps(data, ensure_ascii=False))}">{drawings}'
        f'<figcaption><span>{escape(words)}<span class="utc"> · UTC</span></span><output></output>'
        "</figcaption></figure>"
    )


def _grid(size: _Size, top: int) -> str:
    parts = []
    for value in range(0, top + 1, _tick(top)):
        y = size.height - size.bottom - size.area(value, top)
        parts.append(
            f'<line class=grid x1="{size.left}" x2="{size.width}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class=axis x="{size.left - 8}" y="{y + 4:.1f}" text-anchor="end">{_short(value)}</text>'
        )
    return "".join(parts)


def _times(size: _Size, frame: _Frame) -> str:
    length = frame.last - frame.first
    dates = length > LONGEST_CLOCK_S
    return "".join(
        f'<text class=axis x="{size.x(at):.0f}" y="{size.height - 5}" text-anchor="{anchor}" '
        f'data-at="{frame.first + length * at:.0f}">{_instant(frame.first + length * at, length)}</text>'
        for at, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
        if at != 0.5 or not dates or size.name == "wide"  # three dates are wider than a telephone
    )


def _top(peak: float) -> int:
    tick = _tick(peak)
    return math.ceil(max(peak, 1) / tick) * tick


def _tick(peak: float) -> int:
    """Chooses a round step that divides the scale into two to five."""
    raw = peak / 4
    magnitude = 10 ** math.floor(math.log10(raw)) if raw >= 1 else 1
    return max(1, next(int(magnitude * factor) for factor in (1, 2, 5, 10) if magnitude * factor >= raw))


def _short(value: int) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:g} M"
    return f"{value / 1000:g} k" if value >= 10_000 else count(value)


def _instant(seconds: float, length_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M" if length_s > LONGEST_CLOCK_S else "%H:%M:%S", time.gmtime(seconds))
