"""docs/control.md: each operation has an example, and each example is a request that the API takes."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl

import msgspec
import pytest
from nephila_control.api import OPERATIONS
from nephila_control.http.errors import CODES

PAGE = (Path(__file__).parents[2] / "docs" / "control.md").read_text()
EXAMPLES = re.findall(r"`\$C(/[^\s`]*)(?: -X (\w+))?(?: -d '([^']*)')?(?: -X (\w+))?`", PAGE)


def route_of(path, method):
    """The route of an example."""
    for route in OPERATIONS.values():
        found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path), path)
        if found and route.method == method:
            return route, found.groupdict()
    raise AssertionError(f"no route for {method} {path}")


def test_every_operation_has_an_example():
    """None is forgotten."""
    shown = {route_of(path.partition("?")[0], first or last or ("POST" if body else "GET"))[0].name
             for path, first, body, last in EXAMPLES}  # fmt: skip
    assert shown == {route.name for route in OPERATIONS.values()}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one[0])
def test_an_example_is_a_request(example):
    """Its fields are those of the typed request."""
    path, first, body, last = example
    path, _, query = path.partition("?")
    route, fields = route_of(path, first or last or ("POST" if body else "GET"))
    fields |= dict(parse_qsl(query)) | (msgspec.json.decode(body) if body else {})
    msgspec.convert(fields, route.request, strict=False)


def test_every_code_is_listed():
    """With its status."""
    assert all(f"{code} ({status})" in PAGE for code, status in CODES.items())
