"""`nephila url parse --batch` against the URL tests of the web platform: every http(s) case."""

from __future__ import annotations

import json

import pytest

from tests.acceptance import locate
from tests.command_fixtures import Run


@pytest.mark.conformance
@pytest.mark.parametrize("name", ["urltestdata.json", "ada_extra_urltestdata.json"])
def test_every_http_case_is_parsed_as_browsers_do(nephila: Run, name: str):
    """The href of a case, or an error where there is none."""
    found = list(locate("wpt-url").rglob(name))
    cases = [case for case in json.loads(found[0].read_text()) if isinstance(case, dict) and _http(case)]
    lines = [json.dumps({"url": case["input"], "base": case.get("base")}) for case in cases]
    ran = nephila("url", "parse", "--batch", stdin="\n".join(lines).encode())
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert len(answers) == len(cases) > 0
    wrong = [
        (case["input"], answer)
        for case, answer in zip(cases, answers, strict=True)
        if ("error" in answer if case.get("failure") else answer.get("href") == case["href"]) is False
    ]
    assert wrong == []


def _http(case: dict) -> bool:
    """Whether the result, or what should have been one, is an http(s) URL."""
    schemes = ("http:", "https:")
    if case.get("failure"):
        return str(case["input"]).lower().startswith(schemes) or str(case.get("base") or "").startswith(schemes)
    return str(case["href"]).startswith(schemes)
