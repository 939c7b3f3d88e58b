"""Plots of the console: what is drawn, and the values that a script reads from them."""

from __future__ import annotations

import json
import re
from html import unescape

from nephila_console import plots
from nephila_control.screen_types import Sample, TimeBin


def _data(figure: str) -> dict:
    match = re.search(r'data-plot="([^"]*)"', figure)
    assert match is not None
    return json.loads(unescape(match[1]))


def _bins() -> list[TimeBin]:
    return [TimeBin(at=100, outcomes={"stored": 3}), TimeBin(at=105, outcomes={"stored": 2, "failed": 1})]


def test_an_interval_that_has_not_ended_is_paler() -> None:
    assert str(plots.timeline(_bins(), 5, now=109)).count("unended") == 2 * len(plots.SIZES)
    assert "unended" not in str(plots.timeline(_bins(), 5, now=110))


def test_a_plot_is_drawn_for_wide_and_narrow_screens() -> None:
    figure = str(plots.timeline(_bins(), 5, now=200))
    assert re.findall(r'class="plot (\w+)"', figure) == ["wide", "narrow"]


def test_the_values_of_a_plot_stand_beside_their_times() -> None:
    data = _data(str(plots.timeline(_bins(), 5, now=200)))
    assert data["times"] == [2.5, 7.5]
    assert data["values"]["stored"] == [3, 2]
    assert data["values"]["failed"] == [0, 1]


def test_curves_hold_the_queue_and_the_ends() -> None:
    samples = [
        Sample(at=float(at), queued=9 - at, in_flight=1, stored=at, denied=0, failed=1, dropped=0) for at in range(3)
    ]
    data = _data(str(plots.curves(samples)))
    assert data["values"] == {"queued": [10, 9, 8], "stored": [0, 1, 2], "ended": [1, 2, 3]}
    assert (data["first"], data["last"]) == (0, 2)


def test_two_samples_are_no_curve() -> None:
    assert str(plots.curves([])) == ""
