"""Draws docs/packages.svg: which package imports which, and how large each is.

    python -m tools.package_graph [--check]

Every package imports the core, which imports none: those arrows are left out. So are the imports of commands and
programs, which stand in a higher tier than their package (tools/package_tiers.py). An arrow is wider for more imports.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import grimp

from tools.package_tiers import read_tiers, tier_of

ROOT: Final = Path(__file__).parents[1]
PICTURE: Final = ROOT / "docs" / "packages.svg"
ROWS: Final = (
    ("tools", "console", "doors"),
    ("control",),
    ("harvest", "cluster"),
    ("rules", "stores", "browser", "login", "proxies", "documents"),
)
CORE: Final = "nephila"
WIDTH, ROW, BOX, HEIGHT = 1240, 130, 176, 54
STYLE: Final = """
text { font: 15px system-ui, sans-serif; fill: #1c2430; text-anchor: middle }
.lines { font-size: 12px; fill: #596579 }
rect { fill: #f4f6f9; stroke: #8a96a8; rx: 8 }
.core { fill: #dfeaf7; stroke: #2f6fb3 }
path { fill: none; stroke: #8a96a8 }
marker path { fill: #8a96a8; stroke: none }
@media (prefers-color-scheme: dark) {
  text { fill: #e8ecf2 } .lines { fill: #a5b0c0 }
  rect { fill: #222a35; stroke: #6c7889 } .core { fill: #1d3550; stroke: #6ca6e0 }
}
"""


def packages() -> list[str]:
    """The packages beside the core."""
    return [f"{CORE}_{name}" for row in ROWS for name in row]


def imports() -> Counter[tuple[str, str]]:
    """(importer, imported) → imports between their modules."""
    tiers = read_tiers()
    graph = grimp.build_graph(CORE, *packages(), cache_dir=None)
    return Counter(
        (package, other)
        for module in graph.modules
        for target in graph.find_modules_directly_imported_by(module)
        if (package := module.partition(".")[0]) != (other := target.partition(".")[0])
        and tier_of(module, tiers) <= tier_of(package, tiers)
    )


def lines_of(package: str) -> int:
    """Lines of Python."""
    files = (ROOT / "services" / package).rglob("*.py")
    return sum(file.read_text("utf-8").count("\n") for file in files)


def picture() -> str:
    """The drawing."""
    places: dict[str, tuple[float, float]] = {}
    for number, row in enumerate(ROWS):
        for at, name in enumerate(row):
            places[f"{CORE}_{name}"] = (WIDTH * (at + 0.5) / len(row), 40 + number * ROW)
    bottom = 40 + len(ROWS) * ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 80}" role="img" '
        'aria-label="The packages and their imports; all import the core">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    for (package, other), number in sorted(imports().items()):
        if CORE not in (package, other):
            parts.append(arrow(places[package], places[other], 1 + math.log2(number) / 2))
    for package, (x, y) in places.items():
        parts.append(box(package, x, y, BOX, ""))
    parts.append(box(CORE, WIDTH / 2, bottom, WIDTH - 60, "core"))
    return "\n".join([*parts, "</svg>", ""])


def arrow(start: tuple[float, float], end: tuple[float, float], width: float) -> str:
    """A curve from the edge of one box to the edge of the other, to the right of its direction."""
    (x, y), (u, v) = start, end
    length = math.hypot(u - x, v - y)
    aside = (-(v - y) / length * 14, (u - x) / length * 14)
    (x, y), (u, v) = _edge(x, y, u, v), _edge(u, v, x, y)
    middle = ((x + u) / 2 + aside[0] * 2, (y + v) / 2 + aside[1] * 2)
    points = (x + aside[0], y + aside[1], *middle, u + aside[0], v + aside[1])
    return (
        '<path d="M{:.0f} {:.0f} Q{:.0f} {:.0f} {:.0f} {:.0f}" stroke-width="{:.1f}" marker-end="url(#end)"/>'.format(
            *points, width
        )
    )


def _edge(x: float, y: float, u: float, v: float) -> tuple[float, float]:
    """Where the line from the middle of a box leaves it."""
    step = min((BOX / 2) / abs(u - x) if u != x else 1, (HEIGHT / 2) / abs(v - y) if v != y else 1)
    return x + (u - x) * step, y + (v - y) * step


def box(name: str, x: float, y: float, width: float, kind: str) -> str:
    """A package with its size."""
    text = f"{round(lines_of(name), -2):,} lines"
    return (
        f'<rect class="{kind}" x="{x - width / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{width:.0f}" height="{HEIGHT}"/>'
        f'<text x="{x:.0f}" y="{y - 3:.0f}">{name}</text><text class="lines" x="{x:.0f}" y="{y + 17:.0f}">{text}</text>'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether the imports between packages are drawn")
    options = parser.parse_args()
    drawn = picture()
    if not options.check:
        PICTURE.write_text(drawn, "utf-8")
    elif _arrows(drawn) != _arrows(PICTURE.read_text("utf-8")):
        sys.exit("docs/packages.svg shows other imports than there are: make schema")


def _arrows(text: str) -> int:
    return text.count("marker-end")


if __name__ == "__main__":
    main()
