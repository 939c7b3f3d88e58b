"""Variables are named after what they hold: words that fit everything say nothing to a reader."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.import_arrows import SERVICES

EMPTY_WORDS = frozenset({"found", "one", "wanted", "known", "given", "said", "told", "asked", "kept", "shown", "place"})

MOST_PERCENT = 0.3
MORE_PERCENT = {
    "nephila/api": 3.9,
    "nephila/cli": 6.4,
    "nephila/programs": 5.1,
    "nephila_browser": 3.6,
    "nephila_cluster": 4.3,
    "nephila_console": 11.0,
    "nephila_control": 7.5,
    "nephila_documents": 6.2,
    "nephila_doors": 9.6,
    "nephila_harvest": 8.8,
    "nephila_proxies": 3.3,
    "nephila_rules": 10.0,
    "nephila_stores": 4.3,
    "nephila_tools": 5.2,
}
"""Folder → percent of its assigned names that may still be such words. A bound only shrinks, then leaves the table."""


def _folders() -> list[str]:
    packages = sorted(path.parent for path in SERVICES.glob("*/__init__.py"))
    beside = [path.name for path in packages if path.name != "nephila"]
    core = [path.name for path in (SERVICES / "nephila").iterdir() if any(path.rglob("*.py"))]
    return [*(f"nephila/{name}" for name in sorted(core)), *beside]


def assigned_names(tree: ast.AST) -> Iterator[str]:
    """Each name that the code binds: targets, parameters, caught errors and captures of a match."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case _:
                pass


def _percent(folder: Path) -> float:
    names: Counter[str] = Counter()
    for path in folder.rglob("*.py"):
        if not path.name.endswith("_pb2.py"):
            names.update(assigned_names(ast.parse(path.read_text("utf-8"))))
    return 100 * sum(names[word] for word in EMPTY_WORDS) / max(names.total(), 1)


@pytest.mark.parametrize("folder", _folders())
def test_few_variables_have_a_name_that_fits_everything(folder: str) -> None:
    assert _percent(SERVICES / folder) <= MORE_PERCENT.get(folder, MOST_PERCENT)


@pytest.mark.parametrize("folder", sorted(MORE_PERCENT))
def test_a_folder_that_keeps_the_common_bound_needs_none_of_its_own(folder: str) -> None:
    assert _percent(SERVICES / folder) > MOST_PERCENT


def test_all_ways_to_bind_a_name_count() -> None:
    source = """
def f(a, /, b, *c, d, **e):
    g = h = 1
    for i, j in []: pass
    with b as k: pass
    [l for l in []]
    if (m := 1): pass
    try: pass
    except ValueError as n: pass
    match a:
        case [o, *p]: pass
"""
    assert sorted(assigned_names(ast.parse(source))) == list("abcdeghijklmnop")
