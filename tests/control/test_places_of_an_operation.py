"""What an operation of the control API costs: a declaration with its signature, and an implementation. Nothing else."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest
from nephila_control.api import OPERATIONS, Control

ROOT = Path(__file__).parents[2]
SERVICES = ROOT / "services"
FURTHER = {"list_changes": {"nephila_control/changes.py"}}
"""`nephila changes` reads the database also where no program runs."""
METHOD = ["self", "request"]


def arguments(node):
    return [argument.arg for argument in node.args.args]


def implementation(name):
    """The class that answers an operation."""
    module, _, part = OPERATIONS[name].part.partition(":")
    return getattr(import_module(module), part)


def file_of(name):
    """The file of that class, below services/."""
    return OPERATIONS[name].part.partition(":")[0].replace(".", "/") + ".py"


@pytest.fixture(scope="module")
def methods():
    """Operation → files with a method of it that has a typed request."""
    files = {name: set() for name in OPERATIONS}
    for file in SERVICES.glob("nephila*/**/*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.AsyncFunctionDef) and node.name in OPERATIONS and arguments(node) == METHOD:
                files[node.name].add(file.relative_to(SERVICES).as_posix())
    return files


@pytest.fixture(scope="module")
def words():
    """Operation → files of the control API that have its name as a text, as a table of names has it. A name of one word
    is also the name of a field."""
    files = {name: set() for name in OPERATIONS if "_" in name}
    for file in (SERVICES / "nephila_control").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and node.value in files:
                files[node.value].add(file.name)
    return files


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_a_declaration_and_an_implementation(name, methods):
    assert methods[name] == {"nephila_control/api.py", file_of(name)} | FURTHER.get(name, set())


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_implementation_has_the_types_of_the_declaration(name):
    method = vars(implementation(name))[name]
    assert get_type_hints(method) == get_type_hints(getattr(Control, name))


def test_no_table_of_names_is_kept_beside_the_declarations(words):
    """The feeds of changes are routes of their own over one operation."""
    assert {name: files for name, files in words.items() if files} == {
        "list_changes": {"application.py", "openapi.py"},
    }


def test_each_method_of_the_protocol_is_declared():
    assert list(OPERATIONS) == [name for name in vars(Control) if not name.startswith("_")]
    assert len({(operation.method, operation.path) for operation in OPERATIONS.values()}) == len(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_has_a_contract_test(name):
    text = (ROOT / "tests" / "contracts" / "test_control.py").read_text("utf-8")
    assert f"control.{name}(" in text or f'"{name}"' in text
