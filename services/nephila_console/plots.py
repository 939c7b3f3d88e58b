"""The server draws plots as inline SVG, so the console needs no script for them. They hold numbers and attributes only;
the style sheet colours them. Pure.

Every plot has a title for screen readers; each part its words as a tooltip.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup, escape
from nephila.kernel.figures import count, span
from nephila_control.audit_types import Precision
from nephila_control.screen_types import Sample, TimeBin

from nephila_console.messages import translate as _

WIDTH: Final = 960
HEIGHT: Final = 200
_LEFT, _BOTTOM, _TOP = 52, 24, 10
OUTCOMES: Final = ("stored", "dropped", "denied", "failed")


def timeline(bins: Sequence[TimeBin], step_s: int) -> Markup:
    """Draws ended fetches as stacked columns."""
    if not bins:
        return Markup("")
    first, last = bins[0].at, bins[-1].at
    steps = (last - first) // step_s + 1
    top = _top(max(sum(slot.outcomes.values()) for slot in bins))
    parts = [_grid(top)]
    step = (WIDTH - _LEFT) / max(steps, 12)
    gap = min(1.5, step / 5)
    for slot in bins:
        words = ", ".join(f"{count(slot.outcomes[name])} {_(name)}" for name in OUTCOMES if slot.outcomes.get(name))
        parts.append(f"<g><title>{_instant(slot.at, last - first)}: {escape(words)}</title>")
        y = float(HEIGHT - _BOTTOM)
        x = _LEFT + (slot.at - first) // step_s * step
        for name in OUTCOMES:
            height = _area(slot.outcomes.get(name, 0), top)
            if height:
                y -= height
                box = f'x="{x:.1f}" y="{y:.1f}" width="{step - gap:.1f}" height="{height:.1f}"'
                parts.append(f'<rect class="fill {name}" {box}/>')
        parts.append("</g>")
    parts.append(_times(first, first + step_s * max(steps, 12)))
    unit = _("second") if step_s == 1 else span(step_s)
    return _svg("".join(parts), _("Fetches that ended per %(unit)s; times in UTC") % {"unit": unit})


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
    width = max(last - first, 1.0)
    lines = {
        "queued": [sample.queued + sample.in_flight for sample in samples],
        "stored": [sample.stored for sample in samples],
        "ended": [sample.stored + sample.denied + sample.failed + sample.dropped for sample in samples],
    }
    top = _top(max(max(values) for values in lines.values()))
    parts = [_grid(top)]
    for name, values in lines.items():
        points = " ".join(
            f"{_LEFT + (WIDTH - _LEFT) * (sample.at - first) / width:.1f},{HEIGHT - _BOTTOM - _area(value, top):.1f}"
            for sample, value in zip(samples, values, strict=True)
        )
        title = f"{_(name)}: {count(values[-1])}"
        parts.append(f'<polyline class="line {name}" points="{points}"><title>{escape(title)}</title></polyline>')
    parts.append(_times(first, last))
    return _svg("".join(parts), _("Queue and ended URLs since the start; times in UTC"))


def _svg(inside: str, words: str) -> Markup:
    return Markup(
        f'<figure><svg class=plot viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(words)}">{inside}</svg>'
        f"<figcaption>{escape(words)}</figcaption></figure>"
    )


def _grid(top: int) -> str:
    parts = []
    for value in range(0, top + 1, _tick(top)):
        y = HEIGHT - _BOTTOM - _area(value, top)
        parts.append(
            f'<line class=grid x1="{_LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class=axis x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_short(value)}</text>'
        )
    return "".join(parts)


def _times(first: float, last: float) -> str:
    return "".join(
        f'<text class=axis x="{_LEFT + (WIDTH - _LEFT) * at:.0f}" y="{HEIGHT - 5}" text-anchor="{anchor}">'
        f"{_instant(first + (last - first) * at, last - first)}</text>"
        for at, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    )


def _area(value: float, top: int) -> float:
    return (HEIGHT - _TOP - _BOTTOM) * value / top


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
