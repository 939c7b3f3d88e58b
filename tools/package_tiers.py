"""Tiers of packages in pyproject.toml, and the imports that lead from a lower tier to a higher one.

import-linter's layers cannot split a package over two layers, and a package's commands are clients of packages that its
engines must not know.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]


def read_tiers() -> dict[str, int]:
    """Name of a package or module → its tier; 0 is the lowest."""
    rows = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["nephila"]["tiers"]
    return {name: tier for tier, names in enumerate(rows) for name in names}


def tier_of(module: str, tiers: Mapping[str, int]) -> int:
    """The tier of the longest name that a module begins with. Raises `KeyError`."""
    name = module
    while name not in tiers:
        parent = name.rpartition(".")[0]
        if not parent:
            raise KeyError(module)
        name = parent
    return tiers[name]


def upward_imports(graph: grimp.ImportGraph, tiers: Mapping[str, int]) -> list[tuple[str, str]]:
    """(importer, imported) of each import into a higher tier."""
    return sorted(
        (module, imported)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if tier_of(imported, tiers) > tier_of(module, tiers)
    )
