"""Raw results: one JSON file per run under results/, with the machine, the versions and the date. Tables for people."""

import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """What the figures depend on, without names or paths."""
    model = "unknown"
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = models[0] if models else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 20)
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_mb": memory,
        "system": platform.system(),
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        "load_1min": round(os.getloadavg()[0], 2),
    }


def versions(*names: str) -> dict[str, str]:
    """The installed versions of distributions; those that are absent are left out."""
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def save(what: str, data: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write the raw results of one run; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    now = time.gmtime()
    path = folder / f"{time.strftime('%Y%m%dT%H%M%SZ', now)}-{what}.json"
    document = {"what": what, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", now), "machine": machine(), **data}
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns aligned: the first to the left, the others to the right."""
    cells = [[_cell(value) for value in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            value.ljust(width) if i == 0 else value.rjust(width)
            for i, (value, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    )


def _cell(value: object) -> str:
    return (
        f"{value:.3g}"
        if isinstance(value, float) and abs(value) < 100
        else f"{value:.0f}"
        if isinstance(value, float)
        else str(value)
    )
