"""JSONPath of rules against the compliance test suite of RFC 9535: the whole dialect is claimed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from nephila_rules.runtime.jsonpath import jsonpath, query

from tests.acceptance import locate

pytestmark = pytest.mark.conformance


def test_compliance_suite(capsys: pytest.CaptureFixture[str]) -> None:
    """Every valid query gives one of the results, every invalid one is refused."""
    cases: list[dict[str, Any]] = json.loads((locate("jsonpath-cts") / "cts.json").read_text(encoding="utf-8"))["tests"]
    wrong = [case["name"] for case in cases if not _holds(case)]
    with capsys.disabled():
        print(f"\nJSONPath: {len(cases) - len(wrong)} of {len(cases)} cases of the compliance suite; ", end="")
    assert len(cases) > 600
    assert wrong == []


def _holds(case: dict[str, Any]) -> bool:
    try:
        path = jsonpath(case["selector"])
    except ValueError:
        return bool(case.get("invalid_selector"))
    if case.get("invalid_selector"):
        return False
    found = query(path, case["document"])
    return found == case.get("result") or found in case.get("results", [])
