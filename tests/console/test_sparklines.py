"""Curves without axes: bounded, and with their values in words."""

from __future__ import annotations

import re

from nephila_console import sparklines


def test_columns_stand_for_their_values() -> None:
    drawing = str(sparklines.columns([0, 5, 10], "New <b>pages"))
    assert len(re.findall("<rect", drawing)) == 2
    heights = [float(height) for height in re.findall(r'height="([\d.]+)"/>', drawing)]
    assert heights[1] == 2 * heights[0] == sparklines.HEIGHT - 2
    assert "New &lt;b&gt;pages: 0 · 5 · 10" in drawing


def test_nothing_is_no_drawing() -> None:
    assert "svg" not in str(sparklines.columns([0, 0], "x"))
    assert str(sparklines.line([1.0, 2.0], "x")) == ""


def test_a_long_line_keeps_its_peaks_in_few_points() -> None:
    values = [1.0] * 1000
    values[777] = 9.0
    drawing = str(sparklines.line(values, "x"))
    (points,) = re.findall(r'<polyline points="([^"]*)"', drawing)
    ys = [float(point.split(",")[1]) for point in points.split()]
    assert len(ys) <= sparklines.POINTS
    assert ys.count(min(ys)) == 1
