"""What the table of extensions names is there, and takes the arguments that the core gives.

The type checker does not see across the border: `extension` returns Any.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from nephila.kernel.runtime.extensions import EXTENSIONS, extension

from tools.import_arrows import SERVICES

NOT_CALLED = {"browser-metrics", "proxy-metrics"}
"""Rows that are values."""


class _Call(NamedTuple):
    name: str
    place: str
    positional: int
    keywords: tuple[str, ...]


def _row_of(node: ast.expr) -> str | None:
    """The name of the row in `extension("name")`."""
    match node:
        case ast.Call(func=ast.Name(id="extension"), args=[ast.Constant(value=str(name))]):
            return name
        case _:
            return None


def calls_of(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Each call of what `extension` returns, at once or by a variable."""
    variables: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=variable)], value=value) if name := _row_of(value):
                variables[variable] = name
            case _:
                pass
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _row_of(node.func) or (variables.get(node.func.id) if isinstance(node.func, ast.Name) else None)
            if name is not None:
                yield name, node


def _calls() -> Iterator[_Call]:
    for path in sorted((SERVICES / "nephila").rglob("*.py")):
        for name, node in calls_of(ast.parse(path.read_text("utf-8"))):
            keywords = tuple(keyword.arg for keyword in node.keywords if keyword.arg)
            yield _Call(name, f"{path.name}:{node.lineno}", len(node.args), keywords)


CALLS = list(_calls())


@pytest.mark.parametrize("name", EXTENSIONS)
def test_each_row_can_be_loaded(name: str) -> None:
    assert extension(name) is not None


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.name} {call.place}")
def test_each_call_of_the_core_fits_the_signature(call: _Call) -> None:
    inspect.signature(extension(call.name)).bind(*[None] * call.positional, **dict.fromkeys(call.keywords))


def test_each_row_is_called_somewhere() -> None:
    assert EXTENSIONS.keys() - NOT_CALLED == {call.name for call in CALLS}


def test_a_call_by_a_variable_counts() -> None:
    tree = ast.parse('export = extension("archives")\nexport(1, shown=2)\nextension("search")(3)\nother(4)')
    assert [name for name, _ in calls_of(tree)] == ["archives", "search"]
