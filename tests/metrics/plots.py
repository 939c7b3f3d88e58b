"""Pictures of dashboards: the series of each panel, drawn by matplotlib in the order of the dashboard."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import EngFormatter
from PIL import Image

from tests.metrics.panels import UNANSWERED, Panel

COLUMNS = 4
SHOWN = 8
"""Series of a panel that are drawn."""


def draw(found: list[Panel], began: float, folder: Path) -> list[Path]:
    """One picture per dashboard."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, group in groupby(found, key=lambda panel: panel.dashboard):
        panels = list(group)
        rows = -(-len(panels) // COLUMNS)
        figure, axes = plt.subplots(rows, COLUMNS, figsize=(16, 2.6 * rows), squeeze=False)
        for axis in axes.flat[len(panels) :]:
            axis.axis("off")
        for axis, panel in zip(axes.flat, panels, strict=False):
            _draw(axis, panel, began)
        figure.suptitle(f"Nephila / {name}", fontsize=12)
        figure.tight_layout()
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=58)
        plt.close(figure)
        with Image.open(path) as picture:
            picture.quantize(64).save(path, optimize=True)
        written.append(path)
    return written


def _draw(axis: plt.Axes, panel: Panel, began: float) -> None:
    axis.set_title(panel.title, fontsize=9)
    axis.tick_params(labelsize=7)
    axis.yaxis.set_major_formatter(EngFormatter(sep=""))
    axis.grid(alpha=0.3)
    axis.margins(x=0)
    if not panel.answered:
        axis.text(0.5, 0.5, UNANSWERED.get(panel.title, "no data"), ha="center", fontsize=7, transform=axis.transAxes)
        return
    for one in panel.series[:SHOWN]:
        at = [point - began for point, _ in one["values"]]
        axis.plot(at, [float(value) for _, value in one["values"]], linewidth=1.1, label=_label(panel, one["metric"]))
    axis.set_ylim(bottom=0)
    axis.set_ylabel("" if panel.unit == "short" else panel.unit, fontsize=7)
    if len(panel.series) > 1 or "{{" in panel.legend:
        axis.legend(fontsize=6, frameon=False)


def _label(panel: Panel, labels: dict[str, str]) -> str:
    text = panel.legend
    for name, value in labels.items():
        text = text.replace("{{" + name + "}}", value)
    return text
