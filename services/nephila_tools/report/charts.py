"""Charts as inline SVG: shapes and numbers only, coloured by the style sheet, each part with its words as a tooltip."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nephila_console.figures import count, share, span

from nephila_tools.report.facts import OUTCOMES, Timeline
from nephila_tools.report.markup import instant

WIDTH: Final = 960
HEIGHT: Final = 230
_LEFT, _BOTTOM, _TOP = 46, 26, 10


def timeline(data: Timeline) -> str:
    """Stacked columns of what ended when."""
    if not data.counts:
        return ""
    peak = max((sum(step.values()) for step in data.counts), default=0) or 1
    tick = _tick(peak)
    top = math.ceil(peak / tick) * tick
    area = HEIGHT - _TOP - _BOTTOM
    parts = []
    for value in range(0, top + 1, tick):
        y = _TOP + area * (1 - value / top)
        parts.append(f'<line class=grid x1="{_LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class=axis x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{count(value)}</text>')
    step = (WIDTH - _LEFT) / len(data.counts)
    gap = min(1.5, step / 5)
    wide = data.step_s * len(data.counts) > 86_400
    for number, counts in enumerate(data.counts):
        if not counts:
            continue
        at = data.start + number * data.step_s
        words = ", ".join(f"{count(counts[name])} {name}" for name in OUTCOMES if counts.get(name))
        parts.append(f"<g><title>{instant(at, date=wide)}: {words}</title>")
        y = float(HEIGHT - _BOTTOM)
        for name in OUTCOMES:
            height = area * counts.get(name, 0) / top
            if height:
                y -= height
                x = _LEFT + number * step
                parts.append(
                    f'<rect class="fill {name}" x="{x:.2f}" y="{y:.2f}" width="{step - gap:.2f}"'
                    f' height="{height:.2f}"/>'
                )
        parts.append("</g>")
    unit = "second" if data.step_s == 1 else span(data.step_s)
    length = data.step_s * len(data.counts)
    for fraction, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        x = _LEFT + (WIDTH - _LEFT) * fraction
        parts.append(
            f'<text class=axis x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}">'
            f"{instant(data.start + length * fraction, date=wide)}</text>"
        )
    return (
        f'<svg class=chart viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="URLs that ended over time">'
        f"{''.join(parts)}</svg><p class=caption>URLs that ended per {unit}, times in UTC</p>"
    )


def _tick(peak: int) -> int:
    """A round step that divides the scale into two to five."""
    raw = peak / 4
    size = 10 ** math.floor(math.log10(raw)) if raw >= 1 else 1
    return max(1, next(int(size * factor) for factor in (1, 2, 5, 10) if size * factor >= raw))


def shares(counts: Mapping[str, int], names: Sequence[str] = OUTCOMES) -> str:
    """One bar of all rows, divided by outcome, with its legend."""
    total = sum(counts.values()) or 1
    present = [name for name in names if counts.get(name)]
    x, parts = 0.0, []
    for name in present:
        width = WIDTH * counts[name] / total
        words = f"{count(counts[name])} {name}, {share(counts[name], total)}"
        drawn = max(width - 2, 1.0)
        parts.append(
            f'<rect class="fill {name}" x="{x:.2f}" y="0" width="{drawn:.2f}" height="26"><title>{words}</title></rect>'
        )
        x += width
    legend = "".join(
        f'<li><span class="dot {name}"></span><b>{count(counts[name])}</b> {name}'
        f" <span class=soft>{share(counts[name], total)}</span></li>"
        for name in present
    )
    return (
        f'<svg class=chart viewBox="0 0 {WIDTH} 26" preserveAspectRatio="none" role="img" aria-label="Outcomes">'
        f"{''.join(parts)}</svg><ul class=legend>{legend}</ul>"
    )
