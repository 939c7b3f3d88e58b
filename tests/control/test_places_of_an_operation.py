"""What an operation of the control API costs: a method with its route, its policy, a contract test. Nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from nephila_control.api import Control
from nephila_control.http.routes import ROUTES
from nephila_control.operations import Operations

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "services" / "nephila_control"
OPERATIONS = sorted(name for name in vars(Control) if not name.startswith("_"))
FURTHER = {"list_changes": {"changes.py"}}
"""`nephila changes` reads the database also where no program runs."""


def operations_in(file):
    """Names of the operations that a file writes down as a method with a typed request."""
    return {
        one.name
        for one in ast.walk(ast.parse(file.read_text()))
        if isinstance(one, ast.AsyncFunctionDef) and [a.arg for a in one.args.args] == ["self", "request"]
    }.intersection(OPERATIONS)


@pytest.fixture(scope="module")
def places():
    """Operation → files with a method of it."""
    found = {name: set() for name in OPERATIONS}
    for file in FOLDER.rglob("*.py"):
        for name in operations_in(file):
            found[name].add(str(file.relative_to(FOLDER)))
    return found


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_written_down_as_signature_and_as_policy(name, places):
    assert places[name] == {"api.py", "operations.py"} | FURTHER.get(name, set())


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_has_one_route_and_is_implemented(name):
    assert [route.operation for route in ROUTES].count(name) == 1
    assert name in vars(Operations)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_has_a_contract_test(name):
    text = (ROOT / "tests" / "contracts" / "test_control.py").read_text()
    assert f"control.{name}(" in text or f'"{name}"' in text
