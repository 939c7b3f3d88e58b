"""Short curves without axes, for a tile or a cell of a table. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup, escape

from nephila_console.figures import count

WIDTH: Final = 96
HEIGHT: Final = 24
POINTS: Final = 60
"""Points of a curve; more values are joined, each point the largest of its part."""


def columns(values: Sequence[int], words: str) -> Markup:
    """Draws a number for each of a few equal intervals. `words` name the values for screen readers and on hover."""
    if not any(values):
        return Markup('<span class="soft">–</span>')
    top, step = max(values), WIDTH / len(values)
    bars = "".join(
        f'<rect x="{number * step:.1f}" y="{HEIGHT - _height(value, top):.1f}" width="{step - 1:.1f}" '
        f'height="{_height(value, top):.1f}"/>'
        for number, value in enumerate(values)
        if value
    )
    return _svg(f'<path class="base" d="M0 {HEIGHT - 0.5}H{WIDTH}"/>{bars}', f"{words}: {_listed(values)}")


def line(values: Sequence[float], words: str, top: float = 0.0) -> Markup:
    """Draws how a number went; empty for less than three values. `top`: the value at the upper edge, by default the
    largest."""
    if len(values) < 3:
        return Markup("")
    points = _joined(values)
    top, step = top or max([*points, 0.0]) or 1.0, WIDTH / (len(points) - 1)
    path = " ".join(
        f"{number * step:.1f},{HEIGHT - 1 - (HEIGHT - 3) * value / top:.1f}" for number, value in enumerate(points)
    )
    area = f'<polygon points="0,{HEIGHT} {path} {WIDTH},{HEIGHT}"/>'
    return _svg(f'{area}<polyline points="{path}"/>', words)


def _joined(values: Sequence[float]) -> list[float]:
    size = -(-len(values) // POINTS)
    return [max(values[first : first + size]) for first in range(0, len(values), size)]


def _height(value: int, top: int) -> float:
    return max((HEIGHT - 2) * value / top, 2.0)


def _listed(values: Sequence[int]) -> str:
    return " · ".join(map(count, values))


def _svg(inner: str, words: str) -> Markup:
    label = escape(words)
    return Markup(
        f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{label}"><title>{label}</title>{inner}</svg>'
    )
