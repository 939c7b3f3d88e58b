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


def _sample(at: float, stored: int, failed: int = 0) -> Sample:
    return Sample(at=at, queued=5, in_flight=1, stored=stored, denied=0, failed=failed, dropped=0)


def test_ends_of_a_range_are_differences_of_its_samples() -> None:
    data = _data(str(plots.ends([_sample(0, 100), _sample(10, 130, 2), _sample(20, 140, 2)], 10)))
    assert data["values"] == {"stored": [30, 10], "dropped": [0, 0], "denied": [0, 0], "failed": [2, 0]}
    assert data["times"] == [5, 15]


def test_a_step_that_has_not_ended_is_no_fall() -> None:
    """Its column is as high as that of a whole step, and paler; a shorter part is left out."""
    whole = [_sample(0, 0), _sample(10, 30)]
    half = str(plots.ends([*whole, _sample(15, 45)], 10))
    assert _data(half)["values"]["stored"] == [30, 30]
    assert half.count("unended") == len(plots.SIZES)
    short = str(plots.ends([*whole, _sample(20, 60), _sample(22, 60)], 10))
    assert _data(short)["values"]["stored"] == [30, 30]
    assert "unended" not in short


def test_a_deleted_job_makes_no_negative_column() -> None:
    data = _data(str(plots.ends([_sample(0, 100), _sample(10, 20), _sample(20, 25)], 10)))
    assert data["values"]["stored"] == [0, 5]


def test_the_queue_of_a_range_has_its_own_scale() -> None:
    data = _data(str(plots.curves([_sample(at, 10**6) for at in range(3)], queue_alone=True)))
    assert data["values"] == {"queued": [6, 6, 6]}


def test_dates_have_room_on_a_narrow_screen() -> None:
    wide, narrow = (
        part.count("data-at")
        for part in str(plots.curves([_sample(at * 10**5, 1) for at in range(3)])).split("</svg>")[:2]
    )
    assert (wide, narrow) == (3, 2)
