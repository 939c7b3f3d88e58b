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
from typing import Any, Final, NamedTuple

from markupsafe import Markup, escape
from nephila_control.audit_types import Precision
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
OUTCOMES: Final = ("stored", "dropped", "denied", "failed")


def timeline(bins: Sequence[TimeBin], step_s: int, now: float) -> Markup:
    """Draws ended fetches as stacked columns. A column whose time is not over at `now` is drawn paler, since it would
    look like a fall."""
    if not bins:
        return Markup("")
    first, last = bins[0].at, bins[-1].at
    steps = max((last - first) // step_s + 1, 12)
    top = _top(max(sum(slot.outcomes.values()) for slot in bins))

    def draw(size: _Size) -> str:
        step = (size.width - size.left) / steps
        gap = min(1.5, step / 5)
        parts = []
        for slot in bins:
            y = float(size.height - size.bottom)
            x = size.left + (slot.at - first) // step_s * step
            ended = "" if slot.at + step_s <= now else " unended"
            for name in OUTCOMES:
                height = size.area(slot.outcomes.get(name, 0), top)
                if height:
                    y -= height
                    box = f'x="{x:.1f}" y="{y:.1f}" width="{step - gap:.1f}" height="{height:.1f}"'
                    parts.append(f'<rect class="fill {name}{ended}" {box}/>')
        return "".join(parts)

    unit = _("second") if step_s == 1 else span(step_s)
    values = {name: [slot.outcomes.get(name, 0) for slot in bins] for name in OUTCOMES}
    words = _("Fetches that ended per %(unit)s") % {"unit": unit}
    frame = _Frame(first, first + step_s * steps, top, [slot.at + step_s / 2 for slot in bins])
    return _figure(draw, frame, values, words)


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


def curves(samples: Sequence[Sample]) -> Markup:
    """Draws queue and ended URLs since the start of the program."""
    if len(samples) < 3:
        return Markup("")
    first, last = samples[0].at, samples[-1].at
    length = max(last - first, 1.0)
    lines = {
        "queued": [sample.queued + sample.in_flight for sample in samples],
        "stored": [sample.stored for sample in samples],
        "ended": [sample.stored + sample.denied + sample.failed + sample.dropped for sample in samples],
    }
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
    return _figure(draw, frame, lines, _("Queue and ended URLs since the start"))


class _Frame(NamedTuple):
    first: float
    last: float
    top: int
    times: Sequence[float]
    """Instant of each value, in seconds since 1970."""


def _figure(draw: Callable[[_Size], str], frame: _Frame, values: Mapping[str, Sequence[int]], words: str) -> Markup:
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
    return "".join(
        f'<text class=axis x="{size.x(at):.0f}" y="{size.height - 5}" text-anchor="{anchor}" '
        f'data-at="{frame.first + length * at:.0f}">{_instant(frame.first + length * at, length)}</text>'
        for at, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
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
    return time.strftime("%Y-%m-%d %H:%M" if length_s > 86_400 else "%H:%M:%S", time.gmtime(seconds))
