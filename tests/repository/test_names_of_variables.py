"""A variable is named after the thing it holds, and an override says nothing instead of pointing at its contract."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVICES = Path(__file__).parents[2] / "services"
PACKAGES = ("rules", "browser", "proxies", "documents", "stores", "tools", "harvest", "cluster")
WORDS = {"found", "one", "wanted", "known", "given", "said", "told", "asked", "kept", "shown", "place"}
MOST = 0.003
"""Share of all assigned names; fields of documents and of answers keep such names."""


def assigned_names(tree: ast.AST) -> Iterator[str]:
    """Variables, parameters, and names of exceptions and patterns."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


def trees(package: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((SERVICES / f"nephila_{package}").rglob("*.py")):
        yield path, ast.parse(path.read_text())


def test_names_of_all_kinds_are_counted():
    source = (
        "def f(one, *, two):\n    try:\n        found = [known for known in one]\n    except ValueError as said: ..."
    )
    assert sorted(assigned_names(ast.parse(source))) == ["found", "known", "one", "said", "two"]


@pytest.mark.parametrize("package", PACKAGES)
def test_variables_are_named_after_what_they_hold(package):
    names = [name for _, tree in trees(package) for name in assigned_names(tree)]
    assert sum(name in WORDS for name in names) <= MOST * len(names)


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_of_functions_do_not_point_elsewhere(package):
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    pointing = [
        f"{path}:{node.lineno}"
        for path, tree in trees(package)
        for node in ast.walk(tree)
        if isinstance(node, functions) and (ast.get_docstring(node) or "").startswith("See ")
    ]
    assert pointing == []
